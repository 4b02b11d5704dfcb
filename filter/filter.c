#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sized.h"
#include "filter/filter_private.h"

_Static_assert((int)SLUICE_LOG_DEBUG == (int)LOG_DEBUG, "sluice_log_level mirrors log_level");
_Static_assert((int)SLUICE_STATUS_DEVICE == (int)STATUS_DEVICE, "sluice_status mirrors status");
_Static_assert((int)SLUICE_PLANES == (int)FORMAT_PLANES, "frames have as many planes as images");

static void print(void *filter_, enum log_level level, const char *sentence)
{
    const struct sluice_filter *filter = filter_;
    if (filter->print)
        filter->print(filter->opaque, (enum sluice_log_level)level, sentence);
}

// ---- formats ----

const char *sluice_format_name(int index)
{
    return pixfmt_name(index);
}

// STATUS_USAGE, with a sentence, if it describes no pictures.
static enum status read_format(const struct sluice_format *from, const struct log *log,
                               struct sluice_format *to, struct format *format)
{
    if (!sized_read(to, sizeof *to, from, sizeof *to))
        return log_fail(log, STATUS_USAGE,
                        "`size` of the format is %zu; it is sizeof(struct sluice_format), and "
                        "what this version does not know stays zero",
                        from->size);
    bool fits = to->width >= 1 && to->height >= 1 && to->width <= MAX_SIDE &&
                to->height <= MAX_SIDE && (int64_t)to->width * to->height <= MAX_SAMPLES;
    if (!fits)
        return log_fail(log, STATUS_USAGE,
                        "frames of %dx%d are none; sides are 1 to %d, and samples %d at most",
                        to->width, to->height, MAX_SIDE, MAX_SAMPLES);
    if ((unsigned)to->range > SLUICE_RANGE_FULL || (unsigned)to->matrix > SLUICE_MATRIX_BT2020 ||
        (unsigned)to->siting > SLUICE_SITING_TOP_LEFT)
        return log_fail(log, STATUS_USAGE,
                        "range %d, matrix %d or siting %d is none of those in sluice/frame.h",
                        (int)to->range, (int)to->matrix, (int)to->siting);
    if (!pixfmt_describe(to, format))
        return log_fail(log, STATUS_USAGE,
                        "'%s' is no pixel format that filters know; sluice_format_name() lists "
                        "them",
                        to->pixfmt ? to->pixfmt : "");
    to->pixfmt = pixfmt_canonical(to->pixfmt);
    return STATUS_OK;
}

enum sluice_status sluice_format_plane(const struct sluice_format *format, int plane,
                                       size_t *row_bytes, int *rows)
{
    const struct log silent = {0};
    struct sluice_format read;
    struct format storage;
    enum status status = read_format(format, &silent, &read, &storage);
    if (status)
        return filter_status(status);
    if (plane < 0 || plane >= storage.planes)
        return SLUICE_STATUS_END;
    *row_bytes = format_row_bytes(&storage, plane, read.width);
    *rows = format_rows(&storage, plane, read.height);
    return SLUICE_STATUS_OK;
}

// ---- construction ----

static enum status check_config(const struct sluice_filter_config *config, const struct log *log)
{
    if (config->frames_in_flight < 0 || config->frames_in_flight > MAX_FRAMES)
        return log_fail(log, STATUS_USAGE, "frames_in_flight is %d; it is 0 to %d",
                        config->frames_in_flight, MAX_FRAMES);
    if (config->threads < 0 || config->threads > 1024)
        return log_fail(log, STATUS_USAGE, "threads is %d; it is 0 to 1024", config->threads);
    if ((unsigned)config->output_range > SLUICE_RANGE_FULL)
        return log_fail(log, STATUS_USAGE, "output_range is %d, which is none",
                        (int)config->output_range);
    if ((unsigned)config->backend > SLUICE_BACKEND_SCALAR || config->device < 0)
        return log_fail(log, STATUS_USAGE,
                        "there is no backend %d, or no device %d; backends are those of enum "
                        "sluice_backend, devices are counted from 0",
                        (int)config->backend, config->device);
    if (config->output_pixfmt && !pixfmt_canonical(config->output_pixfmt))
        return log_fail(log, STATUS_USAGE,
                        "'%s' is no pixel format that filters know; sluice_format_name() lists "
                        "them",
                        config->output_pixfmt);
    return STATUS_OK;
}

static enum status open_backend(struct sluice_filter *filter,
                                const struct sluice_filter_config *config)
{
    char reason[256] = "";
    const struct log *log = &filter->log;
    if (config->backend == SLUICE_BACKEND_SCALAR)
        return backend_scalar_create(log, &filter->backend);
    enum status status = STATUS_DEVICE;
    if (config->backend != SLUICE_BACKEND_CPU)
        status = backend_cuda_create(config->device, log, &filter->backend, reason, sizeof reason);
    if (status != STATUS_DEVICE)
        return status;
    if (config->backend == SLUICE_BACKEND_CUDA)
        return log_fail(log, STATUS_DEVICE,
                        "the GPU was asked for and cannot be used: %s; SLUICE_BACKEND_CPU gives "
                        "the same bits",
                        reason);
    if (*reason)
        log_print(log, LOG_INFO, "filtering on the CPU: %s", reason);
    return backend_cpu_create(config->threads, log, &filter->backend);
}

static int choose_slots(const struct sluice_filter_config *config, const struct backend *backend)
{
    if (config->frames_in_flight)
        return config->frames_in_flight;
    if (config->backend == SLUICE_BACKEND_SCALAR)
        return 1;
    int slots = backend->in_flight ? backend->in_flight : backend->parallel + 1;
    return slots < MAX_FRAMES ? slots : MAX_FRAMES;
}

static enum status parse(struct sluice_filter *filter, const char *text, struct chain *chain)
{
    return chain_parse_logged(text, &filter->reader, &filter->log, chain);
}

static enum status build(struct sluice_filter *filter, const struct sluice_filter_config *config)
{
    struct chain chain;
    enum status status = check_config(config, &filter->log);
    if (!status)
        status = read_format(&config->input, &filter->log, &filter->in, &filter->input);
    if (!status)
        status = open_backend(filter, config);
    if (!status)
        status = parse(filter, config->chain, &chain);
    if (status)
        return status;
    filter->backend->memory_limit = (size_t)budget_memory();
    snprintf(filter->about, sizeof filter->about, "%s, %s", filter->backend->name,
             filter->backend->description);
    filter->slots = choose_slots(config, filter->backend);
    struct binding *first;
    status = binding_create(filter, &chain, &filter->log, &first);
    filter->current = first;
    if (status)
        return status;
    filter->source_bytes = planes_bytes(filter, &filter->input);
    filter->target_bytes = planes_bytes(filter, &filter->output);
    planes_measure(filter, &filter->input, filter->input_rows);
    planes_measure(filter, &filter->output, filter->output_rows);
    return STATUS_OK;
}

// Every caller has a log: `opaque` is the last member of interface 1.0.
static enum sluice_status refuse_size(const struct sluice_filter_config *config, size_t least)
{
    char sentence[200];
    if (config->size < least)
        snprintf(sentence, sizeof sentence,
                 "sluice_filter_config.size is %zu; it has to be sizeof(struct "
                 "sluice_filter_config), %zu or more",
                 config->size, least);
    else
        snprintf(sentence, sizeof sentence,
                 "the configuration has members that libsluice-filter %d.%d does not know: the "
                 "program was built for a newer one",
                 SLUICE_API_MAJOR, SLUICE_API_MINOR);
    if (config->log)
        config->log(config->opaque, SLUICE_LOG_ERROR, sentence);
    return SLUICE_STATUS_USAGE;
}

enum sluice_status sluice_filter_create(const struct sluice_filter_config *config,
                                        struct sluice_filter **filter)
{
    assert(config && filter);
    struct sluice_filter_config read;
    *filter = NULL;
    const size_t least = offsetof(struct sluice_filter_config, opaque) + sizeof config->opaque;
    if (!sized_read(&read, sizeof read, config, least))
        return refuse_size(config, least);
    struct sluice_filter *made = calloc(1, sizeof *made);
    if (!made)
        return SLUICE_STATUS_MEMORY;
    made->reader = pictures_reader;
    made->picture = read.picture;
    made->print = read.log;
    made->opaque = read.opaque;
    made->log = (struct log){print, made};
    made->wavelet_planes = read.wavelet_planes;
    made->output_range = read.output_range;
    made->output_pixfmt = read.output_pixfmt ? pixfmt_canonical(read.output_pixfmt) : NULL;
    enum status status = build(made, &read);
    if (status)
        sluice_filter_destroy(&made);
    *filter = made;
    return filter_status(status);
}

static void free_copies(struct sluice_filter *filter, struct seat *seat)
{
    if (seat->source_copy)
        filter->backend->free(filter->backend, seat->source_copy, filter->source_bytes);
    if (seat->target_copy)
        filter->backend->free(filter->backend, seat->target_copy, filter->target_bytes);
}

void sluice_filter_destroy(struct sluice_filter **filter)
{
    struct sluice_filter *old = *filter;
    *filter = NULL;
    if (!old)
        return;
    struct sluice_frame frame = {.size = sizeof frame};
    while (old->received != old->submitted && !old->failed)
        sluice_filter_receive(old, &frame);
    for (int k = 0; k < MAX_FRAMES; k++) {
        binding_unref(&old->seat[k].binding);
        free_copies(old, &old->seat[k]);
    }
    binding_unref(&old->last);
    binding_unref(&old->current);
    backend_destroy(&old->backend);
    free(old);
}

// ---- questions ----

enum sluice_status filter_tell(const struct sluice_filter *filter, void *to, const void *from,
                               size_t size, const char *type)
{
    if (sized_write(to, from, size))
        return SLUICE_STATUS_OK;
    return filter_status(log_fail(&filter->log, STATUS_USAGE,
                                  "`size` of the struct to be filled in is %zu; it is "
                                  "sizeof(struct %s)",
                                  sized_of(to), type));
}

enum sluice_status sluice_filter_output(const struct sluice_filter *filter,
                                        struct sluice_format *format)
{
    return filter_tell(filter, format, &filter->out, sizeof filter->out, "sluice_format");
}

const char *sluice_filter_backend(const struct sluice_filter *filter)
{
    return filter->about;
}

int sluice_filter_frames_in_flight(const struct sluice_filter *filter)
{
    return filter->slots;
}

char *sluice_filter_chain(const struct sluice_filter *filter)
{
    return chain_text(&filter->current->chain);
}

char *sluice_filter_plan(const struct sluice_filter *filter)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    chain_print_aliases(&filter->current->chain, to);
    plan_print(filter->current->plan, filter->in.width, filter->in.height, to);
    if (!fclose(to))
        return text;
    free(text);
    return NULL;
}

// ---- memory ----

void *sluice_filter_alloc(struct sluice_filter *filter, size_t bytes)
{
    return filter->backend->alloc(filter->backend, bytes);
}

void sluice_filter_free(struct sluice_filter *filter, void *memory, size_t bytes)
{
    if (memory)
        filter->backend->free(filter->backend, memory, bytes);
}

#include "pipeline/report/report_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/monitor.h"
#include "pipeline/output/file/file.h"

struct kind {
    enum op_kind op;
    // Record one operation's analysis of one frame.
    enum status (*record)(struct recording *recording, const struct record *record);
};

static const struct kind kinds[] = {
    {OP_STATISTICS, report_statistics}, {OP_WAVELET, report_wavelet}, {OP_MATCH, report_match}};

struct report_writer {
    const struct log *log;
    const struct stop *stop;
    bool overwrite, unchecked, live;
    AVRational time_base;
    struct monitor lock;
    // ---- guarded by lock ----
    bool finished;
    struct recording *recording;
    int recordings;
    int *place; // the recording of each stage of the present chain that records
    int places;
};

// ---- creation ----

static enum status check_name(const struct report_writer *report_writer, const char *name)
{
    return report_writer->unchecked
               ? STATUS_OK
               : file_check(name, report_writer->overwrite, report_writer->log);
}

static enum status name_files(const struct report_writer *report_writer,
                              const struct chain_file *file, struct recording *recording)
{
    const char *beside = file->option->beside;
    recording->stage = file->stage;
    if (!file->name)
        return STATUS_OK;
    recording->name = strdup(file->name);
    if (!recording->name)
        return STATUS_MEMORY;
    enum status status = check_name(report_writer, recording->name);
    if (status || !beside)
        return status;
    size_t size = strlen(file->name) + strlen(beside) + 1;
    recording->beside_name = malloc(size);
    if (!recording->beside_name)
        return STATUS_MEMORY;
    snprintf(recording->beside_name, size, "%s%s", file->name, beside);
    return check_name(report_writer, recording->beside_name);
}

static enum status append_locked(struct report_writer *report_writer, const struct chain_file *file)
{
    struct recording *list =
        realloc(report_writer->recording, ((size_t)report_writer->recordings + 1) * sizeof *list);
    if (!list)
        return STATUS_MEMORY;
    report_writer->recording = list;
    list += report_writer->recordings++;
    *list = (struct recording){0};
    return name_files(report_writer, file, list);
}

// Find the recording of a stage: the first of its like that no stage before it has. *place is past
// the last where a new one is needed.
static void find_place_locked(struct report_writer *report_writer, const struct chain_file *file,
                              int *place)
{
    for (*place = 0; *place < report_writer->recordings; ++*place) {
        const struct recording *one = &report_writer->recording[*place];
        if (!one->bound && one->stage == file->stage && !one->name == !file->name)
            return;
    }
}

static enum status bind_all_locked(struct report_writer *report_writer,
                                   const struct chain_file *list)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < report_writer->recordings; k++)
        report_writer->recording[k].bound = false;
    for (int k = 0; k < report_writer->places && !status; k++) {
        int *place = &report_writer->place[k];
        find_place_locked(report_writer, &list[k], place);
        if (*place == report_writer->recordings)
            status = append_locked(report_writer, &list[k]);
        if (!status)
            report_writer->recording[*place].bound = true;
    }
    return status;
}

enum status report_writer_bind(struct report_writer *report_writer, const struct chain *chain)
{
    int count = chain_files(chain, WRITES_RECORDS, NULL, 0);
    struct chain_file *list = calloc((size_t)count + 1, sizeof *list);
    int *place = calloc((size_t)count + 1, sizeof *place);
    enum status status = STATUS_MEMORY;
    if (list && place) {
        chain_files(chain, WRITES_RECORDS, list, count);
        monitor_lock(&report_writer->lock);
        free(report_writer->place);
        report_writer->place = place, place = NULL;
        report_writer->places = count;
        status = bind_all_locked(report_writer, list);
        monitor_unlock(&report_writer->lock);
    }
    free(list);
    free(place);
    return status;
}

enum status report_writer_create(const struct report_writer_request *request,
                                 struct report_writer **report_writer)
{
    struct report_writer *made = *report_writer = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = request->log;
    made->stop = request->stop;
    made->overwrite = request->overwrite;
    made->unchecked = request->unchecked;
    monitor_init(&made->lock);
    enum status status = report_writer_bind(made, request->chain);
    if (status)
        report_writer_destroy(report_writer);
    return status;
}

static void destroy_recording(struct recording *recording)
{
    async_file_destroy(&recording->async);
    for (int k = 0; k < recording->figures; k++)
        free(recording->figure[k].sum);
    free(recording->name);
    free(recording->beside_name);
    free(recording->state);
}

void report_writer_destroy(struct report_writer **report_writer)
{
    if (!*report_writer)
        return;
    for (int k = 0; k < (*report_writer)->recordings && (*report_writer)->recording; k++)
        destroy_recording(&(*report_writer)->recording[k]);
    free((*report_writer)->recording);
    free((*report_writer)->place);
    monitor_finish(&(*report_writer)->lock);
    free(*report_writer);
    *report_writer = NULL;
}

// ---- frames ----

enum status report_writer_open(struct report_writer *report_writer, AVRational time_base, bool live)
{
    enum status status = STATUS_OK;
    report_writer->time_base = time_base;
    report_writer->live = live;
    for (int k = 0; k < report_writer->recordings && !status; k++) {
        struct recording *recording = &report_writer->recording[k];
        const struct async_file_request request = {
            .name = {recording->name, recording->beside_name},
            .overwrite = report_writer->overwrite,
            .live = live,
            .log = report_writer->log,
            .stop = report_writer->stop,
        };
        if (recording->name)
            status = async_file_create(&request, &recording->async);
    }
    return status;
}

static const struct kind *kind_of(const struct op *op)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].op == op->kind)
            return &kinds[k];
    return NULL;
}

static enum status report_analysis(struct report_writer *report_writer,
                                   const struct report_writer_frame *frame, int k)
{
    const struct program *program = frame->program;
    const struct op *op = &program->op[program->analysis[k]];
    const struct kind *kind = kind_of(op);
    if (!kind || op->record < 0)
        return STATUS_OK;
    assert(op->record < report_writer->places);
    struct recording *recording = &report_writer->recording[report_writer->place[op->record]];
    struct program_plane grid = program->plane[op->source[0]];
    struct record record = {
        .op = op,
        .analysis = frame->analysis[k],
        .width = subsampled(frame->width, grid.shift_x),
        .height = subsampled(frame->height, grid.shift_y),
        .frame = frame->index,
        .pts = frame->pts,
        .seconds = (double)frame->pts * av_q2d(report_writer->time_base),
    };
    record.bytes = (int64_t)op_analysis_bytes(op, record.width, record.height);
    recording->frames += frame->index >= recording->next; // one may have several analyses
    recording->next = frame->index + 1;
    return kind->record(recording, &record);
}

enum status report_writer_write(struct report_writer *report_writer,
                                const struct report_writer_frame *frame)
{
    enum status status = STATUS_OK;
    monitor_lock(&report_writer->lock);
    for (int k = 0; k < frame->program->analyses && !status && !report_writer->finished; k++)
        status = report_analysis(report_writer, frame, k);
    for (int k = 0; k < report_writer->recordings && !status && !report_writer->finished; k++)
        if (report_writer->recording[k].async)
            status = async_file_next(report_writer->recording[k].async);
    monitor_unlock(&report_writer->lock);
    return status;
}

// ---- the end ----

static void close_all_locked(struct report_writer *report_writer)
{
    for (int k = 0; k < report_writer->recordings && !report_writer->finished; k++)
        if (report_writer->recording[k].async)
            async_file_close(report_writer->recording[k].async, report_writer->recording[k].tail);
    report_writer->finished = true;
}

static enum status finish_recording(struct recording *recording, int64_t until_ns)
{
    if (!recording->async)
        return STATUS_OK;
    enum status status = async_file_finish(recording->async, until_ns);
    recording->bytes = async_file_bytes(recording->async);
    recording->dropped = async_file_dropped(recording->async);
    async_file_destroy(&recording->async);
    return status;
}

enum status report_writer_finish(struct report_writer *report_writer, int64_t until_ns)
{
    enum status status = STATUS_OK;
    monitor_lock(&report_writer->lock);
    close_all_locked(report_writer);
    for (int k = 0; k < report_writer->recordings; k++)
        status = status_join(status, finish_recording(&report_writer->recording[k], until_ns));
    monitor_unlock(&report_writer->lock);
    return status;
}

void report_writer_cancel(struct report_writer *report_writer)
{
    monitor_lock(&report_writer->lock);
    report_writer->finished = true;
    for (int k = 0; k < report_writer->recordings; k++)
        async_file_destroy(&report_writer->recording[k].async);
    monitor_unlock(&report_writer->lock);
}

int64_t report_writer_memory(const struct report_writer *report_writer, int64_t analysis_bytes)
{
    int64_t bytes = 0;
    for (int k = 0; k < report_writer->recordings; k++)
        if (report_writer->recording[k].async)
            bytes += async_file_memory(report_writer->live, analysis_bytes);
    return bytes;
}

// ---- figures ----

const struct recording *report_writer_recording(const struct report_writer *report_writer,
                                                int index)
{
    bool there = report_writer && index >= 0 && index < report_writer->recordings;
    return there ? &report_writer->recording[index] : NULL;
}

AVIOContext *recording_io(const struct recording *recording, enum recording_file file,
                          const struct record *record)
{
    return recording->async ? async_file_io(recording->async, (int)file, record->bytes) : NULL;
}

static struct figure *find_figure(struct recording *recording, const char *name)
{
    for (int k = 0; k < recording->figures; k++)
        if (!strcmp(recording->figure[k].name, name))
            return &recording->figure[k];
    if (recording->figures == MAX_FIGURES)
        return NULL;
    struct figure *fresh = &recording->figure[recording->figures++];
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

enum status recording_note(struct recording *recording, const char *name, const double *value,
                           int values)
{
    struct figure *figure = find_figure(recording, name);
    if (!figure)
        return STATUS_OK;
    if (figure->values != values) {
        double *sum = realloc(figure->sum, (size_t)values * sizeof *sum);
        if (!sum)
            return STATUS_MEMORY;
        memset(sum, 0, (size_t)values * sizeof *sum);
        *figure = (struct figure){.sum = sum, .values = values};
        snprintf(figure->name, sizeof figure->name, "%s", name);
    }
    for (int k = 0; k < values; k++)
        figure->sum[k] += value[k];
    figure->frames++;
    return STATUS_OK;
}

// Checks of frames, before anything is touched: memory, strides, overlap.
#include "filter/filter_private.h"

#include "base/sized.h"

// A plane somewhere: `rows` rows of `bytes`, the lowest at `first`, `stride` apart.
struct area {
    uintptr_t first, end;
    size_t bytes, stride;
};

static struct area area_of(const struct image *image, const struct plane_rows *plane, int p)
{
    ptrdiff_t stride = image->stride[p];
    size_t apart = (size_t)(stride < 0 ? -stride : stride);
    size_t height = (size_t)(plane[p].rows - 1) * apart;
    uintptr_t first = (uintptr_t)image->data[p] - (stride < 0 ? height : 0);
    return (struct area){first, first + height + plane[p].bytes, plane[p].bytes, apart};
}

// True if two planes share a byte. Those of one stride may lie side by side, as parts of a larger
// picture do, or row by row in turn.
static bool overlap(struct area a, struct area b)
{
    if (a.end <= b.first || b.end <= a.first)
        return false;
    if (a.stride != b.stride || !a.stride)
        return true;
    size_t apart = (b.first > a.first ? b.first - a.first : a.first - b.first) % a.stride;
    size_t low = b.first > a.first ? a.bytes : b.bytes, high = a.bytes + b.bytes - low;
    return apart < low || apart + high > a.stride;
}

static bool is_same_plane(const struct image *a, const struct image *b, int p)
{
    return a->data[p] == b->data[p] && a->stride[p] == b->stride[p];
}

// ---- planes ----

static const char *memory_name(enum memory_kind kind)
{
    static const char *const names[] = {[MEMORY_HOST] = "host memory",
                                        [MEMORY_PINNED] = "host memory",
                                        [MEMORY_DEVICE] = "memory of the GPU that filters",
                                        [MEMORY_MANAGED] = "managed memory",
                                        [MEMORY_PEER] = "memory of another GPU"};
    return names[kind];
}

// The kind of memory there. The driver takes about a microsecond to say, and frames come again and
// again from one pool: addresses that were the device's are kept. One that was freed since is the
// caller's mistake.
static enum memory_kind kind_of(struct sluice_filter *filter, const uint8_t *data)
{
    struct backend *backend = filter->backend;
    if (!backend->memory_kind)
        return MEMORY_HOST;
    if (known_addresses_has(&filter->on_device, data))
        return MEMORY_DEVICE;
    enum memory_kind kind = backend->memory_kind(backend, data);
    if (kind == MEMORY_DEVICE)
        known_addresses_add(&filter->on_device, data);
    return kind;
}

static enum status check_memory(struct sluice_filter *filter, const char *which, int p,
                                const uint8_t *data, enum sluice_memory said)
{
    enum memory_kind kind = kind_of(filter, data);
    bool host = kind == MEMORY_HOST || kind == MEMORY_PINNED;
    if (said == SLUICE_MEMORY_HOST ? host : kind == MEMORY_DEVICE)
        return STATUS_OK;
    return log_fail(&filter->log, STATUS_USAGE,
                    "plane %d of `%s` is %s, and the frame says %s; copy it there, or set "
                    "`memory`",
                    p, which, memory_name(kind),
                    said == SLUICE_MEMORY_HOST ? "host memory" : "memory of the GPU that filters");
}

static enum status check_plane(struct sluice_filter *filter, const char *which,
                               const struct image *image, const struct plane_rows *plane, int p,
                               enum sluice_memory memory)
{
    ptrdiff_t stride = image->stride[p];
    if (!image->data[p])
        return log_fail(&filter->log, STATUS_USAGE,
                        "plane %d of `%s` has no address; a picture of %s has %d", p, which,
                        image->format == &filter->input ? filter->in.pixfmt : filter->out.pixfmt,
                        image->format->planes);
    if (stride > INT32_MAX / 2 || stride < -INT32_MAX / 2) // twice that, of a field, fits an int
        return log_fail(&filter->log, STATUS_USAGE,
                        "the stride of plane %d of `%s` is %td bytes; 30 bits are the most", p,
                        which, stride);
    if (plane[p].rows > 1 && (size_t)(stride < 0 ? -stride : stride) < plane[p].bytes)
        return log_fail(&filter->log, STATUS_USAGE,
                        "the stride of plane %d of `%s` is %td bytes, and its rows have %zu; "
                        "give the bytes from row to row",
                        p, which, stride, plane[p].bytes);
    return check_memory(filter, which, p, image->data[p], memory);
}

static enum status check_frame(struct sluice_filter *filter, const char *which,
                               const struct sluice_frame *frame, const struct image *image,
                               const struct plane_rows *plane)
{
    if (frame->memory != SLUICE_MEMORY_HOST && frame->memory != SLUICE_MEMORY_DEVICE)
        return log_fail(&filter->log, STATUS_USAGE,
                        "`memory` of `%s` is %d, which is none; it is SLUICE_MEMORY_HOST or "
                        "SLUICE_MEMORY_DEVICE",
                        which, (int)frame->memory);
    if (frame->memory == SLUICE_MEMORY_DEVICE && !filter->backend->has_device_memory)
        return log_fail(&filter->log, STATUS_USAGE,
                        "`%s` is in a GPU's memory, and this filter works on the CPU; copy it "
                        "to the host, or ask for SLUICE_BACKEND_CUDA",
                        which);
    enum status status = STATUS_OK;
    for (int p = 0; p < image->format->planes && !status; p++)
        status = check_plane(filter, which, image, plane, p, frame->memory);
    return status;
}

// ---- pairs ----

static enum status check_overlap(const struct sluice_filter *filter, const struct image *source,
                                 const struct image *target)
{
    for (int p = 0; p < target->format->planes; p++) {
        struct area area = area_of(target, filter->output_rows, p);
        for (int s = 0; s < source->format->planes; s++)
            if (overlap(area, area_of(source, filter->input_rows, s)) &&
                !(s == p && is_same_plane(source, target, p)))
                return log_fail(&filter->log, STATUS_USAGE,
                                "plane %d of `out` overlaps plane %d of `in`; a result may go "
                                "over its source with the same planes and strides, else give "
                                "it memory of its own",
                                p, s);
        for (int other = 0; other < p; other++)
            if (overlap(area, area_of(target, filter->output_rows, other)))
                return log_fail(&filter->log, STATUS_USAGE,
                                "planes %d and %d of `out` overlap; give each memory of its "
                                "own",
                                other, p);
    }
    return STATUS_OK;
}

// Frames of this version's size, which most are, are read where they are; others into *copy. NULL, with
// a sentence, if it has no such size.
static const struct sluice_frame *read_frame(const struct sluice_filter *filter, const char *which,
                                             const struct sluice_frame *frame,
                                             struct sluice_frame *copy)
{
    const size_t least = offsetof(struct sluice_frame, opaque) + sizeof frame->opaque;
    if (frame->size == sizeof *frame)
        return frame;
    if (sized_read(copy, sizeof *copy, frame, least))
        return copy;
    log_fail(&filter->log, STATUS_USAGE,
             "`size` of `%s` is %zu; it is sizeof(struct sluice_frame), and what this version does "
             "not know stays zero",
             which, frame->size);
    return NULL;
}

// True if planes of the result are planes of the source.
static bool is_in_place(const struct image *source, const struct image *target)
{
    for (int p = 0; p < target->format->planes && p < source->format->planes; p++)
        if (source->data[p] == target->data[p])
            return true;
    return false;
}

enum status check_frames(struct sluice_filter *filter, const struct sluice_frame *in,
                         const struct sluice_frame *out, struct seat *seat)
{
    struct sluice_frame copy;
    if (!(in = read_frame(filter, "in", in, &copy)))
        return STATUS_USAGE;
    seat->source = planes_of(filter, &filter->input, in);
    seat->source_on_device = in->memory == SLUICE_MEMORY_DEVICE;
    seat->interlaced = in->interlaced;
    int64_t pts = in->pts;
    void *opaque = in->opaque;
    enum status status = check_frame(filter, "in", in, &seat->source, filter->input_rows);
    if (status)
        return status;
    if (!(out = read_frame(filter, "out", out, &copy)))
        return STATUS_USAGE;
    seat->target = planes_of(filter, &filter->output, out);
    seat->device = out->memory == SLUICE_MEMORY_DEVICE;
    seat->out = *out;
    seat->out.pts = pts;
    seat->out.opaque = opaque;
    seat->in_place = is_in_place(&seat->source, &seat->target);
    status = check_frame(filter, "out", out, &seat->target, filter->output_rows);
    return status ? status : check_overlap(filter, &seat->source, &seat->target);
}

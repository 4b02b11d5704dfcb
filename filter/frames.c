// Frames on their way: submitted, filtered, received.
#include <assert.h>

#include "base/minmax.h"
#include "filter/filter_private.h"

static struct seat *seat_of(struct sluice_filter *filter, unsigned long long frame)
{
    return &filter->seat[frame % (unsigned)filter->slots];
}

static enum status note_failure(struct sluice_filter *filter, enum status status)
{
    if (status == STATUS_DEVICE)
        filter->failed = true;
    return status;
}

static enum status refuse_failed(const struct sluice_filter *filter)
{
    return log_fail(&filter->log, STATUS_DEVICE,
                    "the GPU has failed before; destroy the filter and make another");
}

// ---- copies that stand in for the caller's planes ----

// Memory of a seat for a copy of a picture: taken when it is first needed, then kept.
static enum status need_copy(const struct sluice_filter *filter, uint8_t **copy, size_t bytes)
{
    if (!*copy)
        *copy = filter->backend->alloc(filter->backend, bytes);
    return *copy ? STATUS_OK
                 : log_fail(&filter->log, STATUS_MEMORY,
                            "there is no memory for a copy of a frame of %dx%d", filter->in.width,
                            filter->in.height);
}

// True if the device would read or write this host memory by way of a buffer of the driver's, which
// waits.
static bool is_pageable(const struct sluice_filter *filter, const struct image *image)
{
    struct backend *backend = filter->backend;
    bool pageable = false;
    for (int p = 0; backend->memory_kind && p < image->format->planes; p++)
        pageable |= backend->memory_kind(backend, image->data[p]) == MEMORY_HOST;
    return pageable;
}

// The planes that something is made of after the first row of the result was written.
static unsigned planes_needed(const struct binding *binding)
{
    unsigned mask = binding->plan->reads;
    for (int p = 0; p < binding->program.output.planes; p++) {
        const struct plan_plane *plane = &binding->plan->picture[0].plane[p];
        if (plane->origin == PLANE_REFERENCE && plane->source != p)
            mask |= 1u << plane->source;
    }
    return mask;
}

// Let the work read a copy of the source where it cannot read the source.
static enum status place_source(const struct sluice_filter *filter, struct seat *seat,
                                struct work *work)
{
    work->source = seat->source;
    bool overwritten = seat->in_place && !filter->current->in_place;
    if (seat->source_on_device || (!overwritten && !is_pageable(filter, &seat->source)))
        return STATUS_OK;
    enum status status = need_copy(filter, &seat->source_copy, filter->source_bytes);
    if (status)
        return status;
    unsigned needed = planes_needed(filter->current);
    struct image copy = planes_in(filter, &filter->input, seat->source_copy);
    planes_copy(&seat->source, &copy, needed);
    for (int p = 0; p < copy.format->planes; p++)
        if (needed >> p & 1) {
            work->source.data[p] = copy.data[p];
            work->source.stride[p] = copy.stride[p];
        }
    if (seat->in_place)
        seat->source = work->source;
    return STATUS_OK;
}

// Let it write only the planes that it makes, into memory that the device reaches.
static enum status place_target(const struct sluice_filter *filter, struct seat *seat,
                                struct work *work)
{
    work->target = seat->target;
    if (seat->device)
        return STATUS_OK;
    unsigned made = planes_made(filter->current, seat->source_on_device);
    seat->staged = is_pageable(filter, &seat->target);
    enum status status =
        seat->staged ? need_copy(filter, &seat->target_copy, filter->target_bytes) : STATUS_OK;
    if (status)
        return status;
    if (seat->staged)
        work->target = planes_in(filter, &filter->output, seat->target_copy);
    for (int p = 0; p < work->target.format->planes; p++)
        if (!(made >> p & 1))
            work->target.data[p] = NULL;
    return STATUS_OK;
}

// ---- submit ----

static bool uses_fields(const struct binding *binding, const struct seat *seat)
{
    return seat->interlaced && binding->has_fields && image_has_fields(&seat->source) &&
           image_has_fields(&seat->target);
}

// Take a seat for a frame that was checked, and describe the work.
static enum status prepare(struct sluice_filter *filter, unsigned long long frame, void *stream,
                           bool alone, struct work *work)
{
    struct seat *seat = seat_of(filter, frame);
    struct binding *binding = filter->current;
    int analyses = binding->program.analyses;
    seat->number = binding->seats ? (int)(frame % (unsigned)binding->seats) : 0;
    seat->followers = 0;
    seat->over = seat->staged = false;
    seat->stream = stream;
    work->source_on_device = seat->source_on_device;
    work->target_on_device = seat->device;
    work->source_stream_serves = seat->source_on_device && seat->device;
    work->alone = alone;
    work->untimed = true;
    work->source_stream = stream;
    work->fields = uses_fields(binding, seat);
    work->analysis = analyses ? binding->analysis + seat->number * analyses : NULL;
    enum status status = place_source(filter, seat, work);
    return status ? status : place_target(filter, seat, work);
}

// Make the planes of a host's result that the backend does not.
static void complete(const struct seat *seat)
{
    if (!seat->device)
        planes_complete(seat->binding, &seat->source, &seat->target,
                        planes_made(seat->binding, seat->source_on_device));
}

// Give the executor the frames from `first` on, as many as its slots have neighbours.
static enum status begin(struct sluice_filter *filter, unsigned long long first,
                         const struct work *work, int count)
{
    struct executor *executor = filter->current->executor;
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status;) {
        int slot = (int)((first + (unsigned)k) % (unsigned)filter->slots);
        int run = count - k < filter->slots - slot ? count - k : filter->slots - slot;
        status = executor_submit_many_async(executor, slot, &work[k], run);
        for (int n = 0; n < run && executor->submit_many_async; n++)
            filter->seat[slot + n].followers = run - 1 - n;
        k += run;
    }
    return status;
}

// Callers of another version have frames of another size.
static const struct sluice_frame *frame_at(const struct sluice_frame *frames, int k)
{
    return (const struct sluice_frame *)((const char *)frames + (size_t)k * frames->size);
}

static enum status check_all(struct sluice_filter *filter, const struct sluice_frame *in,
                             const struct sluice_frame *out, int count)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        status = check_frames(filter, frame_at(in, k), frame_at(out, k),
                              seat_of(filter, filter->submitted + (unsigned)k));
    return status;
}

// Submit frames for which there is room. `alone`: all are received before there are more.
static enum status submit(struct sluice_filter *filter, const struct sluice_frame *in,
                          const struct sluice_frame *out, int count, void *stream, bool alone)
{
    unsigned long long first = filter->submitted;
    struct work *work = filter->work;
    enum status status = check_all(filter, in, out, count);
    for (int k = 0; k < count && !status; k++)
        status = prepare(filter, first + (unsigned)k, stream, alone, &work[k]);
    if (!status)
        status = note_failure(filter, begin(filter, first, work, count));
    for (int k = 0; k < count && !status; k++) {
        struct seat *seat = seat_of(filter, first + (unsigned)k);
        seat->binding = binding_ref(filter->current);
        if (!seat->in_place)
            complete(seat);
    }
    if (!status)
        filter->submitted = first + (unsigned)count;
    return status;
}

static enum sluice_status try_submit(struct sluice_filter *filter, const struct sluice_frame *in,
                                     const struct sluice_frame *out, int count, void *stream,
                                     bool alone)
{
    if (filter->failed)
        return filter_status(refuse_failed(filter));
    if (count < 1 || count > filter->slots)
        return filter_status(
            log_fail(&filter->log, STATUS_USAGE,
                     "%d frames at once are not between 1 and the %d that may be under way; raise "
                     "frames_in_flight",
                     count, filter->slots));
    if (filter->submitted - filter->received + (unsigned)count > (unsigned)filter->slots)
        return SLUICE_STATUS_AGAIN;
    return filter_status(submit(filter, in, out, count, stream, alone));
}

enum sluice_status sluice_filter_submit_many(struct sluice_filter *filter,
                                             const struct sluice_frame *in,
                                             const struct sluice_frame *out, int count,
                                             void *stream)
{
    assert(filter && in && out);
    return try_submit(filter, in, out, count, stream, false);
}

enum sluice_status sluice_filter_submit(struct sluice_filter *filter, const struct sluice_frame *in,
                                        const struct sluice_frame *out, void *stream)
{
    return sluice_filter_submit_many(filter, in, out, 1, stream);
}

// ---- receive ----

// A result in device memory is handed over, unless its numbers have to be waited for.
static enum status await(const struct seat *seat, int slot)
{
    struct executor *executor = seat->binding->executor;
    return seat->device && executor->hand_over && !seat->binding->program.analyses
               ? executor->hand_over(executor, slot, seat->stream)
               : executor->wait(executor, slot, NULL);
}

// Wait for a frame, and for those that the backend was given with it: none of their slots may be
// used before all are idle.
static enum status settle(struct sluice_filter *filter, unsigned long long frame)
{
    struct seat *seat = seat_of(filter, frame);
    int count = seat->over ? 0 : 1 + seat->followers;
    for (int k = 0; k < count; k++) {
        int slot = (int)((frame + (unsigned)k) % (unsigned)filter->slots);
        filter->seat[slot].status = await(&filter->seat[slot], slot);
        filter->seat[slot].over = true;
    }
    return seat->status;
}

static void finish_planes(const struct sluice_filter *filter, const struct seat *seat)
{
    if (seat->staged) {
        struct image copy = planes_in(filter, &filter->output, seat->target_copy);
        planes_copy(&copy, &seat->target, planes_made(seat->binding, seat->source_on_device));
    }
    if (seat->in_place)
        complete(seat);
}

// The result's analysis is there until the next one is received.
static void keep_last(struct sluice_filter *filter, struct seat *seat)
{
    binding_unref(&filter->last);
    filter->last = seat->binding;
    filter->last_number = seat->number;
    seat->binding = NULL;
}

enum sluice_status sluice_filter_receive(struct sluice_filter *filter, struct sluice_frame *out)
{
    assert(filter && out);
    unsigned long long frame = filter->received;
    struct seat *seat = seat_of(filter, frame);
    bool had_failed = filter->failed;
    if (frame == filter->submitted)
        return had_failed ? filter_status(refuse_failed(filter)) : SLUICE_STATUS_END;
    enum sluice_status told =
        filter_tell(filter, out, &seat->out, sizeof seat->out, "sluice_frame");
    if (told)
        return told;
    enum status status = note_failure(filter, settle(filter, frame));
    if (had_failed) // whatever the seat says: its result may be anything
        status = refuse_failed(filter);
    if (!status)
        finish_planes(filter, seat);
    keep_last(filter, seat);
    filter->received = frame + 1;
    return filter_status(status);
}

// SLUICE_STATUS_OK if none is under way.
static enum sluice_status none_under_way(struct sluice_filter *filter, const char *call)
{
    unsigned long long count = filter->submitted - filter->received;
    if (!count)
        return SLUICE_STATUS_OK;
    return filter_status(log_fail(&filter->log, STATUS_USAGE,
                                  "%s needs all frames to be received, and %llu are under way; "
                                  "receive them first",
                                  call, count));
}

// None is under way, so frames may go into the ring from its first slot on where they would not
// lie side by side else: as one launch, if they are no more than one takes.
static void turn_ring(struct sluice_filter *filter, int count)
{
    unsigned slots = (unsigned)filter->slots, at = (unsigned)(filter->submitted % slots);
    if (at + (unsigned)min_int(count, filter->slots) <= slots)
        return;
    filter->received += slots - at;
    filter->submitted += slots - at;
}

enum sluice_status sluice_filter_run(struct sluice_filter *filter, const struct sluice_frame *in,
                                     const struct sluice_frame *out, void *stream)
{
    assert(filter && in && out);
    struct sluice_frame made = {.size = sizeof made};
    enum sluice_status status = none_under_way(filter, "sluice_filter_run()");
    if (!status)
        status = try_submit(filter, in, out, 1, stream, true);
    return status ? status : sluice_filter_receive(filter, &made);
}

enum sluice_status sluice_filter_run_many(struct sluice_filter *filter,
                                          const struct sluice_frame *in,
                                          const struct sluice_frame *out, int count, void *stream)
{
    assert(filter && (count < 1 || (in && out)));
    // More than fit go in halves: while one is filtered the other is received, and submitted again.
    // Results in device memory are received at once, and launches of more frames cost less.
    int slots = filter->slots, begun = 0, received = 0;
    bool halves = count > slots && out->memory != SLUICE_MEMORY_DEVICE;
    int most = halves ? (slots + 1) / 2 : slots;
    enum sluice_status status = none_under_way(filter, "sluice_filter_run_many()");
    if (!status && count < 0)
        status = filter_status(
            log_fail(&filter->log, STATUS_USAGE, "%d frames are no number of frames", count));
    if (!status && count)
        turn_ring(filter, count);
    while (received < begun || (!status && begun < count)) {
        int some = min_int(count - begun, most);
        if (!status && some && begun - received + some <= slots) {
            status = try_submit(filter, frame_at(in, begun), frame_at(out, begun), some, stream,
                                count <= slots);
            begun += status ? 0 : some;
            continue;
        }
        struct sluice_frame made = {.size = sizeof made};
        enum sluice_status its = sluice_filter_receive(filter, &made);
        status = status ? status : its;
        received++;
    }
    return status;
}

// Memory that the job of a filter needs, part by part (need.h).
#include <libavutil/imgutils.h>

#include "pipeline/engine/filter/filter_private.h"
#include "pipeline/engine/filter/need.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/report/async_file.h"
#include "plan/budget.h"

static struct budget_request budget_of(const struct filter *filter, struct backend *backend)
{
    const struct filter_request *request = &filter->request;
    return (struct budget_request){.backend = backend,
                                   .plan = filter->plan,
                                   .width = filter->input.width,
                                   .height = filter->input.height,
                                   .slots = request->slots,
                                   .frames_in_flight = request->frames_in_flight,
                                   .log = request->log};
}

enum status filter_check_budget(const struct filter *filter)
{
    const struct budget_request request = budget_of(filter, filter->request.backend);
    return budget_check(&request);
}

// A whole frame of this format, as large as the input's.
static int64_t frame_bytes(const struct filter *filter, enum AVPixelFormat pixel)
{
    int bytes = av_image_get_buffer_size(pixel, filter->input.width, filter->input.height, 64);
    return bytes > 0 ? bytes : 0;
}

// Add the memory of the reference that verifies: it works on a frame at a time, and has one slot.
static enum status measure_reference(const struct filter *filter, struct need *need)
{
    struct backend *scalar;
    struct budget_need its = {0};
    enum status status = backend_scalar_create(filter->request.log, &scalar);
    if (status)
        return status;
    const struct budget_request request = budget_of(filter, scalar);
    status = budget_measure(&request, &its);
    need->host[NEED_STAGES] +=
        (int64_t)its.stages.host + (int64_t)its.analysis / filter->request.slots;
    backend_destroy(&scalar);
    return status;
}

static enum status measure_stages(const struct filter *filter, struct need *need)
{
    const struct need_job *job = filter->request.job;
    struct budget_need its;
    const struct budget_request request = budget_of(filter, filter->request.backend);
    enum status status = budget_measure(&request, &its);
    if (status)
        return status;
    int64_t record = (int64_t)its.analysis / filter->request.slots;
    int files = chain_files(filter->request.chain, WRITES_RECORDS, NULL, 0);
    need->host[NEED_STAGES] = (int64_t)its.stages.host;
    need->device[NEED_STAGES] = (int64_t)its.stages.device;
    need->host[NEED_REPORTS] = (int64_t)its.analysis + files * async_file_memory(job->live, record);
    return job->verifies ? measure_reference(filter, need) : STATUS_OK;
}

// True if frames come decoded on the GPU: those that it was made for, or will be, until the GPU is lost.
static bool comes_on_device(const struct filter *filter)
{
    struct backend *backend = filter->request.backend;
    return (filter->input.on_device || filter->request.job->on_device) &&
           !(backend->is_lost && backend->is_lost(backend));
}

// Frames: those in slots and those on their way to one, and one in the hands of each thread.
static void measure_frames(const struct filter *filter, struct need *need)
{
    enum { IN_HANDS = 4 };
    const struct need_job *job = filter->request.job;
    int64_t decoded = frame_bytes(filter, filter->input.pixel), made = 0;
    int held = filter->request.slots + job->frames_queued + IN_HANDS;
    bool on_device = comes_on_device(filter);
    for (int n = 0; n < program_pictures(&filter->program) && !filter->bypass; n++)
        made += filter_picture_bytes(filter, n);
    need->host[NEED_RING] = (filter->request.slots + 1) * made + (on_device ? 0 : held * decoded);
    if (filter->converts)
        need->host[NEED_RING] += held * frame_bytes(filter, filter->loaded);
    need->device[NEED_RING] = on_device ? held * decoded : 0;
}

// The decoder of a GPU has a fixed number of surfaces, as many as streams may refer to and as many again
// about, and memory of its own: what H.264 of 1080p and 4K took of an H200, and somewhat more.
static void measure_decoder(const struct filter *filter, struct need *need)
{
    enum { SURFACES = 37, OWN = 64 << 20 };
    const struct need_job *job = filter->request.job;
    int64_t bytes = frame_bytes(filter, filter->input.pixel);
    if (comes_on_device(filter)) {
        need->device[NEED_DECODER] = OWN + SURFACES * bytes;
        need->host[NEED_DECODER] = budget_history;
    } else {
        need->host[NEED_DECODER] = budget_estimate_decoder(job->codec, job->codec_threads, bytes) +
                                   (job->keeps_packets ? budget_history : 0);
    }
    need->host[NEED_DECODER] +=
        budget_codec + budget_of_queue(job->packets_queued, budget_packets, bytes);
}

static void measure_outputs(const struct filter *filter, struct need *need)
{
    const struct need_job *job = filter->request.job;
    int64_t bytes[MAX_PICTURES];
    for (int n = 0; n < MAX_PICTURES; n++)
        bytes[n] = frame_bytes(filter, filter->picture[n].pixel);
    need->host[NEED_OUTPUTS] = job->sink ? sink_estimate(job->sink, bytes, job->live) : 0;
}

enum status filter_measure(const struct filter *filter, struct need *need)
{
    *need = (struct need){.slots = filter->request.slots,
                          .width = filter->input.width,
                          .height = filter->input.height};
    measure_decoder(filter, need);
    measure_frames(filter, need);
    measure_outputs(filter, need);
    need->host[NEED_PAGE] = filter->request.job->page;
    return filter->bypass ? STATUS_OK : measure_stages(filter, need);
}

enum status filter_need(const struct filter_request *request, const AVFrame *frame,
                        struct need *need)
{
    AVFrame view = *frame;
    struct filter *filter;
    enum status status = filter_begin(request, &view, false, &filter);
    if (!status)
        status = filter_measure(filter, need);
    filter_destroy(&filter);
    return status;
}

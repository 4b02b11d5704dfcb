#include "pipeline/engine/job_memory.h"

#include <libavutil/cpu.h>

#include "base/host_memory.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/input/decoder.h"
#include "pipeline/report/report_writer.h"

// ---- before ----

bool memory_gpu_decodes(const struct sluice_config *config, const struct source *source)
{
    enum AVCodecID codec = source_video(source)->codecpar->codec_id;
    return config->hwdec != SLUICE_HWDEC_OFF && !config->repeatable &&
           decoder_has_hardware(codec) &&
           (config->hwdec == SLUICE_HWDEC_REQUIRE || !decoder_stays_on_cpu(codec));
}

void memory_of_job(const struct sluice_config *config, const struct source *source,
                   const struct backend *backend, const struct sink *sink, struct ceiling *ceiling,
                   struct need_job *need)
{
    *need = (struct need_job){
        .ceiling = ceiling,
        .codec = source ? source_video(source)->codecpar->codec_id : AV_CODEC_ID_NONE,
        .codec_threads = config->codec_threads,
        .on_device = source && backend->has_device_memory && memory_gpu_decodes(config, source),
        .packets_queued = source && source->pushed ? FRAMES_QUEUED : PACKETS_QUEUED,
        .frames_queued = FRAMES_QUEUED,
        .sink = sink,
        .live = source && source_is_live(source),
        .verifies = config->verify,
        .leaves_gpu = backend->gpus && !config_wants_gpu(config),
    };
}

bool memory_shape(const struct source *source, AVFrame *frame)
{
    frame->format = AV_PIX_FMT_YUV420P;
    frame->width = 1920;
    frame->height = 1080;
    if (!source)
        return true;
    const AVCodecParameters *about = source_video(source)->codecpar;
    frame->format = about->format;
    frame->width = about->width;
    frame->height = about->height;
    frame->color_range = about->color_range;
    frame->colorspace = about->color_space;
    frame->color_primaries = about->color_primaries;
    frame->color_trc = about->color_trc;
    frame->chroma_location = about->chroma_location;
    return about->format != AV_PIX_FMT_NONE && about->width > 0 && about->height > 0;
}

enum status job_memory_fit(struct sluice_job *job, const struct sluice_config *config)
{
    int wanted = job->slots = config_slots(config, job->backend, job->source);
    ceiling_open(config->mem, config->vram, job->backend, &job->log, &job->ceiling);
    memory_of_job(config, job->source, job->backend, job->sink, &job->ceiling, &job->need);
    job->need.keeps_packets = job->device_start && memory_gpu_decodes(config, job->source);
    job->need.claims = job->is_part; // another one may never run
    // A chain that is planned for later and does not fit is refused by the changes, with the first
    // frame, and they say when it would have come.
    const struct filter_request request = {.chain = &job->chain,
                                           .formats = job->formats,
                                           .backend = job->backend,
                                           .slots = wanted,
                                           .frames_in_flight = !job->source->is_still,
                                           .max_pixels = config_max_pixels(config),
                                           .strict = true,
                                           .job = &job->need,
                                           .log = &job->log};
    AVFrame *frame = av_frame_alloc();
    enum status status = frame ? STATUS_OK : STATUS_MEMORY;
    if (!status && memory_shape(job->source, frame))
        status = need_fit(&request, frame, &job->slots);
    av_frame_free(&frame);
    job->need.leaves_gpu = false; // once it is there
    if (!status && job->slots < wanted)
        log_print(&job->log, LOG_WARNING,
                  "%d frame%s in flight instead of %d: more do not fit into the %lld MiB of memory "
                  "that may be taken, or the GPU's",
                  job->slots, job->slots == 1 ? " is" : "s are", wanted,
                  (long long)(job->ceiling.host >> 20));
    return status;
}

// ---- once all is open ----

void job_memory_report(struct sluice_job *job, int64_t frame_bytes)
{
    const struct filter *filter = submit_filter(job->submit);
    int64_t out_bytes = 0, most_bytes = 0;
    for (int n = 0; n < job->pictures; n++) {
        int64_t bytes = budget_of_frame(job->first_props[n]);
        out_bytes += bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    int64_t slots = (job->slots + FRAMES_QUEUED + 4) * (frame_bytes + out_bytes) +
                    filter_analysis_bytes(filter);
    int64_t analysis_bytes = filter_analysis_bytes(filter) / job->slots;
    int64_t records = report_writer_memory(job->report_writer, analysis_bytes);
    int threads = job->codec_threads ? job->codec_threads : av_cpu_count();
    job->max_memory = host_memory_resident() + slots + 3 * budget_packets +
                      (job->need.on_device || job->gpu_need.on_device ? budget_history : 0) +
                      budget_of_decoder(threads, frame_bytes) + filter_memory(filter) +
                      sink_memory(job->sink, most_bytes) + records + job->tap.memory;
    if (source_is_live(job->source))
        log_print(&job->log, LOG_INFO, "memory stays below %lld MiB",
                  (long long)(job->max_memory >> 20) + 1);
}

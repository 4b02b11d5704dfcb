#include "pipeline/ffmpeg/budget.h"

#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"

int64_t budget_of_frame(const void *item)
{
    const AVFrame *frame = item;
    int64_t bytes = av_image_get_buffer_size(frame->format, frame->width, frame->height, 1);
    return bytes > 0 ? bytes : 0;
}

// True if it gives a packet for every frame at once.
static bool looks_ahead(const AVCodecContext *codec)
{
    uint8_t *tune = NULL;
    bool intra = avcodec_descriptor_get(codec->codec_id)->props & AV_CODEC_PROP_INTRA_ONLY;
    bool hurries = codec->codec->priv_class &&
                   av_opt_get(codec->priv_data, "tune", 0, &tune) >= 0 && tune &&
                   strstr((const char *)tune, "zerolatency");
    av_free(tune);
    return !intra && !hurries;
}

int64_t budget_of_encoder(const AVCodecContext *codec, int64_t frame_bytes)
{
    enum { REFERENCES = 20, AHEAD = 80, COPIES = 3 };
    int threads = codec->thread_count > 0 ? codec->thread_count : 2;
    return (REFERENCES + threads + (looks_ahead(codec) ? AHEAD : 0)) * COPIES * frame_bytes;
}

int64_t budget_of_decoder(int threads, int64_t frame_bytes)
{
    enum { REFERENCES = 20 };
    return (REFERENCES + 2 * threads) * frame_bytes * 5 / 4;
}

int64_t budget_resident(void)
{
    long long pages = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    bool known = from && fscanf(from, "%*s %lld", &pages) == 1;
    if (from)
        fclose(from);
    return known ? pages * sysconf(_SC_PAGESIZE) : 0;
}

int64_t budget_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

// The bytes of a frame's analysis; *most is the operation that has the most of them.
static size_t analysis_bytes(const struct budget_request *request, const struct op **most)
{
    const struct program *program = request->plan->program;
    size_t bytes = 0, largest = 0;
    for (int k = 0; k < program->analyses && !request->without_analyses; k++) {
        size_t its = program_analysis_bytes(program, k, request->width, request->height);
        if (its > largest)
            *most = &program->op[program->analysis[k]];
        largest = its > largest ? its : largest;
        bytes += its;
    }
    return bytes;
}

static enum status refuse(const struct budget_request *request, size_t analysis, size_t work,
                          const struct op *most)
{
    char part[96] = "";
    size_t slots = (size_t)request->slots, all = analysis * slots + work;
    if (most)
        snprintf(part, sizeof part, ", %zu of them for the analysis of %s", analysis >> 20,
                 op_name(most));
    return fail(request->log, STATUS_USAGE,
                "each of %zu frames of %dx%d in flight takes %zu MiB%s; that is %zu MiB, and half "
                "of this machine's memory may be taken, %zu MiB. Fewer scales or templates, a "
                "smaller picture or --ring 1 take less",
                slots, request->width, request->height, all / slots >> 20, part, all >> 20,
                request->backend->memory_limit >> 20);
}

enum status budget_check(const struct budget_request *request)
{
    struct backend *backend = request->backend;
    size_t limit = backend->memory_limit, work = 0;
    const struct op *most = NULL;
    size_t analysis = analysis_bytes(request, &most), all = analysis * (size_t)request->slots;
    enum status status = STATUS_OK;
    if (limit && all <= limit && backend->executor_measure)
        status = backend->executor_measure(backend, request->plan, request->width, request->height,
                                           request->slots, request->frames_in_flight, &work);
    return status                        ? status
           : limit && all + work > limit ? refuse(request, analysis, work, most)
                                         : STATUS_OK;
}

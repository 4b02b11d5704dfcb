#include "pipeline/input/decoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/decoder_internal.h"
#include "pipeline/input/io/probe.h"
#include "pipeline/input/part_span.h"

enum status decoder_create_for(const struct decoder_request *request, const struct source *source,
                               const AVCodecParameters *about, struct backend *backend,
                               struct decoder **decoder)
{
    assert(request->hwdec != HWDEC_REQUIRE || !request->repeatable);
    assert(!request->later.get || (request->rescues && request->hwdec != HWDEC_REQUIRE));
    *decoder = calloc(1, sizeof **decoder);
    struct decoder *made = *decoder;
    if (!made)
        return STATUS_MEMORY;
    made->source = source;
    made->log = source->log;
    made->backend = backend;
    made->request = *request;
    made->awaits = request->later.get;
    made->given_pts = made->resume_pts = made->times.last = AV_NOPTS_VALUE;
    pthread_mutex_init(&made->pool_lock, NULL);
    made->about = avcodec_parameters_alloc();
    enum status status = STATUS_MEMORY;
    if (made->about && avcodec_parameters_copy(made->about, about) >= 0)
        status = decoder_check_stream(made);
    if (!status)
        status = decoder_choose_hardware(made);
    if (!status)
        status = decoder_open_codec(made);
    bool by_gpu = made->hardware || (made->awaits && decoder_likes_hardware(made));
    if (!status && by_gpu)
        status = history_create(made->about, request->frames_held, &made->history);
    if (!status && by_gpu && request->rescues)
        status = rescue_create(&made->rescue);
    if (status)
        decoder_destroy(decoder);
    return status;
}

enum status decoder_create(const struct decoder_request *request, const struct source *source,
                           struct backend *backend, struct decoder **decoder)
{
    return decoder_create_for(request, source, source_video(source)->codecpar, backend, decoder);
}

void decoder_destroy(struct decoder **decoder)
{
    if (!*decoder)
        return;
    struct decoder *old = *decoder;
    rescue_destroy(&old->rescue);
    avcodec_free_context(&old->codec);
    av_buffer_unref(&old->memory);
    av_buffer_unref(&old->hardware);
    if (old->stream)
        old->backend->stream_destroy(old->backend, &old->stream);
    av_buffer_pool_uninit(&old->pool);
    av_frame_free(&old->times.kept);
    history_destroy(&old->history);
    packet_destroy(&old->pending);
    avcodec_parameters_free(&old->about);
    pthread_mutex_destroy(&old->pool_lock);
    free(old);
    *decoder = NULL;
}

// ---- decoding ----

// True if the GPU's decoder has not given a frame yet, and may be unable to.
static bool is_untried(const struct decoder *decoder)
{
    return decoder->hardware && !decoder->began;
}

// True if the job has lost the GPU: what was decoded there and is not filtered is decoded again.
static bool is_lost(const struct decoder *decoder)
{
    return decoder->rescue && decoder->hardware && history_is_frozen(decoder->history);
}

// Look whether an error of the GPU's decoder is the stream's, or whether the GPU works no more.
static bool notice_loss(struct decoder *decoder)
{
    struct backend *backend = decoder->backend;
    if (decoder->rescue && decoder->hardware && backend->is_lost && backend->is_lost(backend))
        history_freeze(decoder->history);
    return is_lost(decoder);
}

// True if the packets that come are kept: the GPU has them, or will.
static bool keeps_packets(const struct decoder *decoder)
{
    return decoder->history && (decoder->hardware || decoder->awaits);
}

// True if damage at this pts counts.
static bool is_counted(const struct decoder *decoder, int64_t pts)
{
    return part_span_has(decoder->request.part, pts, source_video(decoder->source)->time_base);
}

// Count a packet that the demuxer marks as damaged: the decoder may not notice, as a picture of
// HEVC that lost its tail is given out as whole.
static void count_marked(struct decoder *decoder, const AVPacket *packet)
{
    if (!packet || !(packet->flags & AV_PKT_FLAG_CORRUPT) || !is_counted(decoder, packet->pts))
        return;
    decoder->marked++;
    decoder->damaged_packets++;
}

// Count a packet that the decoder refuses. Those that were marked are counted already. Decoders of
// several threads tell a packet's damage some packets later: where another decoder takes over, some may
// count twice, or be taken for the one that is noted.
static void count_refused(struct decoder *decoder, int error)
{
    decoder->last_error = error;
    if (decoder->is_judged)
        return;
    if (keeps_packets(decoder) && !decoder->replaying)
        history_note_refused(decoder->history);
    bool counts = !decoder->marked && is_counted(decoder, decoder->last_pts);
    if (is_untried(decoder)) {
        decoder->untried.counted += counts;
        decoder->untried.marked += decoder->marked > 0;
    }
    decoder->marked -= decoder->marked > 0;
    decoder->damaged_packets += counts;
}

// libavcodec's error, less "no memory" where some pictures of the stream's size find room: decoders
// answer it to damage, too. The GPU's memory is not asked.
static int decoder_error(const struct decoder *decoder, int error)
{
    if (decoder->hardware)
        return error;
    const int64_t pictures = 4, bytes_of_pixel = 8;
    const AVCodecParameters *about = decoder->about;
    return input_error(error, (int64_t)about->width * about->height * pictures * bytes_of_pixel);
}

// True if a packet of nothing says that the picture stays: Theora in Ogg has them (FFmpeg 9.0).
static bool is_nothing(const AVPacket *packet)
{
    return packet && !packet->size && (packet->data || !packet->side_data_elems);
}

static enum status send(struct decoder *decoder, const AVPacket *packet)
{
    if (is_nothing(packet))
        return STATUS_OK;
    if (packet)
        decoder->last_pts = packet->pts;
    if (is_lost(decoder)) // it is in the history
        return STATUS_OK;
    int error = decoder_error(decoder, avcodec_send_packet(decoder->codec, packet));
    decoder->packets += packet && packet->size;
    if (error == AVERROR(ENOMEM))
        return STATUS_MEMORY;
    if (error < 0 && error != AVERROR_EOF && !notice_loss(decoder))
        count_refused(decoder, error);
    return STATUS_OK;
}

static enum status check_encryption(const struct decoder *decoder, const AVPacket *packet)
{
    if (packet && av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL))
        return log_fail(decoder->log, STATUS_INPUT,
                        "%s is encrypted; sluice needs the video in the clear",
                        decoder->source->name);
    return STATUS_OK;
}

// Check the size by the first packet where the container does not say it.
static enum status check_unknown_size(const struct decoder *decoder, const AVPacket *packet)
{
    int width, height;
    bool unknown = packet && packet->size && !decoder->began && !decoder->about->width;
    return unknown && probe_picture(decoder->about, packet, &width, &height)
               ? decoder_check_pixels(decoder, width, height)
               : STATUS_OK;
}

static enum status send_packet(struct decoder *decoder, const AVPacket *packet)
{
    enum status status = check_encryption(decoder, packet);
    if (!status)
        status = check_unknown_size(decoder, packet);
    if (!status && packet && keeps_packets(decoder))
        status = history_add(decoder->history, packet);
    if (status)
        return status;
    count_marked(decoder, packet);
    decoder->draining |= !packet;
    return send(decoder, packet);
}

enum status decoder_send(struct decoder *decoder, const struct packet *packet)
{
    if (!packet || !packet->restart)
        return send_packet(decoder, packet ? packet->av : NULL);
    assert(!decoder->pending); // all frames were received before
    decoder->pending = packet_clone(packet);
    if (!decoder->pending)
        return STATUS_MEMORY;
    return is_untried(decoder) ? STATUS_OK : send(decoder, NULL);
}

// Begin anew with the pending packet: what was in the decoder has come out.
static enum status restart(struct decoder *decoder)
{
    enum status status = STATUS_OK;
    struct packet *packet = decoder->pending;
    assert(packet && packet->restart);
    decoder->pending = NULL;
    decoder->replayed = 0;
    decoder->untried.counted = decoder->untried.marked = 0;
    decoder->given_pts = decoder->resume_pts = AV_NOPTS_VALUE;
    decoder_times_forget(decoder);
    if (packet->codec) {
        avcodec_parameters_free(&decoder->about);
        decoder->about = packet->codec;
        packet->codec = NULL;
        status = decoder_check_stream(decoder);
        if (!status && decoder->hardware && !decoder_has_hardware(decoder->about->codec_id))
            av_buffer_unref(&decoder->hardware);
        if (!status)
            status = decoder_open_codec(decoder);
        decoder->began = false;
    } else {
        avcodec_flush_buffers(decoder->codec);
    }
    if (!status && decoder->hardware && !decoder->history)
        status = history_create(decoder->about, decoder->request.frames_held, &decoder->history);
    else if (!status && decoder->history)
        status = history_restart(decoder->history, decoder->about);
    if (!status && packet->av->size)
        status = send_packet(decoder, packet->av);
    packet_destroy(&packet);
    return status;
}

// Begin again in software, with all packets so far: the GPU was to decode and does not.
static enum status fall_back(struct decoder *decoder)
{
    const char *codec = decoder->codec->codec->name;
    if (decoder->request.hwdec == HWDEC_REQUIRE)
        return log_fail(decoder->log, STATUS_DEVICE,
                        "--hwdec require: the GPU does not decode this %s stream", codec);
    log_print(decoder->log, LOG_INFO, "the GPU does not decode this %s stream: the CPU does",
              codec);
    av_buffer_unref(&decoder->hardware);
    history_forget_refused(decoder->history);
    decoder->damaged_packets -= decoder->untried.counted;
    decoder->marked += decoder->untried.marked;
    decoder->replayed = 0;
    decoder->replaying = true;
    return decoder_open_codec(decoder);
}

// True if a frame of this time, if there was one, was given out by the decoder before this one.
static bool is_given_again(const struct decoder *decoder, int64_t pts)
{
    return decoder->resume_pts != AV_NOPTS_VALUE && pts != AV_NOPTS_VALUE &&
           pts <= decoder->resume_pts;
}

static void finish_frame(struct decoder *decoder, AVFrame *frame)
{
    bool damaged = frame->decode_error_flags || frame->flags & AV_FRAME_FLAG_CORRUPT;
    AVStream *video = source_video(decoder->source);
    int64_t duration = frame_duration(frame);
    if (duration <= 0) {
        AVRational rate = video->avg_frame_rate.num ? video->avg_frame_rate : video->r_frame_rate;
        duration = rate.num ? av_rescale_q(1, av_inv_q(rate), video->time_base) : 1;
    }
    frame->sample_aspect_ratio =
        av_guess_sample_aspect_ratio(decoder->source->format, video, frame);
    frame->pts = frame->best_effort_timestamp;
    bool is_guessed = frame->pts == AV_NOPTS_VALUE;
    if (is_guessed)
        frame->pts = decoder->next_pts;
    decoder->next_pts = frame->pts + (duration > 0 ? duration : 1);
    if (is_given_again(decoder, frame->pts))
        return;
    decoder->damaged_frames += damaged && is_counted(decoder, frame->pts);
    if (decoder->rescue && keeps_packets(decoder))
        history_note_frame(decoder->history, frame->pts, is_guessed);
}

// Begin again in software behind the frame that was given out last: the GPU is lost.
static enum status leave_gpu(struct decoder *decoder)
{
    if (!history_reaches(decoder->history, decoder->given_pts))
        return log_fail(
            decoder->log, STATUS_DEVICE,
            "the GPU decodes no more, and the packets from the last key frame on, which "
            "the CPU would need, were too many to keep, or without times");
    av_buffer_unref(&decoder->hardware);
    decoder_times_forget(decoder);
    decoder->resume_pts = decoder->given_pts;
    decoder->replayed = 0;
    decoder->replaying = true;
    return decoder_open_codec(decoder);
}

// True if the packet that the GPU was given as the history's `number` has no more to tell by being
// refused now: the GPU refused it, too, or the frame that it guessed instead was given out. Behind that
// a refusal may be of a frame that is still to come, whatever the GPU made of its packet.
static bool is_judged(const struct decoder *decoder, const AVPacket *packet, int number)
{
    return history_was_refused(decoder->history, number) || is_given_again(decoder, packet->pts);
}

// Send the next of the packets that the GPU had first, then the end if it had come. Returns whether
// there was anything to send.
static bool replay(struct decoder *decoder, enum status *status)
{
    AVPacket *packet;
    if (!decoder->replaying)
        return false;
    *status = history_packet(decoder->history, decoder->replayed, &packet);
    decoder->is_judged = packet && is_judged(decoder, packet, decoder->replayed);
    if (packet) {
        decoder->replayed++;
        *status = send(decoder, packet);
        av_packet_free(&packet);
        return true;
    }
    bool ends = decoder->draining || decoder->pending;
    decoder->replaying = false;
    // Other threads may look for a GPU's frames in the history: it stays, and empty.
    if (decoder->hardware)
        history_end_again(decoder->history);
    else if (!decoder->rescue)
        history_destroy(&decoder->history);
    else if (!*status)
        *status = history_restart(decoder->history, decoder->about);
    if (!*status && ends)
        *status = send(decoder, NULL);
    return ends;
}

// Give a frame of the codec's, which shows that it works. *again: it was given out before.
static enum status accept_frame(struct decoder *decoder, AVFrame *frame, bool *again)
{
    decoder->began = true;
    if (!decoder->replaying && !decoder->rescue)
        history_destroy(&decoder->history);
    enum status status = decoder_check_pixels(decoder, frame->width, frame->height);
    if (!status)
        finish_frame(decoder, frame);
    *again = !status && is_given_again(decoder, frame->pts);
    if (status || *again) {
        av_frame_unref(frame);
        return status;
    }
    decoder->given_pts = frame->pts;
    decoder->resume_pts = AV_NOPTS_VALUE;
    return STATUS_OK;
}

enum status decoder_enter_gpu(struct decoder *decoder)
{
    history_begin_again(decoder->history);
    decoder_times_forget(decoder);
    decoder->began = false;
    decoder->untried.counted = decoder->untried.marked = 0;
    decoder->resume_pts = decoder->given_pts;
    decoder->replayed = 0;
    decoder->replaying = true;
    return decoder_open_codec(decoder);
}

// The GPU is coming no more, or decodes nothing of this stream: no packets are kept for it.
static enum status stay_in_software(struct decoder *decoder)
{
    decoder->awaits = false;
    return decoder->history ? history_restart(decoder->history, decoder->about) : STATUS_OK;
}

// The backend, if it is known by now. Of long groups software decodes no more than half of what may be
// kept, and waits then: the GPU would have to wait for the next group, if there is one.
static struct backend *await_backend(const struct decoder *decoder)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const struct backend_later *later = &decoder->request.later;
    struct backend *backend = later->get(later->opaque);
    while (!backend && decoder->history && history_is_half_full(decoder->history) &&
           !*decoder->source->stop) {
        nanosleep(&moment, NULL);
        backend = later->get(later->opaque);
    }
    return backend;
}

// Go over to the GPU as soon as it is there. Packets that do not reach back far enough do so with the
// next key frame.
static enum status look_for_gpu(struct decoder *decoder)
{
    if (decoder->draining || decoder->pending || decoder->replaying)
        return STATUS_OK;
    struct backend *backend = await_backend(decoder);
    if (!backend)
        return STATUS_OK;
    if (backend != decoder->backend)
        decoder_change_backend(decoder, backend);
    bool is_lost = backend->is_lost && backend->is_lost(backend);
    if (!decoder->history || !backend->has_device_memory || is_lost)
        return stay_in_software(decoder);
    bool reaches = decoder->given_pts != AV_NOPTS_VALUE &&
                   history_reaches(decoder->history, decoder->given_pts);
    if (!reaches)
        return STATUS_OK;
    enum status status = decoder_choose_hardware(decoder);
    if (status || !decoder->hardware)
        return status ? status : stay_in_software(decoder);
    decoder->awaits = false;
    return decoder_enter_gpu(decoder);
}

// Make the decoder what it has to be before it is asked for a frame.
static enum status prepare(struct decoder *decoder)
{
    if (is_lost(decoder))
        return leave_gpu(decoder);
    if (decoder->awaits)
        return look_for_gpu(decoder);
    if (!is_untried(decoder))
        return STATUS_OK;
    return decoder->pending                    ? restart(decoder)
           : history_is_full(decoder->history) ? fall_back(decoder)
                                               : STATUS_OK;
}

// The next frame of the codec, in memory that may be kept. One that is lost with the GPU meanwhile was
// not given. Returns FFmpeg's code; *status is what is no error of the stream's.
static int take_frame(struct decoder *decoder, AVFrame *frame, enum status *status)
{
    int error = decoder_error(decoder, avcodec_receive_frame(decoder->codec, frame));
    if (error < 0)
        return error;
    *status = decoder_copy_surface(decoder, frame);
    if (!*status)
        return error;
    av_frame_unref(frame);
    if (*status == STATUS_DEVICE && notice_loss(decoder))
        *status = STATUS_OK;
    return AVERROR_EXTERNAL;
}

// The same, with a time that is certain. A frame that shows the GPU unable to decode is no frame.
static int take_timed_frame(struct decoder *decoder, AVFrame *frame, enum status *status)
{
    bool gives = decoder_times_give(decoder, false, frame);
    int error = 0;
    while (!gives) {
        error = take_frame(decoder, frame, status);
        if (error == AVERROR_EOF && decoder_times_give(decoder, true, frame))
            return 0;
        if (*status || error < 0 || (is_untried(decoder) && frame->format != AV_PIX_FMT_CUDA))
            return error;
        *status = decoder_times_take(decoder, frame, &gives);
        gives |= *status != STATUS_OK;
    }
    return error;
}

enum status decoder_receive(struct decoder *decoder, AVFrame *frame, bool *got)
{
    enum status status = STATUS_OK;
    *got = false;
    while (!status) {
        status = prepare(decoder);
        if (status)
            return status;
        int error = take_timed_frame(decoder, frame, &status);
        if (status)
            return status;
        bool ended = error == AVERROR_EOF, on_cpu = error >= 0 && frame->format != AV_PIX_FMT_CUDA;
        bool again = false;
        if (ended && decoder->pending) {
            status = restart(decoder);
        } else if (is_untried(decoder) && (ended || on_cpu)) {
            av_frame_unref(frame);
            status = fall_back(decoder);
        } else if (error >= 0) {
            status = accept_frame(decoder, frame, &again);
            *got = !status && !again;
            if (!again)
                return status;
        } else if (ended) {
            return STATUS_EOF;
        } else if (error == AVERROR(ENOMEM)) {
            return STATUS_MEMORY;
        } else if (error != AVERROR(EAGAIN)) {
            if (!notice_loss(decoder))
                count_refused(decoder, error);
        } else if (!replay(decoder, &status)) {
            return status;
        }
    }
    return status;
}

bool decoder_is_idle(const struct decoder *decoder)
{
    return !decoder->packets;
}

void decoder_explain(const struct decoder *decoder, char *text, size_t size)
{
    const char *codec = decoder->codec->codec->name;
    char words[AV_ERROR_MAX_STRING_SIZE] = "";
    bool bare = decoder->last_error == -1; // of older decoders, which have no code for it
    av_strerror(bare ? AVERROR_INVALIDDATA : decoder->last_error, words, sizeof words);
    if (!decoder->packets)
        snprintf(text, size, "of its video only the header is there");
    else if (!decoder->last_error)
        snprintf(text, size,
                 "the %s decoder makes no picture of its %lld packets and gives no reason; the key "
                 "frame may be missing (-v shows more)",
                 codec, (long long)decoder->packets);
    else
        snprintf(text, size, "the %s decoder refuses its video: %s (-v shows more)", codec, words);
}

int64_t decoder_damaged_packets(const struct decoder *decoder)
{
    return decoder->damaged_packets;
}

int64_t decoder_damaged_frames(const struct decoder *decoder)
{
    return decoder->damaged_frames;
}

const char *decoder_name(const struct decoder *decoder)
{
    return decoder->name;
}

enum AVPixelFormat decoder_pixel(const struct decoder *decoder)
{
    return decoder->hardware ? decoder->codec->sw_pix_fmt : decoder->codec->pix_fmt;
}

struct backend *decoder_backend(const struct decoder *decoder)
{
    return decoder->backend;
}

void *decoder_stream(const struct decoder *decoder)
{
    return decoder->hardware ? decoder->stream : NULL;
}

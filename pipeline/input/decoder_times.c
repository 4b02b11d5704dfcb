// Times of frames that come from the codec, in the order in which they are shown. One time that is damaged
// and far ahead is put right: whatever goes by time, an encoder for one, would take all frames up to it
// for late.
//
// A frame that is further ahead than two frames last is kept until the next one comes. Where that is behind
// it, and there is room before that for one frame, the time was damaged; else there is a gap, or frames are out
// of order, and both are left as they are. What plays in its own time waits for no frame.
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/decoder_internal.h"

// How long a frame lasts; 0: unknown.
static int64_t length_of(const struct decoder *decoder, const AVFrame *frame)
{
    const AVStream *video = source_video(decoder->source);
    AVRational rate = video->avg_frame_rate.num > 0 ? video->avg_frame_rate : video->r_frame_rate;
    int64_t length = frame_duration(frame);
    return length > 0     ? length
           : rate.num > 0 ? av_rescale_q(1, av_inv_q(rate), video->time_base)
                          : 0;
}

// Note a frame that is given.
static void note(struct decoder *decoder, const AVFrame *frame)
{
    if (frame->best_effort_timestamp == AV_NOPTS_VALUE)
        return;
    decoder->times.last = frame->best_effort_timestamp;
    decoder->times.length = length_of(decoder, frame);
}

// True if it is far ahead of the frame that was given last.
static bool is_ahead(const struct decoder *decoder, const AVFrame *frame)
{
    int64_t last = decoder->times.last, length = decoder->times.length;
    int64_t at = frame->best_effort_timestamp;
    return last != AV_NOPTS_VALUE && at != AV_NOPTS_VALUE && length > 0 && at - last > 2 * length;
}

// True if a frame's time is the one that its packet has for showing.
static bool is_by_pts(const AVFrame *frame)
{
    return frame->pts != AV_NOPTS_VALUE && frame->pts == frame->best_effort_timestamp;
}

// Behind a time for showing that is damaged libavcodec goes by those for decoding for good, which may be
// some frames off. The others are as good as before.
static void go_by_pts(const struct decoder *decoder, AVFrame *frame)
{
    bool by_pts = decoder->times.waits ? is_by_pts(decoder->times.kept) : decoder->times.by_pts;
    if (by_pts && frame->pts != AV_NOPTS_VALUE && frame->pts > decoder->times.last)
        frame->best_effort_timestamp = frame->pts;
}

// Put the time of the frame that is kept right if the next one shows that it is damaged.
static void correct(struct decoder *decoder, const AVFrame *next)
{
    AVFrame *kept = decoder->times.kept;
    int64_t last = decoder->times.last, length = decoder->times.length;
    int64_t at = kept->best_effort_timestamp, after = next->best_effort_timestamp;
    if (after == AV_NOPTS_VALUE || after > at || after - last < length + length / 2)
        return;
    decoder->times.by_pts |= is_by_pts(kept);
    kept->best_effort_timestamp = last + length;
    log_print(decoder->log, LOG_INFO,
              "the time of a frame of %s is damaged, ahead by %.1f s: it follows the frame before",
              decoder->source->name,
              (double)(at - last - length) * av_q2d(source_video(decoder->source)->time_base));
}

bool decoder_times_give(struct decoder *decoder, bool ended, AVFrame *frame)
{
    AVFrame *kept = decoder->times.kept;
    if (!kept || (decoder->times.waits && !ended))
        return false;
    av_frame_move_ref(frame, kept);
    av_frame_free(&decoder->times.kept);
    decoder->times.waits = false;
    note(decoder, frame);
    return true;
}

enum status decoder_times_take(struct decoder *decoder, AVFrame *frame, bool *gives)
{
    bool waits = decoder->times.waits;
    *gives = true;
    if (source_is_live(decoder->source) || decoder->source->pushed)
        return STATUS_OK;
    go_by_pts(decoder, frame);
    if (!waits && !is_ahead(decoder, frame)) {
        note(decoder, frame);
        return STATUS_OK;
    }
    AVFrame *next = av_frame_alloc();
    if (!next)
        return STATUS_MEMORY;
    if (waits) {
        correct(decoder, frame);
        note(decoder, decoder->times.kept);
    }
    decoder->times.waits = is_ahead(decoder, frame);
    av_frame_move_ref(next, frame);
    if (waits)
        av_frame_move_ref(frame, decoder->times.kept);
    av_frame_free(&decoder->times.kept);
    decoder->times.kept = next;
    *gives = waits;
    return STATUS_OK;
}

void decoder_times_forget(struct decoder *decoder)
{
    av_frame_free(&decoder->times.kept);
    decoder->times.waits = decoder->times.by_pts = false;
    decoder->times.last = AV_NOPTS_VALUE;
}

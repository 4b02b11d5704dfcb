#include "pipeline/input/source.h"

#include <assert.h>
#include <errno.h>
#include <libavutil/avstring.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/io/mpegts.h"
#include "pipeline/input/io/truncation.h"
#include "pipeline/input/pushed.h"
#include "pipeline/input/raw.h"
#include "pipeline/input/source_open.h"

// ---- life ----

enum status source_open(const struct source_request *request, const struct log *log,
                        const atomic_bool *stop, struct source **source)
{
    assert(request->name && log && stop);
    *source = calloc(1, sizeof **source);
    struct source *made = *source;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->stop = stop;
    made->video = -1;
    made->returns = request->reconnects >= 0;
    outage_init(&made->outage);
    made->open_ns = (int64_t)((request->open_timeout > 0 ? request->open_timeout : 10) * 1e9);
    made->stall_ns = (int64_t)((request->stall_timeout > 0 ? request->stall_timeout : 5) * 1e9);
    made->is_stdin = !strcmp(request->name, "-");
    bool may_be_sequence = !request->format || !strcmp(request->format, "image2");
    const char *format, *what;
    made->is_sequence = !made->is_stdin && !url_is_device(request->name, &format, &what) &&
                        !url_has_scheme(request->name) && may_be_sequence &&
                        (url_is_numbered(request->name) || url_is_globbed(request->name));
    size_t room = strlen(request->name) + 64;
    made->name = malloc(room);
    enum status status = made->name ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        status = simulate_create(request->simulate, log, &made->simulate);
    if (!status) {
        url_without_secrets(made->is_stdin ? "standard input" : request->name, made->name, room);
        status = source_begin(made, request);
    }
    if (status)
        source_close(source);
    return status;
}

enum status source_check(const struct source_request *request, const struct log *log)
{
    const char *name = request->name, *format, *what;
    bool plain = !request->push && strcmp(name, "-") && !url_is_device(name, &format, &what) &&
                 !url_has_scheme(name) && !url_is_numbered(name) && !url_is_globbed(name);
    bool described = request->format || request->width || request->rate.num || request->pixfmt;
    if (!plain || described || !access(name, F_OK) || errno != ENOENT)
        return STATUS_OK;
    return log_fail(log, STATUS_INPUT, "%s cannot be opened: %s", name, strerror(errno));
}

void source_close(struct source **source)
{
    if (!*source)
        return;
    struct source *old = *source;
    pushed_close(&old->pushed);
    raw_close(&old->raw);
    if (old->live)
        live_close(&old->live);
    else
        avformat_close_input(&old->format);
    input_io_close(&old->io);
    simulate_unref(&old->simulate);
    reach_unref(&old->reach);
    stamps_finish(&old->stamps);
    clock_finish(&old->clock);
    outage_finish(&old->outage);
    free(old->name);
    free(old);
    *source = NULL;
}

// ---- packets ----

static const int64_t poll_ns = 100000000;

static bool may_jump(const struct source *source)
{
    return source->format->iformat->flags & AVFMT_TS_DISCONT || simulate_jumps(source->simulate);
}

static void note_end(struct source *source, const AVPacket *packet)
{
    AVRational base = source->format->streams[packet->stream_index]->time_base;
    if (packet->pts == AV_NOPTS_VALUE)
        return;
    int64_t end = av_rescale_q(packet->pts + packet->duration, base, AV_TIME_BASE_Q);
    if (end > source->end_us)
        source->end_us = end;
}

// The beginning of the clock of a file that plays at its own pace.
static int64_t pace_begin_us(const struct source *source)
{
    int64_t begin = source->format->start_time;
    if (source->start != AV_NOPTS_VALUE)
        begin = source->start;
    return begin == AV_NOPTS_VALUE ? 0 : begin;
}

// The time at which a packet is due.
static int64_t due_ns(const struct source *source, const AVPacket *packet)
{
    const AVStream *stream = source->format->streams[packet->stream_index];
    int64_t at = av_rescale_q(packet->dts, stream->time_base, AV_TIME_BASE_Q);
    return source->paced_ns + (at - pace_begin_us(source)) * 1000;
}

// Wait until a packet is due.
static void keep_pace(const struct source *source, const AVPacket *packet)
{
    if (!source->paced_ns || packet->dts == AV_NOPTS_VALUE)
        return;
    int64_t due = due_ns(source, packet);
    while (!source_is_over(source) && meter_now_ns() < due) {
        int64_t left = due - meter_now_ns();
        nanosleep(&(struct timespec){.tv_nsec = left < poll_ns ? left : poll_ns}, NULL);
    }
}

// Continuity of a transport stream from this packet on.
static enum mpegts_continuity look_at_bytes(const struct source *source, const AVPacket *packet,
                                            int pes_max)
{
    const AVStream *stream = source->format->streams[packet->stream_index];
    AVRational rate = stream->avg_frame_rate, clock = {1, 90000};
    const struct mpegts_place place = {source->io, packet->pos, stream->id};
    int64_t frame = packet->duration > 0 ? av_rescale_q(packet->duration, stream->time_base, clock)
                    : rate.num > 0       ? av_rescale_q(1, av_inv_q(rate), clock)
                                         : 0;
    return source_is_mpegts(source) && packet->pos >= 0 ? mpegts_look(&place, pes_max, frame)
                                                        : MPEGTS_KEPT;
}

// Correct the demuxer's mark of damage. The parser gives out a picture when it has seen the next
// one begin, marked as that one is. Segments of a playlist are fetched whole, and many begin their
// counters anew: there the mark says nothing.
static void fix_mark(const struct source *source, AVPacket *packet)
{
    bool marked = packet->flags & AV_PKT_FLAG_CORRUPT, first = !source->images_read;
    if (packet->stream_index != source->video)
        return;
    if (av_match_name("hls", source->format->iformat->name) ||
        (marked && look_at_bytes(source, packet, 2) == MPEGTS_JOINED))
        packet->flags &= ~AV_PKT_FLAG_CORRUPT;
    else if (!marked && first && look_at_bytes(source, packet, 1) == MPEGTS_BROKEN)
        packet->flags |= AV_PKT_FLAG_CORRUPT;
}

static enum status read_live(struct source *source, struct packet **packet)
{
    enum status status = live_read(source->live, packet);
    if (status == STATUS_STOPPED && !atomic_load(source->stop))
        return STATUS_EOF; // cancelled
    source->broken |= status == STATUS_EOF;
    if (!status)
        fix_mark(source, (*packet)->av);
    return status;
}

// A file at its own pace is lost when nothing comes for as long as of a live source.
static bool stalls(const struct source *source, int error)
{
    return error == AVERROR_EXIT && source_is_late(source) && !source_is_over(source) &&
           source_may_be_lost(source) && source->returns;
}

// Read on behind holes: at one, as in a transport stream, a demuxer wants to be asked again.
static int read_past_holes(struct source *source, AVPacket *packet)
{
    AVIOContext *io = source->format->pb;
    for (;;) {
        int64_t before = io ? avio_tell(io) : 0;
        int error = simulate_read(source->simulate, source->format, source->video, packet);
        if (error != AVERROR(EAGAIN))
            return error;
        source->hole = true;
        if (!io || avio_tell(io) <= before || source_is_over(source))
            return error;
    }
}

void source_map(struct source *source)
{
    assert(!source->raw);
    if (source->io && !source->live && !source->pushed && !source->simulate)
        source->raw = raw_open(source->format, source->io);
}

// Read the demuxer's next packet, waiting while the source is lost.
static int read_demuxer(struct source *source, AVPacket *packet)
{
    if (source->raw && raw_read(source->raw, source->format, packet))
        return 0;
    for (;;) {
        source_set_deadline(source, source->stall_ns);
        if (source_may_be_lost(source))
            source->deadline_ns = source->outage.since_ns ? 0 : meter_now_ns() + source->stall_ns;
        int error = read_past_holes(source, packet);
        if (source->raw && error >= 0)
            raw_note(source->raw, packet);
        if (!stalls(source, error))
            return error;
        log_print(source->log, LOG_WARNING, "%s is lost: no picture for %g s", source->name,
                  (double)source->stall_ns * 1e-9);
        outage_begin(&source->outage);
    }
}

// Move a packet by the time that the file was lost: the clock went on with the world's.
static void follow_outage(struct source *source, AVPacket *packet)
{
    AVRational base = source->format->streams[packet->stream_index]->time_base;
    if (source->outage.since_ns) {
        log_print(source->log, LOG_INFO, "%s is back after %.1f s", source->name,
                  (double)outage_end(&source->outage) * 1e-9);
        int64_t late_ns =
            packet->dts == AV_NOPTS_VALUE ? 0 : meter_now_ns() - due_ns(source, packet);
        source->outage.lag_us = late_ns > 0 ? late_ns / 1000 : 0;
    }
    int64_t lag = av_rescale_q(source->outage.lag_us, AV_TIME_BASE_Q, base);
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts += lag;
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts += lag;
}

// True if somebody else shortened the file meanwhile.
static bool has_shrunk(const struct source *source)
{
    if (!source->io || !input_io_has_shrunk(source->io))
        return false;
    log_print(source->log, LOG_WARNING, "%s became shorter while it was read", source->name);
    return true;
}

// Mark the picture behind a hole as damaged: it, or the one before, lacks what was there.
static void mark_hole(struct source *source, AVPacket *packet)
{
    if (!source->hole || packet->stream_index != source->video)
        return;
    packet->flags |= AV_PKT_FLAG_CORRUPT;
    source->hole = false;
}

// Read the demuxer's next packet, marked if it is damaged.
static enum status demux(struct source *source, AVPacket *packet)
{
    int error = read_demuxer(source, packet);
    source->broken |= source_log_refusal(source); // a part is missing
    if (atomic_load(source->stop))
        return STATUS_STOPPED;
    if (source->cancelled)
        return STATUS_EOF;
    error = input_error(error, 0);
    if (error == AVERROR(ENOMEM))
        return STATUS_MEMORY;
    if (error == AVERROR_EOF) {
        source->broken |= source->hole || source_read_error(source) || has_shrunk(source);
        return STATUS_EOF;
    }
    if (error < 0) {
        char words[AV_ERROR_MAX_STRING_SIZE];
        av_strerror(source_is_late(source) ? AVERROR(ETIMEDOUT) : error, words, sizeof words);
        log_print(source->log, LOG_WARNING, "%s breaks off: %s", source->name, words);
        source->broken = true;
        return STATUS_EOF;
    }
    fix_mark(source, packet);
    mark_hole(source, packet);
    source->images_read += packet->stream_index == source->video;
    return STATUS_OK;
}

// The same, of which damaged times are mended. *packet is NULL where none goes on yet.
static enum status demux_mended(struct source *source, struct packet **packet)
{
    *packet = packet_create();
    if (!*packet)
        return STATUS_MEMORY;
    enum status status = demux(source, (*packet)->av);
    if (status) {
        packet_destroy(packet);
        source->ended = status == STATUS_EOF;
        return source->ended ? STATUS_OK : status;
    }
    // Without a pace the time that passes is the job's own.
    (*packet)->arrived_ns = source->paced_ns ? meter_now_ns() : 0;
    const AVStream *stream = source->format->streams[(*packet)->av->stream_index];
    if (source->raw || !stamps_are_for(stream->codecpar))
        return STATUS_OK;
    return stamps_put(&source->stamps, (unsigned)stream->index, stream->time_base, packet);
}

// Read the next packet of a file, at its time and its pace.
static enum status read_file(struct source *source, struct packet **packet)
{
    enum status status = STATUS_OK;
    *packet = stamps_take(&source->stamps);
    while (!status && !*packet && !source->ended)
        status = demux_mended(source, packet);
    if (!status && !*packet)
        *packet = stamps_end(&source->stamps);
    if (!*packet)
        return status ? status : STATUS_EOF;
    AVPacket *av = (*packet)->av;
    if (!status && may_jump(source))
        status = clock_fix(&source->clock, source->format, source->name, source->log, av);
    note_end(source, av);
    follow_outage(source, av);
    if (!status)
        keep_pace(source, av);
    (*packet)->arrived_ns = meter_now_ns();
    if (status)
        packet_destroy(packet);
    return status;
}

static enum status read_pushed(struct source *source, struct packet **packet)
{
    enum status status = pushed_read(source, packet);
    if (status)
        return status;
    keep_pace(source, (*packet)->av);
    (*packet)->arrived_ns = meter_now_ns();
    return STATUS_OK;
}

static enum status read_packet(struct source *source, struct packet **packet)
{
    if (source->live)
        return read_live(source, packet);
    if (source->pushed)
        return read_pushed(source, packet);
    return read_file(source, packet);
}

// Read the next packet, with simulated faults of packets.
static enum status read_simulated(struct source *source, struct packet **packet)
{
    for (;;) {
        enum status status = simulate_receive(source->simulate, packet);
        if (status || *packet)
            return status;
        status = read_packet(source, packet);
        if (status && status != STATUS_EOF)
            return status;
        if (*packet && (*packet)->av->stream_index != source->video)
            return status;
        status = simulate_send(source->simulate, packet);
        if (status)
            return status;
    }
}

// Read the next packet; of a part that begins in the middle the first of video is a key frame.
static enum status read_wanted(struct source *source, struct packet **packet)
{
    for (;;) {
        enum status status =
            source->simulate ? read_simulated(source, packet) : read_packet(source, packet);
        if (status || !source->awaits_key || (*packet)->av->stream_index != source->video)
            return status;
        source->awaits_key = !((*packet)->av->flags & AV_PKT_FLAG_KEY);
        if (!source->awaits_key)
            return STATUS_OK;
        packet_destroy(packet);
    }
}

enum status source_read(struct source *source, struct packet **packet)
{
    enum status status = read_wanted(source, packet);
    if (status) {
        packet_destroy(packet);
        return status;
    }
    const AVPacket *av = (*packet)->av;
    assert((unsigned)av->stream_index < source->format->nb_streams);
    AVRational base = source->format->streams[av->stream_index]->time_base;
    if (av->pts != AV_NOPTS_VALUE)
        (*packet)->pts_us = av_rescale_q(av->pts, base, AV_TIME_BASE_Q);
    return STATUS_OK;
}

enum status source_seek(struct source *source, int64_t at_us)
{
    assert(!source->live && !source->paced_ns && !source->simulate);
    int64_t at = av_rescale_q(at_us, AV_TIME_BASE_Q, source_video(source)->time_base);
    stamps_finish(&source->stamps);
    clock_finish(&source->clock);
    source->hole = source->ended = false;
    source_set_deadline(source, source->open_ns);
    int error = avformat_seek_file(source->format, source->video, INT64_MIN, at, at, 0);
    return error < 0 ? STATUS_INPUT : STATUS_OK;
}

void source_figures(const struct source *source, struct live_figures *figures)
{
    *figures = (struct live_figures){.clock_us = AV_NOPTS_VALUE};
    if (source->live) {
        live_figures(source->live, figures);
    } else if (source_may_be_lost(source)) {
        outage_figures(&source->outage, figures);
        figures->clock_us = pace_begin_us(source) + (meter_now_ns() - source->paced_ns) / 1000;
    }
}

// The time that the header promises beyond what was read, where it gives the video's duration. Of a
// damaged header libavformat may say that the streams gave it, and have none.
static int64_t missing_us(const struct source *source)
{
    const AVFormatContext *format = source->format;
    bool said = format->duration_estimation_method == AVFMT_DURATION_FROM_STREAM &&
                format->duration != AV_NOPTS_VALUE;
    return said ? format->duration - source->end_us : 0;
}

// True if a file of Matroska or FLV is truncated: their demuxers skip what they cannot parse
// without a word. The duration in the header is often wrong; the structure knows better.
static bool is_short(const struct source *source)
{
    const int64_t suspicious_us = AV_TIME_BASE / 10, short_us = AV_TIME_BASE / 2;
    const char *reader = source->format->iformat->name;
    bool suspicious = missing_us(source) > suspicious_us;
    enum truncation found = TRUNCATION_UNKNOWN;
    if (av_match_name("matroska", reader))
        found = source->io ? truncation_of_matroska(source->io, suspicious) : TRUNCATION_UNKNOWN;
    else if (av_match_name("flv", reader))
        found = source->io && suspicious ? truncation_of_flv(source->io) : TRUNCATION_UNKNOWN;
    else
        return false;
    return found == TRUNCATION_UNKNOWN ? missing_us(source) > short_us : found != TRUNCATION_NONE;
}

// True if the file's index points behind its end.
static bool is_cut(const struct source *source)
{
    int64_t size = source->io ? input_io_size(source->io) : -1;
    const AVIndexEntry *last = last_index_entry(source_video(source));
    return size >= 0 && last && last->pos + last->size > size;
}

int64_t source_begin_us(const struct source *source, int64_t first_us)
{
    const int64_t longest_delay_us = 100000;
    int64_t begin = source->format->start_time;
    if (source->start != AV_NOPTS_VALUE)
        return source->start;
    if (begin == AV_NOPTS_VALUE || first_us < begin)
        return first_us;
    bool delay = begin < 0 && begin >= -longest_delay_us && first_us >= 0;
    return delay ? 0 : begin;
}

int64_t source_shift_us(const struct source *source, int64_t first_us)
{
    int64_t begin = source_begin_us(source, first_us);
    return source->start != AV_NOPTS_VALUE || begin < 0 ? begin : 0;
}

bool source_is_empty(const struct source *source)
{
    return source->io && !input_io_has_data(source->io) && !input_io_error(source->io);
}

bool source_lacks_index(const struct source *source)
{
    const AVIOContext *io = source->format->pb;
    bool pipe = io && !(io->seekable & AVIO_SEEKABLE_NORMAL);
    return pipe && source->broken && av_match_name("mov", source->format->iformat->name);
}

void source_cancel(struct source *source)
{
    source->cancelled = true;
}

void source_end_at_loss(struct source *source)
{
    if (source->live)
        live_end_at_loss(source->live);
}

// True if a number is missing in a sequence: images behind it were not read.
static bool has_gap(const struct source *source)
{
    if (!source->is_sequence || source->images_read >= source->images)
        return false;
    log_print(source->log, LOG_WARNING,
              "%s has a gap: of %d images the first %d were read, up to the missing number",
              source->name, source->images, source->images_read);
    return true;
}

bool source_is_truncated(const struct source *source)
{
    return source->broken ||
           (!source->live && (is_cut(source) || is_short(source) || has_gap(source)));
}

bool source_is_torn(const struct source *source)
{
    return source->raw && raw_is_torn(source->raw);
}

int source_read_error(const struct source *source)
{
    return source->io ? input_io_error(source->io) : 0;
}

int64_t source_frames(const struct source *source)
{
    const AVStream *video = source_video(source);
    if (source->is_still)
        return 1;
    if (video->nb_frames > 0)
        return video->nb_frames;
    AVRational rate = video->avg_frame_rate;
    return rate.num > 0 && rate.den > 0 ? (int64_t)(source_seconds(source) * av_q2d(rate) + 0.5)
                                        : 0;
}

double source_seconds(const struct source *source)
{
    const AVStream *video = source_video(source);
    if (video->duration > 0)
        return (double)video->duration * av_q2d(video->time_base);
    return source->format->duration > 0 ? (double)source->format->duration / AV_TIME_BASE : 0;
}

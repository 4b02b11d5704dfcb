#include "pipeline/output/muxer/muxer.h"

#include <assert.h>
#include <errno.h>
#include <libavcodec/bsf.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/muxer/muxer_internal.h"

static const int64_t disconnect_ns = 500 * INT64_C(1000000); // limit of disconnecting

// ---- files ----

static int open_file(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                     AVDictionary **options)
{
    (void)options;
    struct muxer *muxer = format->opaque;
    if (!(flags & AVIO_FLAG_WRITE)) // the muxer reads the file again, as for faststart
        return avio_open2(io, muxer->files.whole ? muxer_files_name(url) : url, flags,
                          &format->interrupt_callback, NULL);
    return muxer_files_open(&muxer->files, muxer_files_name(url), io);
}

static int close_file(AVFormatContext *format, AVIOContext *io)
{
    struct muxer *muxer = format->opaque;
    int error = 0;
    return muxer_files_close(&muxer->files, io, &error) ? error : avio_close(io);
}

#if LIBAVFORMAT_VERSION_MAJOR < 60
static void close_file_silently(AVFormatContext *format, AVIOContext *io)
{
    close_file(format, io);
}
#endif

static enum status set_url(struct muxer *muxer, const char *scheme, const char *name)
{
    av_freep(&muxer->format->url);
    muxer->format->url = av_asprintf("%s%s", scheme, name);
    return muxer->format->url ? STATUS_OK : STATUS_MEMORY;
}

static int interrupted(void *guard_)
{
    const struct muxer_guard *guard = guard_;
    return guard->over || (guard->deadline_ns && meter_now_ns() > guard->deadline_ns);
}

static enum status open_files(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    format->opaque = muxer;
    format->io_open = open_file;
#if LIBAVFORMAT_VERSION_MAJOR >= 59
    format->io_close2 = close_file;
#endif
#if LIBAVFORMAT_VERSION_MAJOR < 60
    format->io_close = close_file_silently; // the failure is in muxer->files.failed
#endif
    if (format->oformat->flags & AVFMT_NOFILE) // the muxer opens its files by open_file()
        return set_url(muxer,
                       destination_is_playlist(muxer->destination) ? "" : "file:", muxer->name);
    if (muxer_files_open(&muxer->files, muxer->name, &format->pb))
        return STATUS_OUTPUT;
    format->flags |= AVFMT_FLAG_CUSTOM_IO;
    return set_url(muxer, "", file_temporary(muxer->files.open[0]));
}

static enum status open_container(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    // Formats that FFmpeg calls experimental (deep y4m) are what the user asked for.
    format->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    if (muxer->guard)
        format->interrupt_callback = (AVIOInterruptCB){interrupted, muxer->guard};
    return destination_is_live(muxer->destination) ? set_url(muxer, "", muxer->name)
                                                   : open_files(muxer);
}

enum status muxer_create(const struct destination *destination, const char *name,
                         const struct log *log, const struct stop *stop, struct muxer_guard *guard,
                         struct muxer **muxer)
{
    assert(destination->container && destination->quirks);
    assert(guard || !destination_is_live(destination));
    *muxer = calloc(1, sizeof **muxer);
    struct muxer *made = *muxer;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->stop = stop;
    made->destination = destination;
    made->guard = guard;
    made->files = (struct muxer_files){.log = log, .stop = stop, .destination = destination};
    made->name = strdup(name);
    enum status status = STATUS_MEMORY;
    if (made->name && avformat_alloc_output_context2(
                          &made->format, (AVOutputFormat *)destination->container, NULL, name) >= 0)
        status = open_container(made);
    if (status)
        muxer_destroy(muxer);
    return status;
}

void muxer_destroy(struct muxer **muxer)
{
    if (!*muxer)
        return;
    struct muxer *old = *muxer;
    old->files.failed = true; // what the muxer still closes is not kept
    if (old->begun &&
        destination_is_live(old->destination)) { // muxers close their own connections there
        old->guard->deadline_ns = meter_now_ns() + disconnect_ns;
        av_write_trailer(old->format);
    } else if (old->begun && destination_is_playlist(old->destination)) {
        // hls_deinit() of libavformat forgets the segment that it keeps in memory (5.1); the trailer
        // does not, and writes nothing, as no file opens any more.
        av_write_trailer(old->format);
    }
    if (old->format && old->destination->kind == DESTINATION_ADDRESS)
        avio_closep(&old->format->pb);
    avformat_free_context(old->format);
    muxer_files_discard(&old->files);
    for (unsigned k = 0; k < old->routes && old->route; k++)
        av_bsf_free(&old->route[k].filter);
    free(old->route);
    free(old->name);
    free(old);
    *muxer = NULL;
}

// ---- writing ----

enum status muxer_failed(struct muxer *muxer, int error, const char *what)
{
    bool reported = muxer->files.failed;
    muxer->files.failed = true;
    if (destination_is_live(muxer->destination)) {
        bool late = error == AVERROR_EXIT && !muxer->guard->over;
        av_strerror(late ? AVERROR(ETIMEDOUT) : error, muxer->error, sizeof muxer->error);
        return error == AVERROR(ENOMEM) ? STATUS_MEMORY : STATUS_EOF;
    }
    int cause = muxer_files_error(&muxer->files);
    if (cause == EPIPE)
        return STATUS_OUTPUT; // the reader has seen enough
    if (cause == ECANCELED)
        return STATUS_STOPPED; // the stop's deadline, and the reader takes nothing
    muxer->files.blocked |= cause != 0;
    if (reported)
        return STATUS_OUTPUT;
    if (cause)
        return log_fail(muxer->log, STATUS_OUTPUT, "%s could not be written: %s", muxer->name,
                        strerror(cause));
    return check_failed(muxer->log, STATUS_OUTPUT, error, "%s: %s", muxer->name, what);
}

// Make decoding times grow, as most containers want, and none come behind the time of showing, which
// all refuse: in damaged sources both happen.
static void fix_dts(const struct muxer *muxer, AVPacket *packet, struct route *route)
{
    bool strict = !(muxer->format->oformat->flags & AVFMT_TS_NONSTRICT);
    if (muxer->format->oformat->flags & AVFMT_NOTIMESTAMPS || packet->dts == AV_NOPTS_VALUE)
        return;
    if (route->last_dts != AV_NOPTS_VALUE && packet->dts < route->last_dts + strict)
        packet->dts = route->last_dts + strict;
    if (packet->pts != AV_NOPTS_VALUE && packet->pts < packet->dts)
        packet->pts = packet->dts;
    route->last_dts = packet->dts;
}

// Filter a packet. New extradata is taken out: it is in the header already.
static int filter_packet(const struct route *route, AVPacket *packet)
{
    AVBSFContext *filter = route->filter;
    int error = av_bsf_send_packet(filter, packet);
    if (error >= 0)
        error = av_bsf_receive_packet(filter, packet);
    for (int k = 0; route->copied && k < packet->side_data_elems && filter->par_in->extradata_size;
         k++) {
        AVPacketSideData *data = &packet->side_data[k];
        if (data->type != AV_PKT_DATA_NEW_EXTRADATA)
            continue;
        av_freep(&data->data);
        *data = packet->side_data[--packet->side_data_elems];
        break;
    }
    if (error >= 0 || !route->copied || error == AVERROR(ENOMEM))
        return error;
    av_packet_unref(packet); // filters have their own words for what is damaged
    av_bsf_flush(filter);
    return AVERROR_INVALIDDATA;
}

// Live: the first packet gives the files their names.
static enum status publish(struct muxer *muxer)
{
    bool wanted = muxer->live && !muxer->published && !destination_is_images(muxer->destination);
    muxer->published = true;
    return wanted ? muxer_files_publish(&muxer->files) : STATUS_OK;
}

// Give a packet of the source's clock and stream the muxer's.
static void restamp(const struct muxer *muxer, AVPacket *packet, struct route *route)
{
    const AVStream *to = muxer->format->streams[route->stream];
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts -= route->shift;
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts -= route->shift;
    packet->stream_index = route->stream;
    packet->pos = -1;
    av_packet_rescale_ts(packet, route->time_base, to->time_base);
    fix_dts(muxer, packet, route);
}

enum status muxer_write(struct muxer *muxer, AVPacket *packet)
{
    assert(muxer->begun);
    assert(muxer_accepts_stream(muxer, packet->stream_index));
    int size = packet->size, stream = packet->stream_index;
    struct route *route = &muxer->route[stream];
    enum status status = route->copied ? STATUS_OK : publish(muxer);
    if (status)
        return status;
    restamp(muxer, packet, route);
    int error = route->filter ? filter_packet(route, packet) : 0;
    if (!error)
        error = av_interleaved_write_frame(muxer->format, packet);
    if (error >= 0 && destination_is_live(muxer->destination) && interrupted(muxer->guard))
        error = AVERROR_EXIT; // RTSP's muxer does not say so
    muxer_files_note_size(&muxer->files);
    int unsafe = muxer_files_sync(&muxer->files);
    if (error >= 0 && unsafe)
        error = AVERROR(unsafe);
    if (muxer->destination->kind == DESTINATION_ADDRESS)
        muxer->sent_bytes = muxer->format->pb ? muxer->format->pb->bytes_written
                                              : muxer->sent_bytes + size; // RTSP keeps its own
    if (muxer->files.failed) // logged where it happened
        return STATUS_OUTPUT;
    if (error == AVERROR_INVALIDDATA && route->copied) {
        log_print(muxer->log, LOG_WARNING, "a damaged packet of stream %d is left out", stream);
        return STATUS_OK;
    }
    return error < 0 ? muxer_failed(muxer, error, "a packet could not be written") : STATUS_OK;
}

static enum status write_end(struct muxer *muxer)
{
    assert(muxer->begun);
    int error = av_write_trailer(muxer->format);
    muxer->begun = false;
    int unsafe = muxer_files_sync(&muxer->files);
    if (error >= 0 && unsafe)
        error = AVERROR(unsafe);
    if (error >= 0 && muxer->format->pb && muxer->format->pb->error < 0)
        error = muxer->format->pb->error;
    if (error < 0)
        return muxer_failed(muxer, error, "the end could not be written");
    if (muxer->files.open[0])
        muxer->format->pb = NULL;
    return STATUS_OK;
}

enum status muxer_finish(struct muxer *muxer)
{
    enum status status = write_end(muxer);
    return status ? status : muxer_files_finish(&muxer->files);
}

enum status muxer_hold(struct muxer *muxer, struct file **file)
{
    enum status status = write_end(muxer);
    return status ? status : muxer_files_hold(&muxer->files, file);
}

bool muxer_is_blocked(const struct muxer *muxer)
{
    return muxer->files.blocked;
}

int64_t muxer_size(const struct muxer *muxer)
{
    return muxer_files_size(&muxer->files) + muxer->sent_bytes;
}

const char *muxer_error(const struct muxer *muxer)
{
    return muxer->error;
}

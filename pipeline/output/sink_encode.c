// The sink that encodes: an encoder, and the mux threads that its packets go to.
#include <assert.h>
#include <libavutil/avstring.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/sink_encode_internal.h"

// ---- frames and packets ----

static bool wants_global_header(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (encode_sink_followed(self, k)->container->flags & AVFMT_GLOBALHEADER)
            return true;
    return false;
}

// True if viewers join at any time, and wait for a key frame.
static bool is_joined_midway(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++) {
        const struct destination *destination = mux_thread_destination(self->mux[k]);
        if (destination->kind == DESTINATION_ADDRESS || destination_is_playlist(destination))
            return true;
    }
    return false;
}

// An AVERROR below zero.
static int set_defaults(const struct encode_sink *self, AVDictionary **options)
{
    const int flags = AV_DICT_DONT_OVERWRITE;
    int error = 0;
    // Live: frames that an encoder keeps back are late, and lost when the program is killed.
    if (self->video.live && av_match_name(self->codec->name, "libx264,libx265"))
        error = av_dict_set(options, "tune", "zerolatency", flags);
    double rate = self->video.frame_rate.num > 0 ? av_q2d(self->video.frame_rate) : 25;
    bool joined = is_joined_midway(self) && rate < 1000 && encoder_has_option(self->codec, "g");
    if (joined && error >= 0)
        error = av_dict_set_int(options, "g", (int64_t)(2 * rate + 0.5), flags);
    return error;
}

static enum status open_encoder(struct encode_sink *self, const AVFrame *frame)
{
    struct encoder_video video = {
        .frame = frame,
        .time_base = self->video.time_base,
        .rate = self->video.frame_rate,
        .constant_rate = encode_sink_counts_frames(self),
        .global_header = wants_global_header(self),
        .still = self->base.one_frame,
        .threads = self->threads,
    };
    AVDictionary *options = NULL;
    enum status status = STATUS_MEMORY;
    if (av_dict_copy(&options, self->encoder_options, 0) >= 0 && set_defaults(self, &options) >= 0)
        status = encoder_create(self->codec, &video, &options, self->log, &self->encoder);
    av_dict_free(&options);
    converter_set_encoder(&self->converter, frame);
    self->base.pixel = frame->format;
    return status;
}

static bool all_carry_rotation(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (!encode_sink_followed(self, k)->quirks->rotation)
            return false;
    return true;
}

// The container of parts has no times below zero: they are moved by whole seconds.
static int64_t shift_of_part(const struct encode_sink *self)
{
    int64_t first = av_rescale_q_rnd(self->video.first->pts, self->video.time_base,
                                     (AVRational){1, 1}, AV_ROUND_DOWN);
    return first < 0 ? first * AV_TIME_BASE : 0;
}

// Describe the encoder's stream for mux threads. The caller frees `codec`.
static enum status describe(const struct encode_sink *self, AVCodecParameters **codec,
                            struct muxer_streams *streams)
{
    const AVCodecContext *context = encoder_context(self->encoder);
    *codec = avcodec_parameters_alloc();
    if (!*codec || avcodec_parameters_from_context(*codec, context) < 0)
        return STATUS_MEMORY;
    *streams = (struct muxer_streams){
        .name = self->video.name,
        .from = self->video.from,
        .video = self->stream,
        .live = self->video.live,
        .codec = *codec,
        .time_base = context->time_base,
        .frame_rate = context->framerate,
        .global_header = context->flags & AV_CODEC_FLAG_GLOBAL_HEADER,
        .first = self->video.first,
        .shift = self->whole.container ? shift_of_part(self) : self->video.shift,
        .begin = self->video.begin,
        .end = self->video.end,
        .rotated = !rotation_is_none(self->converter.rotation),
        .alone = self->whole.container,
    };
    return STATUS_OK;
}

// Live: packets are dropped rather than waited for. A single file does hold up the encoder: frames
// are then dropped before they are encoded, which looks better.
static bool skips(const struct encode_sink *self, const struct mux_thread *mux)
{
    return self->video.live && (self->video.has_siblings || self->muxes > 1 ||
                                destination_is_live(mux_thread_destination(mux)));
}

static enum status keep_encoded(struct encode_sink *self, const struct muxer_streams *streams)
{
    struct sink_encoded *encoded = &self->base.encoded;
    *encoded = (struct sink_encoded){.codec = avcodec_parameters_alloc(),
                                     .time_base = streams->time_base,
                                     .frame_rate = streams->frame_rate,
                                     .global_header = streams->global_header,
                                     .rotated = streams->rotated,
                                     .shift = streams->shift};
    return encoded->codec && avcodec_parameters_copy(encoded->codec, streams->codec) >= 0
               ? STATUS_OK
               : STATUS_MEMORY;
}

static enum status open_muxes(struct encode_sink *self)
{
    AVCodecParameters *codec;
    struct mux_thread_opening opening = {.watch = self->video.watch};
    enum status status = describe(self, &codec, &opening.streams);
    if (!status)
        status = keep_encoded(self, &opening.streams);
    for (int k = 0; k < self->muxes && !status; k++) {
        opening.skips = skips(self, self->mux[k]);
        opening.must_connect = !self->video.has_siblings && self->muxes == 1 && !self->await_start;
        status = mux_thread_open(self->mux[k], &opening);
        if (!status)
            status =
                passthrough_join(&self->base.passthrough, mux_thread_passthrough(self->mux[k]));
        opening.watch = (struct mux_thread_watch){0};
    }
    avcodec_parameters_free(&codec);
    return status;
}

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    self->video = *video;
    self->stream = video->stream;
    AVFrame shown = *video->first; // a view, to open the encoder by
    const int32_t *matrix = display_matrix(video->from->streams[video->stream], video->first);
    self->converter.silent = video->silent;
    if (matrix && !all_carry_rotation(self))
        converter_set_rotation(&self->converter, matrix, &shown);
    enum status status = converter_choose(&self->converter, &shown);
    if (!status)
        status = open_encoder(self, &shown);
    return status ? status : open_muxes(self);
}

// Push a packet to all mux threads. The first failure, if none takes it.
static enum status push(struct encode_sink *self, const struct packet *packet, bool other)
{
    enum status first = STATUS_OK;
    int taken = 0;
    for (int k = 0; k < self->muxes; k++) {
        const struct passthrough *passthrough = mux_thread_passthrough(self->mux[k]);
        if (other && !passthrough_accepts(passthrough, packet->av->stream_index))
            continue;
        enum status status = mux_thread_push(self->mux[k], packet);
        taken += !status;
        first = first ? first : status;
    }
    return taken ? STATUS_OK : first;
}

static enum status pass_packets(struct encode_sink *self)
{
    struct packet *packet = packet_create();
    enum status status = packet ? STATUS_OK : STATUS_MEMORY;
    bool got = true;
    while (!status) {
        status = encoder_receive(self->encoder, packet->av, &got);
        if (!got || status)
            break;
        packet->av->stream_index = self->stream;
        packet->pts_us = av_rescale_q(packet->av->pts, encoder_context(self->encoder)->time_base,
                                      AV_TIME_BASE_Q);
        status =
            self->stop && stop_is_late(self->stop) ? STATUS_STOPPED : push(self, packet, false);
        self->base.kept += !status;
        av_packet_unref(packet->av);
    }
    packet_destroy(&packet);
    return status == STATUS_EOF && !got ? STATUS_OK : status;
}

// Drain the encoder, and open another for other pictures.
static enum status renew_encoder(struct encode_sink *self, const AVFrame *frame)
{
    bool sent;
    enum status status = encoder_send(self->encoder, NULL, &sent);
    if (!status)
        status = pass_packets(self);
    encoder_destroy(&self->encoder);
    return status ? status : open_encoder(self, frame);
}

static bool is_all_segments(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (mux_thread_destination(self->mux[k])->kind != DESTINATION_SEGMENTS)
            return false;
    return true;
}

// Begin a new segment for pictures of another size.
static enum status change_segment(struct encode_sink *self, const AVFrame *frame)
{
    AVCodecParameters *codec = NULL;
    struct muxer_streams streams;
    log_print(self->log, LOG_INFO, "the picture changes to %dx%d: a new segment begins",
              frame->width, frame->height);
    enum status status = renew_encoder(self, frame);
    if (!status)
        status = describe(self, &codec, &streams);
    for (int k = 0; k < self->muxes && !status; k++)
        status = mux_thread_change(self->mux[k], &streams);
    avcodec_parameters_free(&codec);
    return status;
}

// Bring a picture of another size or format to the encoder: images and segments get a new encoder,
// else it is scaled.
static enum status fit(struct encode_sink *self, const AVFrame *frame, AVFrame *fitted)
{
    bool anew = self->one_a_file || is_all_segments(self);
    if (!anew || !converter_could_fit(&self->converter, frame))
        return converter_scale(&self->converter, frame, fitted);
    enum status status =
        self->one_a_file ? renew_encoder(self, frame) : change_segment(self, frame);
    return status ? status : av_frame_ref(fitted, frame) < 0 ? STATUS_MEMORY : STATUS_OK;
}

static void note_dropped(struct encode_sink *self, bool sent)
{
    if (!sent && !self->base.dropped++)
        log_print(self->log, LOG_WARNING,
                  "frames come faster than the clock of %s ticks: some are left out",
                  self->container->name);
}

static bool wants_key(struct encode_sink *self, const AVFrame *frame)
{
    int64_t pts_us = av_rescale_q(frame->pts, self->video.time_base, AV_TIME_BASE_Q);
    bool wants = false;
    for (int k = 0; k < self->muxes; k++)
        wants |= mux_thread_takes_key(self->mux[k], pts_us);
    return wants;
}

static enum status encode_frame(struct encode_sink *self, AVFrame *frame)
{
    AVFrame *fitted = NULL;
    enum status status = STATUS_OK;
    if (frame && !converter_fits(&self->converter, frame)) {
        fitted = av_frame_alloc();
        status = fitted ? fit(self, frame, fitted) : STATUS_MEMORY;
    }
    bool sent = true;
    if (!status && frame && wants_key(self, frame))
        encoder_want_key(self->encoder);
    if (!status)
        status = encoder_send(self->encoder, fitted ? fitted : frame, &sent);
    note_dropped(self, sent);
    if (!status)
        status = pass_packets(self);
    av_frame_free(&fitted);
    return status;
}

// True to leave a frame out because nobody watches; one a second is encoded for new viewers.
static bool is_idle(struct encode_sink *self)
{
    const int64_t second_ns = 1000 * INT64_C(1000000);
    int64_t now_ns = meter_now_ns();
    for (int k = 0; k < self->muxes; k++)
        if (!mux_thread_is_idle(self->mux[k]))
            return false;
    if (now_ns - self->seen_ns < second_ns)
        return true;
    self->seen_ns = now_ns;
    return false;
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    bool full = self->base.one_frame && self->base.kept > 0; // other outputs take more frames
    self->taken += frame != NULL;
    if (frame && (full || is_idle(self))) {
        self->base.kept++;
        self->base.unwanted++;
        return STATUS_OK;
    }
    if (!frame || rotation_is_none(self->converter.rotation))
        return encode_frame(self, frame);
    AVFrame *rotated = av_frame_alloc();
    enum status status =
        rotated ? converter_rotate(&self->converter, frame, rotated) : STATUS_MEMORY;
    if (!status)
        status = encode_frame(self, rotated);
    av_frame_free(&rotated);
    return status;
}

static enum status write_packet(struct sink *sink, const struct packet *packet)
{
    return push((struct encode_sink *)sink, packet, true);
}

static void cancel(struct sink *sink)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    for (int k = 0; k < self->muxes; k++)
        mux_thread_cancel(self->mux[k]);
}

static void discard_outputs(struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++) {
        log_print(self->log, LOG_WARNING,
                  "stopped before the encoder gave its first frame: there is no output %s",
                  mux_thread_destination(self->mux[k])->shown);
        mux_thread_discard(self->mux[k]);
    }
}

static enum status finish(struct sink *sink, bool cut)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    enum status status = STATUS_OK;
    sink->absent = self->stop && self->stop->asked && !sink->kept;
    if (sink->absent)
        discard_outputs(self);
    for (int k = 0; k < self->muxes && !sink->absent; k++)
        mux_thread_finish(self->mux[k], cut);
    for (int k = 0; k < self->muxes; k++)
        status = status_join(status, mux_thread_join(self->mux[k]));
    return status;
}

static void print_steps(const struct sink *sink, const AVFrame *picture, FILE *to)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    AVFrame shown = *picture; // a view
    char purpose[96];
    snprintf(purpose, sizeof purpose, "for the encoder %s", self->codec->name);
    if (converter_adapt(&self->converter, &shown))
        scaler_print_step(picture->format, shown.format, purpose, to);
}

static int64_t pending(const struct sink *sink)
{
    int64_t frames = ((const struct encode_sink *)sink)->taken - sink->kept - sink->dropped;
    return frames > 0 ? frames : 0;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    int count = self->muxes < most ? self->muxes : most;
    for (int k = 0; k < count; k++) {
        const struct destination *destination = mux_thread_destination(self->mux[k]);
        struct mux_thread_figures figures;
        mux_thread_figures(self->mux[k], &figures);
        list[k] = (struct sink_output){
            .name = destination->shown,
            .encoder = self->codec->name,
            .container = destination->container->name,
            .frames = figures.packets,
            .dropped = figures.skipped,
            .unwatched = sink->one_frame ? 0 : sink->unwanted,
            .missing = figures.missing,
            .bytes = sink->absent ? 0 : figures.bytes,
            .files = sink->absent ? 0 : figures.files,
            .connects = figures.connects,
            .connected = figures.connected,
            .failed = status_is_failure(figures.status),
        };
    }
    return count;
}

static int64_t memory(const struct sink *sink, int64_t frame_bytes)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    return budget_of_encoder(encoder_context(self->encoder), frame_bytes) +
           self->muxes * 2 * budget_packets;
}

static enum pace pace_of(const struct encode_sink *self, bool live)
{
    const AVDictionaryEntry *tune = av_dict_get(self->encoder_options, "tune", NULL, 0);
    const AVDictionaryEntry *preset = av_dict_get(self->encoder_options, "preset", NULL, 0);
    bool is_slow = preset && (strstr(preset->value, "slow") || !strcmp(preset->value, "placebo"));
    bool hurries = live || (tune && strstr(tune->value, "zerolatency")) ||
                   (preset && !strcmp(preset->value, "ultrafast"));
    return hurries ? PACE_HURRIED : is_slow ? PACE_SLOW : PACE_USUAL;
}

// The encoder, a frame that is converted for it, and the packets on their way.
static int64_t estimate(const struct sink *sink, const int64_t *frame_bytes, bool live)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    int threads = self->base.one_frame ? 1 : self->threads;
    return budget_estimate_encoder(self->codec, threads, pace_of(self, live), *frame_bytes) +
           *frame_bytes +
           self->muxes * budget_of_queue(MUX_PACKETS_WAITING, budget_packets, *frame_bytes);
}

static enum status check(const struct sink *sink)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    enum status status = STATUS_OK;
    for (int k = 0; k < self->muxes && !status; k++)
        status = destination_check(mux_thread_destination(self->mux[k]), self->log);
    return status;
}

static void destroy(struct sink **sink)
{
    struct encode_sink *self = (struct encode_sink *)*sink;
    for (int k = 0; k < self->muxes; k++)
        mux_thread_destroy(&self->mux[k]);
    encoder_destroy(&self->encoder);
    converter_finish(&self->converter);
    destination_finish(&self->whole);
    avcodec_parameters_free(&self->base.encoded.codec);
    av_dict_free(&self->encoder_options);
    free(self);
    *sink = NULL;
}

// ---- creation ----

enum status sink_encode_create(const struct sink_request *request, const struct log *log,
                               const struct stop *stop, struct sink **sink)
{
    struct encode_sink *self = calloc(1, sizeof *self);
    *sink = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .accepts_streams = true,
        .check = check,
        .open = open,
        .write = write,
        .write_packet = write_packet,
        .cancel = cancel,
        .finish = finish,
        .print_steps = print_steps,
        .pending = pending,
        .outputs = outputs,
        .memory = memory,
        .estimate = estimate,
        .destroy = destroy,
    };
    self->log = log;
    self->stop = stop;
    self->await_start = request->await_start;
    *sink = &self->base;
    enum status status = encode_sink_prepare(self, request);
    if (status)
        destroy(sink);
    return status;
}

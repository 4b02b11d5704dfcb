#include "pipeline/proof/other_streams.h"

#include <inttypes.h>
#include <libavutil/mathematics.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/source.h"
#include "pipeline/part/hash_tree.h"

static const atomic_bool never;

int64_t other_streams_shift(const struct manifest *made, int64_t first_pts, AVRational time_base)
{
    AVRational base;
    bool known = manifest_ratio(made->end, "time_base", &base) && made->frames;
    if (!known || first_pts == AV_NOPTS_VALUE)
        return 0;
    return av_rescale_q(first_pts, time_base, AV_TIME_BASE_Q) -
           av_rescale_q(made->frame[0].pts, base, AV_TIME_BASE_Q);
}

// ---- packets ----

void other_streams_free(struct other_streams *streams)
{
    for (int k = 0; k < streams->count; k++) {
        hash_tree_finish(&streams->stream[k].tree);
        free(streams->stream[k].packet);
    }
    free(streams->stream);
    *streams = (struct other_streams){0};
}

// Make room for a stream of this number.
static enum status reach(struct other_streams *streams, int number)
{
    enum status status = STATUS_OK;
    while (!status && streams->count <= number) {
        size_t room = ((size_t)streams->count + 1) * sizeof *streams->stream;
        struct other_stream *list = realloc(streams->stream, room);
        if (!list)
            return STATUS_MEMORY;
        streams->stream = list;
        list[streams->count] = (struct other_stream){.time_base = {0, 1}};
        status = hash_tree_init(&list[streams->count++].tree);
    }
    return status;
}

// The bytes of an ADTS header (ISO/IEC 13818-7, 6.2) in front of AAC. No frame of AAC itself begins
// so, as it would be empty.
static int header_of(const AVPacket *packet, const AVStream *of)
{
    const uint8_t *data = packet->data;
    bool adts = of->codecpar->codec_id == AV_CODEC_ID_AAC && packet->size > 9 && data[0] == 0xff &&
                (data[1] & 0xf6) == 0xf0;
    return !adts ? 0 : data[1] & 1 ? 7 : 9;
}

static void add_line(struct other_stream *to, const AVPacket *packet)
{
    char line[160], hash[FRAME_HASH_TEXT];
    bytes_hash(packet->data, (size_t)packet->size, hash);
    snprintf(line, sizeof line, "[\"packet\", %" PRId64 ", %s, %d, \"%s\"]", packet->pts,
             packet->flags & AV_PKT_FLAG_KEY ? "true" : "false", packet->size, hash);
    hash_tree_add(&to->tree, line, strlen(line));
}

enum status other_streams_add(struct other_streams *streams, const AVPacket *packet,
                              const AVStream *of)
{
    if (reach(streams, packet->stream_index))
        return STATUS_MEMORY;
    struct other_stream *to = &streams->stream[packet->stream_index];
    bool full = !(to->count & (to->count - 1)); // 0, 1, 2, 4, ...
    size_t room = to->count ? 2 * (size_t)to->count : 1;
    void *list = full ? realloc(to->packet, room * sizeof *to->packet) : to->packet;
    if (!list)
        return STATUS_MEMORY;
    to->packet = list;
    to->time_base = of->time_base;
    add_line(to, packet);
    struct other_packet *noted = &to->packet[to->count++];
    int header = header_of(packet, of);
    noted->pts = packet->pts;
    bytes_hash(packet->data + header, (size_t)(packet->size - header), noted->hash);
    return STATUS_OK;
}

static enum status read_source(const struct source_request *request, const struct log *log,
                               struct other_streams *streams)
{
    struct source *source;
    struct packet *packet = NULL;
    enum status status = source_open(request, log, &never, &source);
    while (!status && !(status = source_read(source, &packet))) {
        int stream = packet->av->stream_index;
        if (stream != source->video)
            status = other_streams_add(streams, packet->av, source->format->streams[stream]);
        packet_destroy(&packet);
    }
    source_close(&source);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// ---- descriptions ----

// True if two packets have the same time, as exactly as both clocks say it; where a stream begins,
// MP4 says in milliseconds.
static bool is_at(const struct other_stream *a, const struct other_stream *b, int64_t n,
                  int64_t shift_us)
{
    int64_t at_a = a->packet[n].pts, at_b = b->packet[n].pts;
    if (at_a == AV_NOPTS_VALUE || at_b == AV_NOPTS_VALUE)
        return true; // a container may give times, or have none
    double ticks = (av_q2d(a->time_base) + av_q2d(b->time_base)) * 1e6;
    int64_t apart = av_rescale_q(at_a, a->time_base, AV_TIME_BASE_Q) - shift_us -
                    av_rescale_q(at_b, b->time_base, AV_TIME_BASE_Q);
    return llabs(apart) <= (int64_t)ticks + 1000;
}

// The first packet that differs; -1: none does.
static int64_t first_difference(const struct other_stream *output,
                                const struct other_stream *source, int64_t shift_us)
{
    int64_t n = 0;
    while (n < output->count && n < source->count &&
           !strcmp(output->packet[n].hash, source->packet[n].hash) &&
           is_at(output, source, n, shift_us))
        n++;
    return n == output->count && n == source->count ? -1 : n;
}

// The stream of the source that has the same packets; -1: none has.
static int find_source(const struct other_stream *output, const struct other_streams *source,
                       int64_t shift_us)
{
    for (int k = 0; k < source->count && output->count; k++)
        if (first_difference(output, &source->stream[k], shift_us) < 0)
            return k;
    return -1;
}

enum status other_streams_describe(const struct other_streams *output,
                                   const struct other_streams *source, int64_t shift_us,
                                   json_t **others)
{
    *others = json_array();
    enum status status = *others ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < output->count && !status; k++) {
        const struct other_stream *stream = &output->stream[k];
        char root[HASH_TREE_TEXT];
        if (!stream->count)
            continue;
        int from = find_source(stream, source, shift_us);
        hash_tree_root(&stream->tree, root);
        json_t *about =
            json_pack("{si sI ss so}", "stream", k, "packets", (json_int_t)stream->count, "root",
                      root, "from", from < 0 ? json_null() : json_integer(from));
        if (json_array_append_new(*others, about))
            status = STATUS_MEMORY;
    }
    return status;
}

// ---- checks ----

// Check that a stream is as it was written.
static enum status check_written(const struct other_streams *output, const json_t *about,
                                 const char *name, const struct log *log)
{
    char root[HASH_TREE_TEXT];
    json_int_t number = json_integer_value(json_object_get(about, "stream"));
    json_int_t packets = json_integer_value(json_object_get(about, "packets"));
    const char *said = json_string_value(json_object_get(about, "root"));
    bool there = number >= 0 && number < output->count;
    int64_t count = there ? output->stream[number].count : 0;
    if (there)
        hash_tree_root(&output->stream[number].tree, root);
    if (there && packets == count && said && !strcmp(said, root))
        return STATUS_OK;
    return log_fail(
        log, STATUS_FAILED,
        "%s: the packets of stream %d are not those that were written: they are %" PRId64
        ", and were %" PRId64,
        name, (int)number, count, (int64_t)packets);
}

// Check that a stream has the packets of the source's.
static enum status check_source(const struct other_stream *output, int from,
                                const struct other_streams *source, int64_t shift_us,
                                const char *name, const struct log *log)
{
    static const struct other_stream none;
    bool there = from >= 0 && from < source->count;
    int64_t at = first_difference(output, there ? &source->stream[from] : &none, shift_us);
    if (at < 0)
        return STATUS_OK;
    return log_fail(log, STATUS_FAILED,
                    "%s: packet %" PRId64 " is not that of stream %d of the source", name, at,
                    from);
}

static enum status check_sources(const struct other_streams *output, const json_t *others,
                                 const struct other_streams *source, int64_t shift_us,
                                 const char *name, const struct log *log,
                                 struct other_streams_found *found)
{
    enum status status = STATUS_OK;
    for (size_t k = 0; k < json_array_size(others) && !status; k++) {
        const json_t *about = json_array_get(others, k), *from = json_object_get(about, "from");
        json_int_t number = json_integer_value(json_object_get(about, "stream"));
        if (!json_is_integer(from))
            continue;
        status = check_source(&output->stream[number], (int)json_integer_value(from), source,
                              shift_us, name, log);
        found->copied += !status;
    }
    return status;
}

// Check that an output has no stream with packets that is not described.
static enum status check_number(const struct other_streams *output, const json_t *others,
                                const char *name, const struct log *log)
{
    int filled = 0;
    for (int k = 0; k < output->count; k++)
        filled += output->stream[k].count > 0;
    if (filled == (int)json_array_size(others))
        return STATUS_OK;
    return log_fail(log, STATUS_FAILED, "%s has %d streams beside its video; %d were written", name,
                    filled, (int)json_array_size(others));
}

static bool has_sources(const json_t *others)
{
    bool any = false;
    for (size_t k = 0; k < json_array_size(others); k++)
        any |= json_is_integer(json_object_get(json_array_get(others, k), "from"));
    return any;
}

enum status other_streams_check(const struct other_streams *output, const json_t *others,
                                const struct source_request *source, int64_t shift_us,
                                const char *name, const struct log *log,
                                struct other_streams_found *found)
{
    struct other_streams theirs = {0};
    enum status status = check_number(output, others, name, log);
    for (size_t k = 0; k < json_array_size(others) && !status; k++) {
        status = check_written(output, json_array_get(others, k), name, log);
        found->streams += !status;
    }
    if (!status && has_sources(others))
        status = read_source(source, log, &theirs);
    if (!status)
        status = check_sources(output, others, &theirs, shift_us, name, log, found);
    other_streams_free(&theirs);
    return status;
}

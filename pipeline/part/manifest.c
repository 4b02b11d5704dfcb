#include "pipeline/part/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"

// ---- reading ----

struct reader {
    FILE *file;
    const struct log *log;
    struct manifest *to;
    struct hash_tree frames, packets;
    char *line;
    size_t room;
    int64_t number; // of the line, from 1
};

static enum status refuse(const struct reader *reader, const char *why)
{
    return log_fail(reader->log, STATUS_INPUT, "%s, line %" PRId64 ": %s", reader->to->name,
                    reader->number, why);
}

// The next line, without its end; NULL where there is none.
static json_t *next_line(struct reader *reader, size_t *length)
{
    ssize_t got = getline(&reader->line, &reader->room, reader->file);
    reader->number++;
    if (got <= 0 || reader->line[got - 1] != '\n')
        return NULL;
    *length = (size_t)got - 1;
    return json_loadb(reader->line, *length, JSON_REJECT_DUPLICATES, NULL);
}

// Room for one more of `count` elements, which grow by doubling.
static void *grow(void *list, int64_t count, size_t size)
{
    bool full = count >= 16 ? !(count & (count - 1)) : !count;
    return full ? realloc(list, (size_t)(count ? 2 * count : 16) * size) : list;
}

static bool is_hash(const char *text)
{
    return strlen(text) == FRAME_HASH_TEXT - 1 &&
           strspn(text, "0123456789abcdef") == FRAME_HASH_TEXT - 1;
}

static enum status add_frame(struct reader *reader, json_t *line, size_t length)
{
    struct manifest *to = reader->to;
    json_int_t pts;
    const char *kind, *hash;
    if (json_unpack(line, "[sIs!]", &kind, &pts, &hash) || !is_hash(hash) || to->packets)
        return refuse(reader, "it is no line of a frame");
    void *list = grow(to->frame, to->frames, sizeof *to->frame);
    if (!list)
        return STATUS_MEMORY;
    to->frame = list;
    to->frame[to->frames].pts = pts;
    memcpy(to->frame[to->frames++].hash, hash, FRAME_HASH_TEXT);
    hash_tree_add(&reader->frames, reader->line, length);
    return STATUS_OK;
}

static enum status add_packet(struct reader *reader, json_t *line, size_t length)
{
    struct manifest *to = reader->to;
    json_int_t pts, size;
    int key;
    const char *kind, *hash;
    if (json_unpack(line, "[sIbIs!]", &kind, &pts, &key, &size, &hash) || !is_hash(hash))
        return refuse(reader, "it is no line of a packet");
    void *list = grow(to->packet, to->packets, sizeof *to->packet);
    if (!list)
        return STATUS_MEMORY;
    to->packet = list;
    struct manifest_packet *packet = &to->packet[to->packets++];
    *packet = (struct manifest_packet){.pts = pts, .key = key, .size = size};
    memcpy(packet->hash, hash, FRAME_HASH_TEXT);
    hash_tree_add(&reader->packets, reader->line, length);
    return STATUS_OK;
}

// True if identity and end are what they were.
static bool is_sealed(const struct manifest *manifest)
{
    char seal[FRAME_HASH_TEXT];
    const char *said = json_string_value(json_object_get(manifest->end, "seal"));
    return said && !manifest_seal(manifest->identity, manifest->end, seal) && !strcmp(said, seal);
}

// True if the end says of the lines before it what they are.
static bool ends_well(const struct reader *reader)
{
    const struct manifest *to = reader->to;
    char frames[HASH_TREE_TEXT], packets[HASH_TREE_TEXT];
    hash_tree_root(&reader->frames, frames);
    hash_tree_root(&reader->packets, packets);
    const char *said = json_string_value(json_object_get(to->end, "root"));
    const char *said_packets = json_string_value(json_object_get(to->end, "packet_root"));
    return is_sealed(to) && said && said_packets && !strcmp(said, frames) &&
           !strcmp(said_packets, packets) &&
           json_integer_value(json_object_get(to->end, "frames")) == to->frames &&
           json_integer_value(json_object_get(to->end, "packets")) == to->packets;
}

static enum status read_identity(struct reader *reader)
{
    size_t length;
    json_t *line = next_line(reader, &length);
    json_int_t version = json_integer_value(json_object_get(line, "sluice-manifest"));
    reader->to->identity = line;
    if (!version)
        return refuse(reader, "it is no manifest of sluice");
    if (version != MANIFEST_VERSION)
        return refuse(reader, "it is a manifest of another version of sluice");
    json_int_t stream = json_integer_value(json_object_get(line, "stream"));
    json_int_t part = json_integer_value(json_object_get(line, "part"));
    json_int_t parts = json_integer_value(json_object_get(line, "parts"));
    if (stream < -1 || stream > 1 << 20 || part < 0 || part >= parts || parts > 1 << 20)
        return refuse(reader, "its stream or part is none");
    return STATUS_OK;
}

// Read one line behind the first.
static enum status read_line(struct reader *reader)
{
    size_t length;
    json_t *line = next_line(reader, &length);
    const char *kind = json_string_value(json_array_get(line, 0));
    enum status status = STATUS_OK;
    if (!line) {
        status = refuse(reader, feof(reader->file) ? "the manifest is cut short" : "it is no JSON");
    } else if (json_is_object(line)) {
        reader->to->end = json_incref(line);
        if (!ends_well(reader))
            status = refuse(reader, "it has been altered: the hashes over its lines are others");
    } else if (kind && !strcmp(kind, "frame")) {
        status = add_frame(reader, line, length);
    } else if (kind && !strcmp(kind, "packet")) {
        status = add_packet(reader, line, length);
    } else {
        status = refuse(reader, "it is neither of a frame nor of a packet");
    }
    json_decref(line);
    return status;
}

static enum status read_lines(struct reader *reader)
{
    enum status status = read_identity(reader);
    while (!status && !reader->to->end)
        status = read_line(reader);
    if (!status && getline(&reader->line, &reader->room, reader->file) > 0)
        status = refuse(reader, "more follows behind the end");
    return status;
}

enum status manifest_seal(const json_t *identity, const json_t *end, char seal[FRAME_HASH_TEXT])
{
    json_t *both = json_array(), *bare = json_copy((json_t *)end);
    if (bare)
        json_object_del(bare, "seal");
    bool whole = !json_array_append(both, (json_t *)identity);
    whole &= !json_array_append_new(both, bare);
    char *text = whole ? json_dumps(both, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text)
        bytes_hash(text, strlen(text), seal);
    free(text);
    json_decref(both);
    return text ? STATUS_OK : STATUS_MEMORY;
}

enum status manifest_read(const char *name, const struct log *log, struct manifest *manifest)
{
    *manifest = (struct manifest){.name = strdup(name)};
    struct reader reader = {.log = log, .to = manifest};
    if (!manifest->name)
        return STATUS_MEMORY;
    reader.file = fopen(name, "re");
    if (!reader.file)
        return log_fail(log, STATUS_INPUT, "%s cannot be read: %s", name, strerror(errno));
    enum status status = hash_tree_init(&reader.frames);
    if (!status)
        status = hash_tree_init(&reader.packets);
    if (!status)
        status = read_lines(&reader);
    hash_tree_finish(&reader.frames);
    hash_tree_finish(&reader.packets);
    fclose(reader.file);
    free(reader.line);
    return status;
}

void manifest_free(struct manifest *manifest)
{
    json_decref(manifest->identity);
    json_decref(manifest->end);
    free(manifest->frame);
    free(manifest->packet);
    free(manifest->name);
    *manifest = (struct manifest){0};
}

// ---- identities ----

bool manifest_is_alike(const json_t *a, const json_t *b, const char **what)
{
    static const char *const of_all[] = {"sluice-manifest", "source", "stream", "chain",
                                         "arithmetic",      "output", "parts"};
    *what = NULL;
    for (size_t k = 0; k < sizeof of_all / sizeof *of_all && !*what; k++)
        if (!json_equal(json_object_get(a, of_all[k]), json_object_get(b, of_all[k])))
            *what = of_all[k];
    return !*what;
}

// ---- the source ----

enum { BLOCK = 1 << 16, BLOCKS = 64 };

static bool read_block(FILE *file, int64_t at, char *to, size_t *got)
{
    if (fseeko(file, at, SEEK_SET))
        return false;
    *got = fread(to, 1, BLOCK, file);
    return !ferror(file);
}

// Hash the file's size, and up to BLOCKS blocks of it: the first, the last, and others between.
static enum status hash_file(FILE *file, int64_t size, char text[FRAME_HASH_TEXT])
{
    char *room = malloc(((size_t)BLOCKS * BLOCK));
    size_t used = 0, got = 1;
    int64_t last = size > BLOCK ? size - BLOCK : 0;
    bool whole = room;
    for (int k = 0; whole && k < BLOCKS && got; k++) {
        int64_t at = size <= (int64_t)BLOCKS * BLOCK ? (int64_t)k * BLOCK : last / (BLOCKS - 1) * k;
        if (k == BLOCKS - 1 && size > (int64_t)BLOCKS * BLOCK)
            at = last;
        whole = read_block(file, at, room + used, &got);
        used += got;
    }
    if (whole)
        bytes_hash(room, used, text);
    free(room);
    return whole ? STATUS_OK : room ? STATUS_INPUT : STATUS_MEMORY;
}

enum status manifest_of_source(const char *name, const struct log *log, json_t **source)
{
    char hash[FRAME_HASH_TEXT];
    FILE *file = fopen(name, "re");
    int64_t size = file && !fseeko(file, 0, SEEK_END) ? ftello(file) : -1;
    enum status status = size < 0 ? STATUS_INPUT : hash_file(file, size, hash);
    if (status == STATUS_INPUT)
        log_print(log, LOG_ERROR, "%s cannot be read: %s", name, strerror(errno));
    if (file)
        fclose(file);
    *source = status ? NULL : json_pack("{sI ss}", "bytes", (json_int_t)size, "hash", hash);
    return status ? status : *source ? STATUS_OK : STATUS_MEMORY;
}

// ---- other members ----

enum status manifest_of_file(const char *name, const struct log *log, json_t **about)
{
    char hash[FRAME_HASH_TEXT];
    int64_t size = 0;
    FILE *file = fopen(name, "re");
    enum status status = file ? stream_hash(file, hash, &size) : STATUS_INPUT;
    if (status == STATUS_INPUT)
        log_print(log, LOG_ERROR, "%s cannot be read: %s", name, strerror(errno));
    if (file)
        fclose(file);
    *about = status ? NULL : json_pack("{sI ss}", "bytes", (json_int_t)size, "hash", hash);
    return status ? status : *about ? STATUS_OK : STATUS_MEMORY;
}

json_t *manifest_of_ledger(const struct sluice_ledger *ledger)
{
    return json_pack("{sI sI sI sI sI}", "frames_in", (json_int_t)ledger->frames_in, "frames_out",
                     (json_int_t)ledger->frames_out, "dropped_clock",
                     (json_int_t)ledger->dropped_clock, "frames_damaged",
                     (json_int_t)ledger->frames_damaged, "packets_damaged",
                     (json_int_t)ledger->packets_damaged);
}

// ---- encoded video ----

static void print_bytes(const uint8_t *data, int size, char *to)
{
    *to = 0;
    for (int k = 0; k < size; k++)
        snprintf(to + 2 * k, 3, "%02x", data[k]);
}

enum status manifest_add(json_t *to, json_t *more)
{
    bool added = more && !json_object_update(to, more);
    json_decref(more);
    return added ? STATUS_OK : STATUS_MEMORY;
}

json_t *manifest_of_ratio(AVRational ratio)
{
    char text[32];
    snprintf(text, sizeof text, "%d/%d", ratio.num, ratio.den);
    return json_string(text);
}

bool manifest_ratio(const json_t *of, const char *name, AVRational *ratio)
{
    const char *text = json_string_value(json_object_get(of, name));
    if (text && av_parse_ratio(ratio, text, INT32_MAX, 0, NULL) >= 0 && ratio->num > 0 &&
        ratio->den > 0)
        return true;
    *ratio = (AVRational){0, 1};
    return false;
}

json_t *manifest_of_video(const AVCodecParameters *codec)
{
    char *extradata = malloc(2 * (size_t)codec->extradata_size + 1);
    if (!extradata)
        return NULL;
    print_bytes(codec->extradata, codec->extradata_size, extradata);
    const char *format = av_get_pix_fmt_name(codec->format);
    json_t *video = json_pack(
        "{ss ss si si si si sI si si si si si si si si ss sI si}", "codec",
        avcodec_get_name(codec->codec_id), "format", format ? format : "none", "width",
        codec->width, "height", codec->height, "profile", codec->profile, "level", codec->level,
        "bit_rate", (json_int_t)codec->bit_rate, "sar_num", codec->sample_aspect_ratio.num,
        "sar_den", codec->sample_aspect_ratio.den, "field_order", codec->field_order, "range",
        codec->color_range, "primaries", codec->color_primaries, "transfer", codec->color_trc,
        "matrix", codec->color_space, "chroma_location", codec->chroma_location, "extradata",
        extradata, "tag", (json_int_t)codec->codec_tag, "delay", codec->video_delay);
    free(extradata);
    return video;
}

static int member(const json_t *video, const char *name)
{
    return (int)json_integer_value(json_object_get(video, name));
}

static enum status scan_bytes(const char *text, AVCodecParameters *codec)
{
    size_t size = strlen(text) / 2;
    if (!size)
        return STATUS_OK;
    codec->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!codec->extradata)
        return STATUS_MEMORY;
    codec->extradata_size = (int)size;
    for (size_t k = 0; k < size; k++) {
        unsigned byte;
        if (sscanf(text + 2 * k, "%2x", &byte) != 1)
            return STATUS_INPUT;
        codec->extradata[k] = (uint8_t)byte;
    }
    return STATUS_OK;
}

// True if the numbers are such as an encoder may say.
static bool is_sane(const json_t *video)
{
    static const struct {
        const char *name;
        json_int_t least, most;
    } members[] = {
        {"width", 1, 1 << 20},       {"height", 1, 1 << 20},    {"delay", 0, 64},
        {"sar_num", 0, INT32_MAX},   {"sar_den", 0, INT32_MAX}, {"range", 0, 255},
        {"primaries", 0, 255},       {"transfer", 0, 255},      {"matrix", 0, 255},
        {"chroma_location", 0, 255}, {"field_order", 0, 255},
    };
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
        json_int_t value = json_integer_value(json_object_get(video, members[k].name));
        if (value < members[k].least || value > members[k].most)
            return false;
    }
    return true;
}

enum status manifest_video(const json_t *video, AVCodecParameters *codec)
{
    const char *name = json_string_value(json_object_get(video, "codec"));
    const char *format = json_string_value(json_object_get(video, "format"));
    const char *extradata = json_string_value(json_object_get(video, "extradata"));
    const AVCodecDescriptor *about = name ? avcodec_descriptor_get_by_name(name) : NULL;
    if (!about || about->type != AVMEDIA_TYPE_VIDEO || !format || !extradata ||
        av_get_pix_fmt(format) == AV_PIX_FMT_NONE || !is_sane(video))
        return STATUS_INPUT;
    codec->codec_type = AVMEDIA_TYPE_VIDEO;
    codec->codec_id = about->id;
    codec->codec_tag = (uint32_t)json_integer_value(json_object_get(video, "tag"));
    codec->format = av_get_pix_fmt(format);
    codec->width = member(video, "width");
    codec->height = member(video, "height");
    codec->profile = member(video, "profile");
    codec->level = member(video, "level");
    codec->bit_rate = json_integer_value(json_object_get(video, "bit_rate"));
    codec->sample_aspect_ratio = (AVRational){member(video, "sar_num"), member(video, "sar_den")};
    codec->field_order = (enum AVFieldOrder)member(video, "field_order");
    codec->color_range = (enum AVColorRange)member(video, "range");
    codec->color_primaries = (enum AVColorPrimaries)member(video, "primaries");
    codec->color_trc = (enum AVColorTransferCharacteristic)member(video, "transfer");
    codec->color_space = (enum AVColorSpace)member(video, "matrix");
    codec->chroma_location = (enum AVChromaLocation)member(video, "chroma_location");
    codec->video_delay = member(video, "delay");
    return scan_bytes(extradata, codec);
}

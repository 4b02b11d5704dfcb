#include "page/player/keep.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <libavutil/frame.h>
#include <libavutil/mathematics.h>
#include <pthread.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/packet.h"

// Times that go back by more are a jump of the clock, no reordering of frames.
static const int64_t max_back_us = 10 * INT64_C(1000000);

// Parameters that several groups share; guarded by the keep's lock.
struct shared_codec {
    int refs;
    AVCodecParameters *codec;
};

struct entry {
    struct packet *packet;
    int64_t at_us;              // its time, worked out where it has none
    struct shared_codec *codec; // a key frame's; NULL: it is none
};

// A row of entries in a ring of a power of two.
struct row {
    struct entry *entry;
    int64_t first, end; // numbers: entry n is entry[n & (room - 1)]
    int64_t room;
    int64_t bytes, end_us;
};

struct keep {
    double seconds;
    int64_t limit;
    AVRational time_base;
    int64_t frame_us;
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct shared_codec *codec; // now
    struct row row, next;       // `next` is in use while `full`
    bool held, full, finished;
};

// ---- parameters ----

static struct shared_codec *share_codec(const AVCodecParameters *from)
{
    struct shared_codec *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->refs = 1;
    made->codec = avcodec_parameters_alloc();
    if (made->codec && avcodec_parameters_copy(made->codec, from) >= 0)
        return made;
    avcodec_parameters_free(&made->codec);
    free(made);
    return NULL;
}

static struct shared_codec *ref_codec(struct shared_codec *codec)
{
    codec->refs++;
    return codec;
}

static void unref_codec(struct shared_codec **codec)
{
    if (*codec && !--(*codec)->refs) {
        avcodec_parameters_free(&(*codec)->codec);
        free(*codec);
    }
    *codec = NULL;
}

// ---- rows ----

static struct entry *entry_at(const struct row *row, int64_t number)
{
    assert(number >= row->first && number < row->end);
    return &row->entry[number & (row->room - 1)];
}

// The weight of a packet: its data, and about what it takes beside it. A packet that is a frame
// itself points at more than its data.
static int64_t weigh(const struct entry *entry)
{
    enum { BESIDE = 512 };
    const AVPacket *av = entry->packet->av;
    int64_t bytes = BESIDE + av->size;
    bool is_frame = entry->codec && entry->codec->codec->codec_id == AV_CODEC_ID_WRAPPED_AVFRAME;
    const AVFrame *frame = is_frame ? (const AVFrame *)(const void *)av->data : NULL;
    for (int k = 0; frame && k < AV_NUM_DATA_POINTERS && frame->buf[k]; k++)
        bytes += (int64_t)frame->buf[k]->size;
    return bytes;
}

static void drop_first(struct row *row)
{
    struct entry *entry = entry_at(row, row->first);
    row->bytes -= weigh(entry);
    packet_destroy(&entry->packet);
    unref_codec(&entry->codec);
    row->first++;
}

static void drop_all(struct row *row)
{
    while (row->first < row->end)
        drop_first(row);
}

// The number of the second group's beginning; -1: there is one group, or none.
static int64_t second_group(const struct row *row)
{
    for (int64_t n = row->first + 1; n < row->end; n++)
        if (entry_at(row, n)->codec)
            return n;
    return -1;
}

static void drop_group(struct row *row, int64_t second)
{
    while (row->first < second)
        drop_first(row);
}

// Drop groups at the front as the bounds want it; beside what is held there is half the room.
static void trim(const struct keep *keep, struct row *row)
{
    int64_t limit = keep->full ? keep->limit / 2 : keep->limit;
    int64_t span_us = (int64_t)(keep->seconds * AV_TIME_BASE);
    for (;;) {
        int64_t second = second_group(row);
        bool old = second >= 0 && row->end_us - entry_at(row, second)->at_us >= span_us;
        if (!old && row->bytes <= limit)
            return;
        if (second < 0) {
            drop_all(row);
            return;
        }
        drop_group(row, second);
    }
}

static bool grow(struct row *row)
{
    int64_t room = row->room ? 2 * row->room : 64;
    struct entry *wider = calloc((size_t)room, sizeof *wider);
    if (!wider)
        return false;
    for (int64_t n = row->first; n < row->end; n++)
        wider[n & (room - 1)] = *entry_at(row, n);
    free(row->entry);
    row->entry = wider;
    row->room = room;
    return true;
}

// ---- packets ----

// A packet's time: its pts, or its dts, or the end of what was before.
static int64_t time_of(const struct keep *keep, const struct row *row, const struct packet *packet)
{
    if (packet->pts_us != AV_NOPTS_VALUE)
        return packet->pts_us;
    if (packet->av->dts != AV_NOPTS_VALUE)
        return av_rescale_q(packet->av->dts, keep->time_base, AV_TIME_BASE_Q);
    return row->first < row->end ? row->end_us : 0;
}

static int64_t duration_of(const struct keep *keep, const AVPacket *av)
{
    int64_t us = av_rescale_q(av->duration, keep->time_base, AV_TIME_BASE_Q);
    return us > 0 ? us : keep->frame_us;
}

static void append(struct keep *keep, struct row *row, struct packet **packet)
{
    bool key = (*packet)->av->flags & AV_PKT_FLAG_KEY && (*packet)->av->size;
    int64_t at_us = time_of(keep, row, *packet), end_us = at_us;
    if ((*packet)->av->size)
        end_us += duration_of(keep, (*packet)->av);
    bool first = row->first == row->end;
    if (first && !key)
        return;
    if (row->end - row->first == row->room && !grow(row)) {
        drop_all(row);
        return;
    }
    row->end++;
    struct entry *entry = entry_at(row, row->end - 1);
    *entry = (struct entry){.packet = *packet, .at_us = at_us};
    if (key)
        entry->codec = ref_codec(keep->codec);
    row->bytes += weigh(entry);
    row->end_us = first || end_us > row->end_us ? end_us : row->end_us;
    *packet = NULL;
}

static bool jumps_back(const struct keep *keep, const struct row *row, const struct packet *packet)
{
    return row->first < row->end && time_of(keep, row, packet) < row->end_us - max_back_us;
}

// True if what is held has grown as far as it may.
static bool is_grown(const struct keep *keep)
{
    const struct row *row = &keep->row;
    if (row->first == row->end)
        return false;
    double seconds = (double)(row->end_us - entry_at(row, row->first)->at_us) / AV_TIME_BASE;
    return row->bytes > keep->limit + keep->limit / 2 || seconds > 2 * keep->seconds;
}

// The row that takes this packet: what is held takes none once it has grown so far, or the clock
// jumped.
static struct row *row_for(struct keep *keep, const struct packet *packet)
{
    struct row *row = keep->full ? &keep->next : &keep->row;
    bool jumps = packet && jumps_back(keep, row, packet);
    if (keep->held && !keep->full && (jumps || is_grown(keep))) {
        keep->full = true;
        keep->next.first = keep->next.end = keep->row.end;
        row = &keep->next;
    } else if (jumps) {
        drop_all(row);
    }
    return row;
}

static void put_locked(struct keep *keep, struct packet **packet)
{
    struct row *row = row_for(keep, *packet);
    if (*packet && (*packet)->codec) {
        unref_codec(&keep->codec);
        keep->codec = share_codec((*packet)->codec);
    }
    if (!*packet || !keep->codec) {
        drop_all(row);
        return;
    }
    append(keep, row, packet);
    if (!keep->held || keep->full)
        trim(keep, row);
}

void keep_put(struct keep *keep, const struct packet *packet)
{
    struct packet *clone = packet_clone(packet);
    pthread_mutex_lock(&keep->lock);
    put_locked(keep, &clone);
    pthread_mutex_unlock(&keep->lock);
    packet_destroy(&clone);
}

void keep_hold(struct keep *keep, bool hold)
{
    pthread_mutex_lock(&keep->lock);
    keep->held = hold;
    if (!hold && keep->full) {
        struct row old = keep->row;
        keep->row = keep->next;
        drop_all(&old);
        keep->next = (struct row){.entry = old.entry, .room = old.room};
        keep->full = false;
    }
    if (!hold)
        trim(keep, &keep->row);
    pthread_mutex_unlock(&keep->lock);
}

void keep_finish(struct keep *keep)
{
    pthread_mutex_lock(&keep->lock);
    keep->finished = true;
    pthread_mutex_unlock(&keep->lock);
}

// ---- reading ----

void keep_measure(struct keep *keep, struct keep_span *span)
{
    pthread_mutex_lock(&keep->lock);
    const struct row *row = &keep->row;
    bool any = row->first < row->end;
    *span = (struct keep_span){
        .first = row->first,
        .end = row->end,
        .begin_us = any ? entry_at(row, row->first)->at_us : AV_NOPTS_VALUE,
        .end_us = any ? row->end_us : AV_NOPTS_VALUE,
        .bytes = row->bytes + keep->next.bytes,
        .more = !keep->full && !keep->finished,
    };
    pthread_mutex_unlock(&keep->lock);
}

static int64_t find_locked(const struct row *row, int64_t at_us, int64_t before)
{
    int64_t n = before < row->end ? before - 1 : row->end - 1, found = -1;
    for (; n >= row->first; n--) {
        const struct entry *entry = entry_at(row, n);
        if (entry->codec)
            found = n;
        if (entry->codec && entry->at_us <= at_us)
            break;
    }
    return found;
}

int64_t keep_find(struct keep *keep, int64_t at_us, int64_t before)
{
    pthread_mutex_lock(&keep->lock);
    int64_t found = find_locked(&keep->row, at_us, before);
    pthread_mutex_unlock(&keep->lock);
    return found;
}

enum status keep_read(struct keep *keep, int64_t number, struct packet **packet)
{
    *packet = NULL;
    pthread_mutex_lock(&keep->lock);
    bool there = number >= keep->row.first && number < keep->row.end;
    if (there)
        *packet = packet_clone(entry_at(&keep->row, number)->packet);
    pthread_mutex_unlock(&keep->lock);
    return *packet ? STATUS_OK : there ? STATUS_MEMORY : STATUS_EOF;
}

AVCodecParameters *keep_codec(struct keep *keep, int64_t number)
{
    AVCodecParameters *copy = avcodec_parameters_alloc();
    pthread_mutex_lock(&keep->lock);
    bool there = number >= keep->row.first && number < keep->row.end;
    const struct entry *entry = there ? entry_at(&keep->row, number) : NULL;
    if (!copy || !entry || !entry->codec || avcodec_parameters_copy(copy, entry->codec->codec) < 0)
        avcodec_parameters_free(&copy);
    pthread_mutex_unlock(&keep->lock);
    return copy;
}

// ---- life ----

enum status keep_create(const struct keep_request *request, struct keep **keep)
{
    assert(request->seconds > 0 && request->bytes > 0 && request->codec);
    *keep = calloc(1, sizeof **keep);
    if (!*keep)
        return STATUS_MEMORY;
    (*keep)->seconds = request->seconds;
    (*keep)->limit = request->bytes;
    (*keep)->time_base = request->time_base;
    (*keep)->frame_us = request->frame_us > 0 ? request->frame_us : 40000;
    pthread_mutex_init(&(*keep)->lock, NULL);
    (*keep)->codec = share_codec(request->codec);
    if (!(*keep)->codec)
        keep_destroy(keep);
    return *keep ? STATUS_OK : STATUS_MEMORY;
}

void keep_destroy(struct keep **keep)
{
    if (!*keep)
        return;
    struct keep *old = *keep;
    drop_all(&old->row);
    drop_all(&old->next);
    free(old->row.entry);
    free(old->next.entry);
    unref_codec(&old->codec);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *keep = NULL;
}

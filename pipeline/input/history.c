#include "pipeline/input/history.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/input/key_frame.h"

struct entry {
    AVPacket *packet;
    bool begins;  // decoding may begin here
    bool refused; // by the decoder
};

struct history {
    _Atomic bool frozen;
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    AVCodecParameters *about;
    struct entry *entry;
    int count, room;
    int64_t bytes;
    bool whole;       // packets are kept from the first of `entry` on
    bool again;       // they are being decoded from the first on
    bool broken;      // ... and are of no use behind that
    int second_group; // where it begins in `entry`; 0: there is none yet
    // ---- the decode thread's ----
    bool began;     // a frame came
    int frames;     // at most in `pts`
    long long came; // frames
    int64_t *pts;   // of those that came last, by their number modulo `frames`
};

enum status history_create(const AVCodecParameters *about, int frames, struct history **history)
{
    assert(frames > 0);
    struct history *made = *history = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    made->frames = frames;
    made->pts = calloc((size_t)frames, sizeof *made->pts);
    enum status status = made->pts ? history_restart(made, about) : STATUS_MEMORY;
    if (status)
        history_destroy(history);
    return status;
}

static int64_t weight_of(const AVPacket *packet)
{
    return packet->size + HISTORY_BESIDE;
}

// Forget the first packets.
static void forget(struct history *history, int count)
{
    for (int k = 0; k < count; k++) {
        history->bytes -= weight_of(history->entry[k].packet);
        av_packet_free(&history->entry[k].packet);
    }
    history->count -= count;
    for (int k = 0; k < history->count; k++)
        history->entry[k] = history->entry[k + count];
}

void history_destroy(struct history **history)
{
    struct history *old = *history;
    if (!old)
        return;
    forget(old, old->count);
    free(old->entry);
    free(old->pts);
    avcodec_parameters_free(&old->about);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *history = NULL;
}

// ---- packets ----

// Decoding may begin at packets that are no weak key frames, if the time is known at which they are
// shown.
static bool may_begin(const struct history *history, const AVPacket *packet)
{
    return packet->flags & AV_PKT_FLAG_KEY && packet->pts != AV_NOPTS_VALUE &&
           !key_frame_is_weak(packet, history->about);
}

static void find_second_group(struct history *history, int from)
{
    history->second_group = 0;
    for (int k = from; k < history->count && !history->second_group; k++)
        if (history->entry[k].begins)
            history->second_group = k;
}

static void lose(struct history *history)
{
    forget(history, history->count);
    history->second_group = 0;
    history->whole = false;
}

static enum status append(struct history *history, const AVPacket *packet)
{
    if (history->count == history->room) {
        int room = history->room ? 2 * history->room : 64;
        struct entry *larger = realloc(history->entry, (size_t)room * sizeof *larger);
        if (!larger)
            return STATUS_MEMORY;
        history->entry = larger;
        history->room = room;
    }
    AVPacket *copy = av_packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    bool begins = may_begin(history, packet);
    if (begins && history->count && !history->second_group)
        history->second_group = history->count;
    history->entry[history->count++] = (struct entry){copy, begins, false};
    history->bytes += weight_of(packet);
    return STATUS_OK;
}

enum status history_add(struct history *history, const AVPacket *packet)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&history->lock);
    bool trims = history->began && !history->frozen && !history->again;
    if (trims && history->bytes + weight_of(packet) > budget_history)
        lose(history);
    if (!history->whole && may_begin(history, packet))
        history->whole = true;
    if (history->whole)
        status = append(history, packet);
    pthread_mutex_unlock(&history->lock);
    return status;
}

bool history_is_half_full(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    bool half = history->bytes > budget_history / 2;
    pthread_mutex_unlock(&history->lock);
    return half;
}

void history_begin_again(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    history->began = history->broken = false;
    history->again = true;
    pthread_mutex_unlock(&history->lock);
}

void history_end_again(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    if (history->broken && !history->frozen)
        lose(history);
    history->again = history->broken = false;
    pthread_mutex_unlock(&history->lock);
}

void history_note_refused(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    if (history->count)
        history->entry[history->count - 1].refused = true;
    pthread_mutex_unlock(&history->lock);
}

void history_forget_refused(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    for (int k = 0; k < history->count; k++)
        history->entry[k].refused = false;
    pthread_mutex_unlock(&history->lock);
}

bool history_is_full(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    bool full = !history->began && history->bytes > budget_history;
    pthread_mutex_unlock(&history->lock);
    return full;
}

// ---- frames ----

static bool falls(const struct history *history, int64_t pts)
{
    return history->came && pts <= history->pts[(history->came - 1) % history->frames];
}

// The time of the oldest frame that may be wanted.
static int64_t oldest(const struct history *history)
{
    long long first = history->came > history->frames ? history->came - history->frames : 0;
    return history->pts[first % history->frames];
}

void history_note_frame(struct history *history, int64_t pts, bool is_guessed)
{
    pthread_mutex_lock(&history->lock);
    bool lost = is_guessed || falls(history, pts);
    if (lost && history->again)
        history->broken = true;
    else if (lost && !history->frozen)
        lose(history);
    if (lost)
        history->came = 0;
    history->began = true;
    history->pts[history->came++ % history->frames] = pts;
    while (!history->frozen && !history->again && history->second_group &&
           history->entry[history->second_group].packet->pts <= oldest(history)) {
        forget(history, history->second_group);
        find_second_group(history, 1);
    }
    pthread_mutex_unlock(&history->lock);
}

enum status history_restart(struct history *history, const AVCodecParameters *about)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&history->lock);
    if (!history->frozen) {
        AVCodecParameters *copy = avcodec_parameters_alloc();
        if (!copy || avcodec_parameters_copy(copy, about) < 0)
            status = STATUS_MEMORY;
        lose(history);
        avcodec_parameters_free(&history->about);
        history->about = copy;
        history->whole = !status;
        history->began = history->again = history->broken = false;
        history->came = 0;
    }
    pthread_mutex_unlock(&history->lock);
    return status;
}

void history_freeze(struct history *history)
{
    pthread_mutex_lock(&history->lock);
    history->frozen = true;
    pthread_mutex_unlock(&history->lock);
}

bool history_is_frozen(const struct history *history)
{
    return history->frozen;
}

// ---- reading ----

enum status history_packet(struct history *history, int number, AVPacket **packet)
{
    enum status status = STATUS_OK;
    *packet = NULL;
    pthread_mutex_lock(&history->lock);
    if (number < history->count) {
        *packet = av_packet_clone(history->entry[number].packet);
        status = *packet ? STATUS_OK : STATUS_MEMORY;
    }
    pthread_mutex_unlock(&history->lock);
    return status;
}

bool history_was_refused(struct history *history, int number)
{
    pthread_mutex_lock(&history->lock);
    bool refused = number < history->count && history->entry[number].refused;
    pthread_mutex_unlock(&history->lock);
    return refused;
}

bool history_reaches(struct history *history, int64_t pts)
{
    pthread_mutex_lock(&history->lock);
    const struct entry *first = history->count ? history->entry : NULL;
    bool all = history->whole && !history->began;
    bool reaches = all || (history->whole && pts != AV_NOPTS_VALUE &&
                           (!first || !first->begins || first->packet->pts <= pts));
    pthread_mutex_unlock(&history->lock);
    return reaches;
}

const AVCodecParameters *history_about(const struct history *history)
{
    return history->about;
}

#include "pipeline/engine/threads/ring.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/monitor.h"

struct ring {
    int slots, pictures;
    struct slot *slot;
    struct monitor lock;
    // ---- guarded by lock ----
    // Counts since the beginning; slot n % slots is meant by count n.
    long long claimed, published, taken, released;
    long long occupied; // sum over claims of the slots in use
    bool finished, cancelled;
};

static enum status init_slot(struct slot *slot, int number, int pictures)
{
    slot->number = number;
    slot->in = av_frame_alloc();
    bool whole = slot->in;
    for (int n = 0; n < pictures; n++)
        whole = (slot->out[n] = av_frame_alloc()) && whole;
    return whole ? STATUS_OK : STATUS_MEMORY;
}

enum status ring_create(int slots, int pictures, struct ring **ring)
{
    assert(slots > 0 && pictures > 0 && pictures <= MAX_PICTURES);
    *ring = calloc(1, sizeof **ring);
    if (!*ring)
        return STATUS_MEMORY;
    monitor_init(&(*ring)->lock);
    (*ring)->slots = slots;
    (*ring)->pictures = pictures;
    (*ring)->slot = calloc((size_t)slots, sizeof *(*ring)->slot);
    enum status status = (*ring)->slot ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < slots && !status; k++)
        status = init_slot(&(*ring)->slot[k], k, pictures);
    if (status)
        ring_destroy(ring);
    return status;
}

void ring_destroy(struct ring **ring)
{
    if (!*ring)
        return;
    assert((*ring)->taken == (*ring)->published && (*ring)->released == (*ring)->taken);
    for (int k = 0; (*ring)->slot && k < (*ring)->slots; k++) {
        av_frame_free(&(*ring)->slot[k].in);
        for (int n = 0; n < (*ring)->pictures; n++)
            av_frame_free(&(*ring)->slot[k].out[n]);
    }
    monitor_finish(&(*ring)->lock);
    free((*ring)->slot);
    free(*ring);
    *ring = NULL;
}

enum status ring_claim(struct ring *ring, struct slot **slot)
{
    monitor_lock(&ring->lock);
    assert(!ring->finished && ring->claimed == ring->published); // one is filled at a time
    while (ring->claimed - ring->released == ring->slots && !ring->cancelled)
        monitor_wait(&ring->lock);
    enum status status = ring->cancelled ? STATUS_EOF : STATUS_OK;
    if (!status) {
        ring->occupied += ring->claimed - ring->released;
        *slot = &ring->slot[ring->claimed++ % ring->slots];
    }
    monitor_unlock(&ring->lock);
    return status;
}

void ring_publish(struct ring *ring, struct slot *slot)
{
    monitor_lock(&ring->lock);
    assert(ring->published < ring->claimed);
    assert(slot == &ring->slot[ring->published % ring->slots]);
    (void)slot;
    ring->published++;
    monitor_notify(&ring->lock);
    monitor_unlock(&ring->lock);
}

enum status ring_drain(struct ring *ring)
{
    monitor_lock(&ring->lock);
    while (ring->published != ring->released)
        monitor_wait(&ring->lock);
    enum status status = ring->cancelled ? STATUS_EOF : STATUS_OK;
    monitor_unlock(&ring->lock);
    return status;
}

void ring_finish(struct ring *ring)
{
    monitor_lock(&ring->lock);
    ring->finished = true;
    monitor_notify(&ring->lock);
    monitor_unlock(&ring->lock);
}

enum status ring_take_until(struct ring *ring, struct slot **slot, int64_t until_ns)
{
    bool in_time = true;
    *slot = NULL;
    monitor_lock(&ring->lock);
    while (ring->taken == ring->published && !ring->finished && in_time)
        in_time = monitor_wait_until(&ring->lock, until_ns);
    bool ready = ring->taken < ring->published;
    enum status status = ready || !ring->finished ? STATUS_OK : STATUS_EOF;
    if (ready)
        *slot = &ring->slot[ring->taken++ % ring->slots];
    monitor_unlock(&ring->lock);
    return status;
}

enum status ring_take(struct ring *ring, struct slot **slot)
{
    return ring_take_until(ring, slot, INT64_MAX);
}

void ring_release(struct ring *ring, struct slot *slot)
{
    av_frame_unref(slot->in);
    for (int n = 0; n < ring->pictures; n++)
        av_frame_unref(slot->out[n]);
    monitor_lock(&ring->lock);
    assert(ring->released < ring->taken);
    assert(slot == &ring->slot[ring->released % ring->slots]);
    ring->released++;
    monitor_notify(&ring->lock);
    monitor_unlock(&ring->lock);
}

void ring_cancel(struct ring *ring)
{
    monitor_lock(&ring->lock);
    ring->cancelled = true;
    monitor_notify(&ring->lock);
    monitor_unlock(&ring->lock);
}

double ring_occupancy(struct ring *ring)
{
    monitor_lock(&ring->lock);
    double mean = ring->claimed ? (double)ring->occupied / (double)ring->claimed / ring->slots : 0;
    monitor_unlock(&ring->lock);
    return mean;
}

int ring_used(struct ring *ring)
{
    monitor_lock(&ring->lock);
    int used = (int)(ring->claimed - ring->released);
    monitor_unlock(&ring->lock);
    return used;
}

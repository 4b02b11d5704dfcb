#include "pipeline/engine/threads/snapshot.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/monitor.h"

struct snapshot {
    atomic_int waiting;
    struct monitor lock;
    // ---- guarded by lock ----
    AVFrame *frame; // the last that was wanted
    int64_t frames; // so many were
    bool finished;
};

enum status snapshot_create(struct snapshot **snapshot)
{
    *snapshot = calloc(1, sizeof **snapshot);
    if (!*snapshot)
        return STATUS_MEMORY;
    monitor_init(&(*snapshot)->lock);
    return STATUS_OK;
}

void snapshot_destroy(struct snapshot **snapshot)
{
    if (!*snapshot)
        return;
    av_frame_free(&(*snapshot)->frame);
    monitor_finish(&(*snapshot)->lock);
    free(*snapshot);
    *snapshot = NULL;
}

void snapshot_offer(struct snapshot *snapshot, const AVFrame *frame)
{
    assert(frame->buf[0]);
    if (!snapshot->waiting)
        return;
    monitor_lock(&snapshot->lock);
    av_frame_free(&snapshot->frame);
    snapshot->frame = av_frame_clone(frame);
    snapshot->frames++;
    monitor_notify(&snapshot->lock);
    monitor_unlock(&snapshot->lock);
}

void snapshot_take(struct snapshot *snapshot, int64_t until_ns, AVFrame **frame)
{
    bool in_time = true;
    monitor_lock(&snapshot->lock);
    int64_t seen = snapshot->frames;
    snapshot->waiting++;
    while (snapshot->frames == seen && !snapshot->finished && in_time)
        in_time = monitor_wait_until(&snapshot->lock, until_ns);
    *frame = snapshot->frames > seen && snapshot->frame ? av_frame_clone(snapshot->frame) : NULL;
    if (--snapshot->waiting == 0)
        av_frame_free(&snapshot->frame);
    assert(snapshot->waiting >= 0);
    monitor_unlock(&snapshot->lock);
}

void snapshot_finish(struct snapshot *snapshot)
{
    monitor_lock(&snapshot->lock);
    snapshot->finished = true;
    monitor_notify(&snapshot->lock);
    monitor_unlock(&snapshot->lock);
}

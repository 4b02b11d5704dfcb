#include "pipeline/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct snapshot {
    atomic_int waiting;
    pthread_mutex_t lock;
    pthread_cond_t changed;
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
    pthread_mutex_init(&(*snapshot)->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&(*snapshot)->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return STATUS_OK;
}

void snapshot_destroy(struct snapshot **snapshot)
{
    if (!*snapshot)
        return;
    av_frame_free(&(*snapshot)->frame);
    pthread_mutex_destroy(&(*snapshot)->lock);
    pthread_cond_destroy(&(*snapshot)->changed);
    free(*snapshot);
    *snapshot = NULL;
}

void snapshot_offer(struct snapshot *snapshot, const AVFrame *frame)
{
    if (!snapshot->waiting)
        return;
    pthread_mutex_lock(&snapshot->lock);
    av_frame_free(&snapshot->frame);
    snapshot->frame = av_frame_clone(frame);
    snapshot->frames++;
    pthread_cond_broadcast(&snapshot->changed);
    pthread_mutex_unlock(&snapshot->lock);
}

void snapshot_take(struct snapshot *snapshot, int64_t until_ns, AVFrame **frame)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    int expired = 0;
    pthread_mutex_lock(&snapshot->lock);
    int64_t seen = snapshot->frames;
    snapshot->waiting++;
    while (snapshot->frames == seen && !snapshot->finished && !expired)
        expired = pthread_cond_timedwait(&snapshot->changed, &snapshot->lock, &until);
    *frame = snapshot->frames > seen && snapshot->frame ? av_frame_clone(snapshot->frame) : NULL;
    if (--snapshot->waiting == 0)
        av_frame_free(&snapshot->frame);
    pthread_mutex_unlock(&snapshot->lock);
}

void snapshot_finish(struct snapshot *snapshot)
{
    pthread_mutex_lock(&snapshot->lock);
    snapshot->finished = true;
    pthread_cond_broadcast(&snapshot->changed);
    pthread_mutex_unlock(&snapshot->lock);
}

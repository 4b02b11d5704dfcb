#include "pipeline/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct queue {
    int capacity;
    void (*drop)(void *item);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    void **item; // a ring: `count` items from `first` on
    int first, count;
    int writers;
    bool closed;
};

enum status queue_create(int capacity, int writers, void (*drop)(void *item), struct queue **queue)
{
    *queue = calloc(1, sizeof **queue);
    if (!*queue)
        return STATUS_MEMORY;
    (*queue)->capacity = capacity;
    (*queue)->writers = writers;
    (*queue)->drop = drop;
    pthread_mutex_init(&(*queue)->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&(*queue)->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    (*queue)->item = calloc((size_t)capacity, sizeof *(*queue)->item);
    if (!(*queue)->item) {
        queue_destroy(queue);
        return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static void drop_all_locked(struct queue *queue)
{
    for (; queue->count; queue->count--) {
        queue->drop(queue->item[queue->first]);
        queue->first = (queue->first + 1) % queue->capacity;
    }
}

void queue_destroy(struct queue **queue)
{
    if (!*queue)
        return;
    drop_all_locked(*queue);
    pthread_mutex_destroy(&(*queue)->lock);
    pthread_cond_destroy(&(*queue)->changed);
    free((*queue)->item);
    free(*queue);
    *queue = NULL;
}

static void take_locked(struct queue *queue, void *item)
{
    void *none = NULL;
    memcpy(&queue->item[(queue->first + queue->count++) % queue->capacity], item, sizeof none);
    memcpy(item, &none, sizeof none);
    pthread_cond_broadcast(&queue->changed);
}

enum status queue_push(struct queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == queue->capacity && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    enum status status = queue->closed ? STATUS_EOF : STATUS_OK;
    if (!status)
        take_locked(queue, item);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

enum status queue_offer(struct queue *queue, void *item, bool *taken)
{
    pthread_mutex_lock(&queue->lock);
    enum status status = queue->closed ? STATUS_EOF : STATUS_OK;
    *taken = !status && queue->count < queue->capacity;
    if (*taken)
        take_locked(queue, item);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

enum status queue_pop_until(struct queue *queue, void *item, int64_t until_ns)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    void *none = NULL;
    int expired = 0;
    pthread_mutex_lock(&queue->lock);
    while (!queue->count && queue->writers > 0 && !queue->closed && !expired)
        expired = pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
    enum status status = queue->count || expired ? STATUS_OK : STATUS_EOF;
    memcpy(item, queue->count ? &queue->item[queue->first] : &none, sizeof none);
    if (queue->count) {
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

enum status queue_pop(struct queue *queue, void *item)
{
    return queue_pop_until(queue, item, INT64_MAX);
}

void queue_finish(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->writers--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

int queue_abandon(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int dropped = queue->count;
    queue->closed = true;
    drop_all_locked(queue);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return dropped;
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

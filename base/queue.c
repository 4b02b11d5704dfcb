#include "base/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/monitor.h"

struct queue {
    int capacity;
    void (*drop)(void *item);
    int64_t max_bytes;
    int64_t (*weigh)(const void *item); // NULL: only the number counts
    struct monitor lock;
    // ---- guarded by lock ----
    void **item; // a ring: `count` items from `first` on
    int first, count;
    int64_t bytes;
    int writers;
    bool closed;
};

enum status queue_create(int capacity, int writers, void (*drop)(void *item), struct queue **queue)
{
    assert(capacity > 0 && writers > 0 && drop);
    *queue = calloc(1, sizeof **queue);
    if (!*queue)
        return STATUS_MEMORY;
    (*queue)->capacity = capacity;
    (*queue)->writers = writers;
    (*queue)->drop = drop;
    monitor_init(&(*queue)->lock);
    (*queue)->item = calloc((size_t)capacity, sizeof *(*queue)->item);
    if (!(*queue)->item) {
        queue_destroy(queue);
        return STATUS_MEMORY;
    }
    return STATUS_OK;
}

void queue_limit(struct queue *queue, int64_t bytes, int64_t (*weigh)(const void *item))
{
    assert(!queue->count && bytes > 0);
    queue->max_bytes = bytes;
    queue->weigh = weigh;
}

static void drop_all_locked(struct queue *queue)
{
    for (; queue->count; queue->count--) {
        queue->drop(queue->item[queue->first]);
        queue->first = (queue->first + 1) % queue->capacity;
    }
    queue->bytes = 0;
}

void queue_destroy(struct queue **queue)
{
    if (!*queue)
        return;
    drop_all_locked(*queue);
    monitor_finish(&(*queue)->lock);
    free((*queue)->item);
    free(*queue);
    *queue = NULL;
}

static int64_t weight_of(const struct queue *queue, const void *item)
{
    return queue->weigh ? queue->weigh(item) : 0;
}

static bool is_full_locked(const struct queue *queue, int64_t more)
{
    return queue->count == queue->capacity ||
           (queue->weigh && queue->count && queue->bytes + more > queue->max_bytes);
}

static void take_locked(struct queue *queue, void *item, int64_t weight)
{
    void *none = NULL;
    queue->bytes += weight;
    memcpy(&queue->item[(queue->first + queue->count++) % queue->capacity], item, sizeof none);
    memcpy(item, &none, sizeof none);
    monitor_notify(&queue->lock);
}

// `item` is a pointer to one.
static int64_t weigh(const struct queue *queue, const void *item)
{
    void *pointer;
    memcpy(&pointer, item, sizeof pointer);
    assert(pointer); // NULL is what pop gives when there is none
    return weight_of(queue, pointer);
}

enum status queue_push_until(struct queue *queue, void *item, int64_t until_ns)
{
    int64_t weight = weigh(queue, item);
    bool in_time = true;
    monitor_lock(&queue->lock);
    while (is_full_locked(queue, weight) && !queue->closed && in_time)
        in_time = monitor_wait_until(&queue->lock, until_ns);
    enum status status = queue->closed ? STATUS_EOF : STATUS_OK;
    if (!status && !is_full_locked(queue, weight))
        take_locked(queue, item, weight);
    monitor_unlock(&queue->lock);
    return status;
}

enum status queue_push(struct queue *queue, void *item)
{
    return queue_push_until(queue, item, INT64_MAX);
}

enum status queue_offer(struct queue *queue, void *item, bool *taken)
{
    int64_t weight = weigh(queue, item);
    monitor_lock(&queue->lock);
    enum status status = queue->closed ? STATUS_EOF : STATUS_OK;
    *taken = !status && !is_full_locked(queue, weight);
    if (*taken)
        take_locked(queue, item, weight);
    monitor_unlock(&queue->lock);
    return status;
}

enum status queue_pop_until(struct queue *queue, void *item, int64_t until_ns)
{
    void *none = NULL;
    bool in_time = true;
    monitor_lock(&queue->lock);
    while (!queue->count && queue->writers > 0 && !queue->closed && in_time)
        in_time = monitor_wait_until(&queue->lock, until_ns);
    enum status status = queue->count || !in_time ? STATUS_OK : STATUS_EOF;
    memcpy(item, queue->count ? &queue->item[queue->first] : &none, sizeof none);
    if (queue->count) {
        queue->bytes -= weight_of(queue, queue->item[queue->first]);
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        monitor_notify(&queue->lock);
    }
    monitor_unlock(&queue->lock);
    return status;
}

enum status queue_pop(struct queue *queue, void *item)
{
    return queue_pop_until(queue, item, INT64_MAX);
}

int queue_count(struct queue *queue)
{
    monitor_lock(&queue->lock);
    int count = queue->count;
    monitor_unlock(&queue->lock);
    return count;
}

void queue_finish(struct queue *queue)
{
    monitor_lock(&queue->lock);
    assert(queue->writers > 0);
    queue->writers--;
    monitor_notify(&queue->lock);
    monitor_unlock(&queue->lock);
}

int queue_cancel(struct queue *queue)
{
    monitor_lock(&queue->lock);
    int dropped = queue->count;
    queue->closed = true;
    drop_all_locked(queue);
    monitor_notify(&queue->lock);
    monitor_unlock(&queue->lock);
    return dropped;
}

void queue_close(struct queue *queue)
{
    monitor_lock(&queue->lock);
    queue->closed = true;
    monitor_notify(&queue->lock);
    monitor_unlock(&queue->lock);
}

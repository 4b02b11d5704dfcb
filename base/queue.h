// A bounded queue of pointers between threads. A full queue makes its writers wait, so memory is
// bounded by construction; threads end each other by closing it, from either end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct queue;

// `writers` threads will write and each will call queue_finish(). `drop` frees an item that the
// reader will never see.
enum status queue_create(int capacity, int writers, void (*drop)(void *item), struct queue **queue);

// Bound the bytes, too, that its items weigh together. One item always fits. Before use.
void queue_limit(struct queue *queue, int64_t bytes, int64_t (*weigh)(const void *item));

// Free the queue and drop what is in it. No thread may be using it. Leaves NULL.
void queue_destroy(struct queue **queue);

// `item` is a pointer to a pointer of the items' type, in push and in pop.
//
// Hand *item to the reader, waiting while the queue is full. On success the queue owns it and *item
// is NULL. On STATUS_EOF the reader has gone and *item still belongs to the caller.
//
// Thread-safety: any writing thread.
enum status queue_push(struct queue *queue, void *item);

// The same, but wait until `until_ns` of CLOCK_MONOTONIC only: *item is the caller's still if there
// was no room by then.
enum status queue_push_until(struct queue *queue, void *item, int64_t until_ns);

// The same without waiting: *taken is false, and *item still the caller's, where there is no room.
enum status queue_offer(struct queue *queue, void *item, bool *taken);

// Wait for the next item. STATUS_EOF once all writers have finished and the queue is empty.
//
// Thread-safety: one reading thread.
enum status queue_pop(struct queue *queue, void *item);

// The same, but wait until `until_ns` of CLOCK_MONOTONIC only: *item is NULL if none has come by
// then.
enum status queue_pop_until(struct queue *queue, void *item, int64_t until_ns);

// The number of items in it. Any thread.
int queue_count(struct queue *queue);

// A writer is done. Once per writer.
void queue_finish(struct queue *queue);

// The reader wants no more: what is queued is dropped, and writers get STATUS_EOF from now on.
// Returns how many items were dropped.
int queue_cancel(struct queue *queue);

// Nobody wants more: writers get STATUS_EOF from now on, the reader what is queued and then
// STATUS_EOF. Any thread.
void queue_close(struct queue *queue);

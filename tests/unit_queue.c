// Queues and the ring: order, waiting, and what a cancelled one frees.
#include "tests/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/meter.h"
#include "base/queue.h"
#include "pipeline/engine/threads/ring.h"

// ---- queue ----

static atomic_int dropped;

static void drop(void *item)
{
    free(item);
    dropped++;
}

static int *make_item(int value)
{
    int *item = malloc(sizeof *item);
    *item = value;
    return item;
}

enum { ITEMS = 2000 };

static void *write_items(void *argument)
{
    struct queue *queue = argument;
    for (int k = 0; k < ITEMS; k++) {
        int *item = make_item(k);
        if (queue_push(queue, &item)) {
            free(item);
            break;
        }
    }
    queue_finish(queue);
    return NULL;
}

static void queues_keep_order_and_everything(void **state)
{
    (void)state;
    struct queue *queue;
    pthread_t writer[2];
    assert_int_equal(queue_create(3, 2, drop, &queue), STATUS_OK);
    for (int k = 0; k < 2; k++)
        pthread_create(&writer[k], NULL, write_items, queue);
    int count = 0, *item;
    int64_t sum = 0;
    while (!queue_pop(queue, &item)) {
        sum += *item;
        count++;
        free(item);
    }
    assert_int_equal(count, 2 * ITEMS);
    assert_int_equal(sum, (int64_t)ITEMS * (ITEMS - 1));
    for (int k = 0; k < 2; k++)
        pthread_join(writer[k], NULL);
    queue_destroy(&queue);
    assert_null(queue);
}

static void a_cancelled_queue_frees_writers_and_items(void **state)
{
    (void)state;
    struct queue *queue;
    pthread_t writer;
    dropped = 0;
    assert_int_equal(queue_create(4, 1, drop, &queue), STATUS_OK);
    pthread_create(&writer, NULL, write_items, queue);
    int *item;
    assert_int_equal(queue_pop(queue, &item), STATUS_OK);
    free(item);
    queue_cancel(queue);
    pthread_join(writer, NULL); // it would wait for ever on a full queue
    assert_int_equal(queue_pop(queue, &item), STATUS_EOF);
    item = make_item(1);
    assert_int_equal(queue_push(queue, &item), STATUS_EOF);
    assert_non_null(item); // still ours
    free(item);
    queue_destroy(&queue);
    assert_in_range(dropped, 0, 4);
}

static void queues_can_be_waited_for_until_a_moment(void **state)
{
    (void)state;
    struct queue *queue;
    int *item = make_item(1), *got = item;
    assert_int_equal(queue_create(2, 1, drop, &queue), STATUS_OK);
    int64_t begin = meter_now_ns();
    assert_int_equal(queue_pop_until(queue, &got, begin + 30000000), STATUS_OK);
    assert_null(got);
    assert_true(meter_now_ns() - begin >= 30000000);
    assert_int_equal(queue_push(queue, &item), STATUS_OK);
    assert_int_equal(queue_pop_until(queue, &got, 0), STATUS_OK); // what is there needs no waiting
    assert_int_equal(*got, 1);
    free(got);
    queue_finish(queue);
    assert_int_equal(queue_pop_until(queue, &got, meter_now_ns() + 1000000000), STATUS_EOF);
    queue_destroy(&queue);
}

// ---- ring ----

static void *fill_ring(void *argument)
{
    struct ring *ring = argument;
    struct slot *slot;
    for (int k = 0; k < 100 && !ring_claim(ring, &slot); k++) {
        slot->out[0]->width = k; // a mark
        ring_publish(ring, slot);
    }
    ring_finish(ring);
    return NULL;
}

static void rings_never_reorder(void **state)
{
    (void)state;
    struct ring *ring;
    struct slot *slot;
    pthread_t submitter;
    assert_int_equal(ring_create(3, 1, &ring), STATUS_OK);
    pthread_create(&submitter, NULL, fill_ring, ring);
    int count = 0;
    while (!ring_take(ring, &slot)) {
        assert_int_equal(slot->out[0]->width, count);
        assert_int_equal(slot->number, count % 3);
        count++;
        ring_release(ring, slot);
    }
    assert_int_equal(count, 100);
    pthread_join(submitter, NULL);
    assert_true(ring_occupancy(ring) >= 0 && ring_occupancy(ring) <= 1);
    ring_destroy(&ring);
}

static void a_cancelled_ring_frees_the_submitter(void **state)
{
    (void)state;
    struct ring *ring;
    struct slot *slot;
    pthread_t submitter;
    assert_int_equal(ring_create(2, 1, &ring), STATUS_OK);
    pthread_create(&submitter, NULL, fill_ring, ring);
    assert_int_equal(ring_take(ring, &slot), STATUS_OK);
    ring_cancel(ring);
    ring_release(ring, slot);
    while (!ring_take(ring, &slot)) // what was published is still to be taken
        ring_release(ring, slot);
    pthread_join(submitter, NULL);
    ring_destroy(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_can_be_waited_for_until_a_moment),
        cmocka_unit_test(queues_keep_order_and_everything),
        cmocka_unit_test(a_cancelled_queue_frees_writers_and_items),
        cmocka_unit_test(rings_never_reorder),
        cmocka_unit_test(a_cancelled_ring_frees_the_submitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The plain steps of the tutorial: what a textbook has, two loops and no cleverness.
//
// Threads take rows of a pass, a few at a time, until none is left. They sleep between two passes,
// so that a picture costs no thread's birth.
#include "plan/tutorial.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "cpu/tutorial_edges.h"

enum { ROWS_A_TURN = 8 };

struct cpu_maker {
    struct step_maker base;
    struct tutorial_task task;
    uint16_t **between;        // a row of the columns' sums, of each thread; [0] is the caller's
    struct edge_planes planes; // of TUTORIAL_EDGES, else none
    pthread_t *thread;         // [0] is not used
    int threads, started;
    atomic_int next_row;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    // ---- guarded by lock ----
    enum tutorial_step step;
    int pass;         // of the step, from 0
    long long passes; // begun so far
    int busy;         // threads that have not finished the newest
    int numbered;     // threads that know which they are
    bool closing;
};

// ---- a row of the result ----

static void separable_row(const struct tutorial_task *task, int y, uint16_t *between)
{
    const struct tutorial_filter *filter = &task->filter;
    const uint32_t *tap = filter->tap + TUTORIAL_RADIUS;
    int above = max_int(-TUTORIAL_RADIUS, -y),
        below = min_int(TUTORIAL_RADIUS, task->height - 1 - y);
    for (int x = 0; x < task->width; x++) {
        uint32_t sum = 1u << filter->column_shift >> 1;
        for (int k = above; k <= below; k++)
            sum += tap[k] * task->source[(y + k) * task->source_stride + x];
        between[x] = (uint16_t)(sum >> filter->column_shift);
    }
    uint8_t *target = task->target + y * task->target_stride;
    for (int x = 0; x < task->width; x++) {
        int left = max_int(-TUTORIAL_RADIUS, -x),
            right = min_int(TUTORIAL_RADIUS, task->width - 1 - x);
        uint32_t sum = 1u << filter->row_shift >> 1;
        for (int k = left; k <= right; k++)
            sum += tap[k] * between[x + k];
        target[x] = (uint8_t)(sum >> filter->row_shift);
    }
}

static void square_row(const struct tutorial_task *task, int y)
{
    uint8_t *target = task->target + y * task->target_stride;
    int above = max_int(-TUTORIAL_RADIUS, -y),
        below = min_int(TUTORIAL_RADIUS, task->height - 1 - y);
    for (int x = 0; x < task->width; x++) {
        int left = max_int(-TUTORIAL_RADIUS, -x),
            right = min_int(TUTORIAL_RADIUS, task->width - 1 - x);
        uint32_t sum = 1u << TUTORIAL_SQUARE_BITS >> 1;
        for (int b = above; b <= below; b++) {
            const uint8_t *source = task->source + (y + b) * task->source_stride + x;
            const uint32_t *weight = task->filter.weight[TUTORIAL_RADIUS + b] + TUTORIAL_RADIUS;
            for (int a = left; a <= right; a++)
                sum += weight[a] * source[a];
        }
        target[x] = (uint8_t)(sum >> TUTORIAL_SQUARE_BITS);
    }
}

// ---- threads ----

static void make_rows(struct cpu_maker *self, enum tutorial_step step, int pass, uint16_t *between)
{
    const struct tutorial_task *task = &self->task;
    int first;
    while ((first = atomic_fetch_add(&self->next_row, ROWS_A_TURN)) < task->height)
        for (int y = first; y < min_int(first + ROWS_A_TURN, task->height); y++) {
            if (step == TUTORIAL_EDGES)
                edge_row(task, &self->planes, pass, y);
            else if (step == TUTORIAL_SQUARE)
                square_row(task, y);
            else
                separable_row(task, y, between);
        }
}

static void *run_thread(void *maker)
{
    struct cpu_maker *self = maker;
    pthread_mutex_lock(&self->lock);
    uint16_t *between = self->between[++self->numbered];
    for (long long made = 0;; made++) {
        while (self->passes == made && !self->closing)
            pthread_cond_wait(&self->begin, &self->lock);
        if (self->closing)
            break;
        enum tutorial_step step = self->step;
        int pass = self->pass;
        pthread_mutex_unlock(&self->lock);
        make_rows(self, step, pass, between);
        pthread_mutex_lock(&self->lock);
        if (--self->busy == 0)
            pthread_cond_signal(&self->end);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void make_pass(struct cpu_maker *self, enum tutorial_step step, int pass)
{
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->next_row, 0);
    self->step = step;
    self->pass = pass;
    self->passes++;
    self->busy = self->started;
    pthread_cond_broadcast(&self->begin);
    pthread_mutex_unlock(&self->lock);
    make_rows(self, step, pass, self->between[0]);
    pthread_mutex_lock(&self->lock);
    while (self->busy > 0)
        pthread_cond_wait(&self->end, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static enum status repeat(struct step_maker *maker, enum tutorial_step step, int times)
{
    int passes = step == TUTORIAL_EDGES ? EDGE_PASSES : 1;
    for (int k = 0; k < times * passes; k++)
        make_pass((struct cpu_maker *)maker, step, k % passes);
    return STATUS_OK;
}

static enum status make(struct step_maker *maker, enum tutorial_step step)
{
    return repeat(maker, step, 1);
}

// ---- construction ----

static void destroy(struct step_maker **maker)
{
    struct cpu_maker *self = (struct cpu_maker *)*maker;
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_broadcast(&self->begin);
    pthread_mutex_unlock(&self->lock);
    for (int k = 1; k <= self->started; k++)
        pthread_join(self->thread[k], NULL);
    for (int k = 0; self->between && k < self->threads; k++)
        free(self->between[k]);
    free(self->between);
    free(self->thread);
    edge_planes_finish(&self->planes);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->begin);
    pthread_cond_destroy(&self->end);
    free(self);
    *maker = NULL;
}

static enum status init_threads(struct cpu_maker *self, const struct log *log)
{
    self->between = calloc((size_t)self->threads, sizeof *self->between);
    self->thread = calloc((size_t)self->threads, sizeof *self->thread);
    if (!self->between || !self->thread)
        return STATUS_MEMORY;
    for (int k = 0; k < self->threads; k++)
        if (!(self->between[k] = calloc((size_t)self->task.width, sizeof **self->between)))
            return STATUS_MEMORY;
    for (int k = 1; k < self->threads; k++, self->started++)
        if (pthread_create(&self->thread[k], NULL, run_thread, self)) {
            log_print(log, LOG_ERROR, "thread %d of the tutorial could not be started", k);
            return STATUS_FAILED;
        }
    return STATUS_OK;
}

enum status step_maker_create_cpu(const struct tutorial_task *task, int threads,
                                  const struct log *log, struct step_maker **maker)
{
    struct cpu_maker *self = calloc(1, sizeof *self);
    *maker = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct step_maker){make, repeat, destroy};
    self->task = *task;
    self->threads = threads;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->begin, NULL);
    pthread_cond_init(&self->end, NULL);
    *maker = &self->base;
    enum status status = task->edges ? edge_planes_init(&self->planes, task) : STATUS_OK;
    if (!status)
        status = init_threads(self, log);
    if (status)
        destroy(maker);
    return status;
}

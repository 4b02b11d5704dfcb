// The CPU backend: worker threads that make passes by bands of rows.
//
// Each executor has its own threads. The thread that waits filters as well: always where there is one
// slot, else as long as frames are small, for to wake another one and to be woken takes longer than to
// filter such a frame. No more filter at once than there are workspaces, one for each of the backend's
// threads. A frame is a sequence of phases (each pass, or those of an operation on the full frame, for
// each field); a phase is done when all its bands are, and the next begins. Whoever filters takes the
// oldest frame with a band left, so that frames finish in the order they came.
#define _GNU_SOURCE
#include "plan/backend.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/fft.h"
#include "cpu/full_frame.h"
#include "cpu/host.h"
#include "cpu/row_pipeline.h"
#include "cpu/rows/rows.h"

// Bytes of rows that passes go over together: they and the result's stay in a core's cache.
enum { TOGETHER = 128 << 10 };

// Products of a convolution that cost as much as its transforms by FFTW: on gray 1080p 470 with
// AVX-512, by time, and 300 with AVX2, by instructions.
enum { TRANSFORM = 400 };

// Processor time of frames that the waiting thread does alone: to wake another one takes 10 to 50 us.
enum { SHARED_FROM_NS = 50000 };

struct cpu_backend {
    struct backend base;
    const struct log *log;
    const struct row_kernels *rows;
    int threads;
};

// A slot belongs to the submitting thread until submit_async(), then to the workers while it is
// `running`, then to the waiting thread.
struct cpu_slot {
    struct work work;
    struct image target[MAX_PICTURES]; // all pictures of the work
    uint8_t **buffer;                  // the plan's, of this slot
    void **analysis; // the program's, where an operation reads it; NULL: the frame's alone
    struct full_frame **full_frame; // each pass's; NULL: none
    long long ticket;               // the order of submission
    // ---- guarded by lock ----
    bool running;
    bool offered;   // others were woken for it, or are to be when there is a workspace
    int phase;      // the one whose bands are being made
    int next_band;  // of it
    int bands_left; // of it, not yet finished
    struct work_span span;
};

// A phase of a frame: a pass, and which of its own if that is of an operation on the full frame; or
// some passes, one after another, over a few rows at a time.
struct phase {
    int pass, step;
    int passes;
};

// A workspace is what one thread at a time filters in.
struct workspace {
    struct row_pipeline **pipeline; // one per pass
    bool taken;                     // guarded by lock
};

struct worker {
    struct cpu_executor *executor;
    pthread_t thread;
    bool started;
};

struct cpu_executor {
    struct executor base;
    const struct plan *plan;
    const struct cpu_backend *backend;
    int slots, bands, workspaces;
    int workers; // threads that do nothing else
    struct cpu_slot *slot;
    struct workspace *workspace;
    struct worker *worker;
    ptrdiff_t *buffer_stride;
    struct phase *phase; // of a frame, or of one of its fields
    int phases;
    pthread_mutex_t lock;
    pthread_cond_t work_there, frame_done;
    // ---- guarded by lock ----
    long long tickets;
    long long busy_ns; // the last frame's, as its span has it; 0: there was none
    bool closing;
};

// ---- frames ----

static int phases(const struct cpu_executor *self, const struct cpu_slot *slot)
{
    return self->phases * (slot->work.fields ? 2 : 1);
}

// Where an operand of an operation on the full frame begins, and how far apart its rows are.
static uint8_t *operand_rows(const struct cpu_executor *self, const struct row_memory *memory,
                             struct operand operand, ptrdiff_t *stride)
{
    if (operand.place == PLACE_BUFFER) {
        *stride = self->buffer_stride[operand.index];
        return memory->buffer[operand.index];
    }
    const struct image *image = operand.place == PLACE_INPUT
                                    ? memory->source
                                    : &memory->target[operand.index / FORMAT_COMPONENTS];
    const struct component *at = &image->format->component[operand.index % FORMAT_COMPONENTS];
    *stride = image->stride[at->plane];
    return image->data[at->plane] ? image->data[at->plane] + at->offset : NULL;
}

static void *analysis_of(const struct cpu_slot *slot, int analysis)
{
    void *wanted = analysis >= 0 && slot->work.analysis ? slot->work.analysis[analysis] : NULL;
    return wanted || analysis < 0 ? wanted : slot->analysis[analysis];
}

static void run_full_frame(const struct cpu_executor *self, const struct cpu_slot *slot,
                           const struct row_memory *memory, struct phase phase, int band)
{
    const struct plan_pass *pass = &self->plan->pass[phase.pass];
    struct full_frame_work work = {
        .op = pass->full_frame,
        .width = subsampled(memory->source->width, pass->grid.shift_x),
        .height = subsampled(memory->source->height, pass->grid.shift_y),
        .depth = pass->load_depth,
        .analysis = analysis_of(slot, pass->analysis),
        .reads = analysis_of(slot, pass->reads),
        .rows = self->backend->rows,
    };
    work.from = operand_rows(self, memory, pass->source[0], &work.from_stride);
    if (pass->targets)
        work.to = operand_rows(self, memory, pass->target[0], &work.to_stride);
    struct full_frame *full_frame = slot->full_frame[phase.pass];
    full_frame->run(full_frame, &work, phase.step, band, self->bands);
}

static void run_band(const struct cpu_executor *self, const struct workspace *workspace,
                     const struct cpu_slot *slot, int number, int band)
{
    struct image source = slot->work.source, field[MAX_PICTURES];
    struct phase phase = self->phase[number % self->phases];
    struct row_memory memory = {&source, slot->target, slot->buffer, self->buffer_stride};
    if (slot->work.fields) {
        int parity = number / self->phases;
        source = image_field(&source, parity);
        for (int n = 0; n < program_pictures(self->plan->program); n++)
            field[n] = image_field(&slot->target[n], parity);
        memory.target = field;
    }
    const struct plan_pass *pass = &self->plan->pass[phase.pass];
    if (pass->full_frame) {
        run_full_frame(self, slot, &memory, phase, band);
        return;
    }
    long long rows = subsampled(source.height, pass->grid.shift_y);
    int first = (int)(rows * band / self->bands), last = (int)(rows * (band + 1) / self->bands);
    int most = last - first;
    if (phase.passes > 1) {
        int plane = source.format->component[pass->source[0].index].plane;
        most = TOGETHER / (int)format_row_bytes(source.format, plane, source.width) + 1;
    }
    for (int y = first; y < last; y += most)
        for (int k = 0; k < phase.passes; k++)
            row_pipeline_run(workspace->pipeline[phase.pass + k], &memory, y,
                             min_int(y + most, last));
}

static bool is_untaken_locked(const struct cpu_executor *self, const struct cpu_slot *slot)
{
    return slot->running && slot->next_band < self->bands;
}

// The oldest frame with a band that nobody has taken.
static struct cpu_slot *find_work_locked(struct cpu_executor *self)
{
    struct cpu_slot *oldest = NULL;
    for (int k = 0; k < self->slots; k++) {
        struct cpu_slot *slot = &self->slot[k];
        if (is_untaken_locked(self, slot) && (!oldest || slot->ticket < oldest->ticket))
            oldest = slot;
    }
    return oldest;
}

// The workspace of this number, or another that nobody has; NULL: all are taken.
static struct workspace *find_workspace_locked(struct cpu_executor *self, int number)
{
    for (int k = 0; k < self->workspaces; k++) {
        struct workspace *workspace = &self->workspace[(number + k) % self->workspaces];
        if (!workspace->taken)
            return workspace;
    }
    return NULL;
}

// ---- who filters ----

static void wake_workers_locked(struct cpu_executor *self)
{
    if (self->bands == 1)
        pthread_cond_signal(&self->work_there);
    else
        pthread_cond_broadcast(&self->work_there);
}

// Frames of an executor take about the same time.
static bool has_small_frames_locked(const struct cpu_executor *self)
{
    return self->busy_ns && self->busy_ns < SHARED_FROM_NS;
}

static int frames_untaken_locked(const struct cpu_executor *self)
{
    int count = 0;
    for (int k = 0; k < self->slots; k++)
        count += is_untaken_locked(self, &self->slot[k]);
    return count;
}

// A frame for workers, unless the thread that waits does all there is in less than they need to be
// woken.
static void offer_locked(struct cpu_executor *self, struct cpu_slot *slot)
{
    slot->offered = !has_small_frames_locked(self) ||
                    self->busy_ns * frames_untaken_locked(self) >= SHARED_FROM_NS;
    if (slot->offered)
        wake_workers_locked(self);
}

// All frames that were kept for the thread that waits, which cannot take them.
static void offer_rest_locked(struct cpu_executor *self)
{
    for (int k = 0; k < self->slots; k++) {
        struct cpu_slot *slot = &self->slot[k];
        if (is_untaken_locked(self, slot) && !slot->offered) {
            slot->offered = true;
            wake_workers_locked(self);
        }
    }
}

static void finish_band_locked(struct cpu_executor *self, struct cpu_slot *slot)
{
    if (--slot->bands_left > 0)
        return;
    if (++slot->phase < phases(self, slot)) {
        slot->next_band = 0;
        slot->bands_left = self->bands;
        if (self->bands > 1) // else whoever has finished this one goes on
            offer_locked(self, slot);
    } else {
        slot->running = false;
        slot->span.end_ns = host_now_ns();
        self->busy_ns = slot->span.busy_ns;
        if (!has_small_frames_locked(self))
            offer_rest_locked(self);
    }
    pthread_cond_broadcast(&self->frame_done);
}

// Make a band that nobody has taken, without the lock meanwhile; false: there is none, or no
// workspace.
static bool work_locked(struct cpu_executor *self, int number)
{
    struct cpu_slot *slot = find_work_locked(self);
    struct workspace *workspace = slot ? find_workspace_locked(self, number) : NULL;
    if (!workspace)
        return false;
    int band = slot->next_band++, phase = slot->phase;
    if (!slot->span.begin_ns)
        slot->span.begin_ns = host_now_ns();
    workspace->taken = true;
    pthread_mutex_unlock(&self->lock);
    // Processor time: the cores are shared with codecs, and waiting for one is not work. To ask for it takes
    // longer than to filter the smallest frames, so those that are untimed have the time that passed; where
    // that was long for another reason, some frames are left to workers.
    long long (*const clock)(void) = slot->work.untimed ? host_now_ns : host_thread_ns;
    long long start = clock();
    run_band(self, workspace, slot, phase, band);
    long long busy = clock() - start;
    pthread_mutex_lock(&self->lock);
    workspace->taken = false;
    slot->span.busy_ns += busy;
    finish_band_locked(self, slot);
    return true;
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct cpu_executor *self = worker->executor;
    int number = (int)(worker - self->worker); // its workspace's, if nobody has that
    pthread_mutex_lock(&self->lock);
    while (!self->closing)
        if (!work_locked(self, number))
            pthread_cond_wait(&self->work_there, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

// The thread that waits works no more. Workers that were woken while it had the last workspace sleep
// again.
static void leave_work_locked(struct cpu_executor *self)
{
    for (int k = 0; k < self->slots; k++)
        if (is_untaken_locked(self, &self->slot[k]) && self->slot[k].offered) {
            wake_workers_locked(self);
            return;
        }
}

// Take the pictures of a frame. The gaps of their rows are written before the workers begin.
static void take_targets(const struct plan *plan, struct cpu_slot *slot)
{
    for (int n = 0; n < program_pictures(plan->program); n++) {
        const struct image *target = &slot->target[n];
        slot->target[n] = *work_target(&slot->work, n);
        for (int p = 0; p < target->format->planes; p++)
            if (plan->picture[n].plane[p].origin == PLANE_COMPUTED)
                image_clear_gap(target, p);
    }
}

static enum status submit_async(struct executor *executor, int number, const struct work *work)
{
    struct cpu_executor *self = (struct cpu_executor *)executor;
    assert(number >= 0 && number < self->slots &&
           (!work->fields || !self->plan->program->analyses));
    struct cpu_slot *slot = &self->slot[number];
    slot->work = *work;
    take_targets(self->plan, slot);
    pthread_mutex_lock(&self->lock);
    assert(!slot->running);
    slot->ticket = self->tickets++;
    slot->phase = slot->next_band = 0;
    slot->bands_left = self->bands;
    slot->span = (struct work_span){0};
    slot->running = phases(self, slot) > 0;
    offer_locked(self, slot);
    pthread_mutex_unlock(&self->lock);
    return STATUS_OK;
}

static enum status wait(struct executor *executor, int number, struct work_times *times)
{
    struct cpu_executor *self = (struct cpu_executor *)executor;
    struct cpu_slot *slot = &self->slot[number];
    assert(!times || !slot->work.untimed);
    pthread_mutex_lock(&self->lock);
    while (slot->running) {
        bool worked = false;
        while (slot->running && (self->slots == 1 || has_small_frames_locked(self)) &&
               work_locked(self, self->workspaces - 1))
            worked = true;
        if (worked)
            leave_work_locked(self);
        if (slot->running) {
            offer_rest_locked(self);
            pthread_cond_wait(&self->frame_done, &self->lock);
        }
    }
    if (times)
        *times = (struct work_times){.compute = slot->span};
    pthread_mutex_unlock(&self->lock);
    enum status status = STATUS_OK;
    for (int p = 0; p < self->plan->passes; p++)
        if (slot->full_frame[p])
            status = status_join(status, slot->full_frame[p]->status);
    return status;
}

// ---- construction ----

static void finish_slot(const struct plan *plan, struct cpu_slot *slot)
{
    for (int b = 0; slot->buffer && b < plan->buffers; b++)
        free(slot->buffer[b]);
    for (int k = 0; slot->analysis && k < plan->program->analyses; k++)
        free(slot->analysis[k]);
    for (int p = 0; slot->full_frame && p < plan->passes; p++)
        full_frame_destroy(&slot->full_frame[p]);
    free(slot->buffer);
    free(slot->analysis);
    free(slot->full_frame);
}

static void destroy(struct executor **executor)
{
    struct cpu_executor *self = (struct cpu_executor *)*executor;
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_broadcast(&self->work_there);
    pthread_mutex_unlock(&self->lock);
    for (int k = 0; self->worker && k < self->workers; k++) {
        struct worker *worker = &self->worker[k];
        if (worker->started)
            pthread_join(worker->thread, NULL);
    }
    for (int k = 0; self->workspace && k < self->workspaces; k++) {
        struct workspace *workspace = &self->workspace[k];
        for (int p = 0; workspace->pipeline && p < self->plan->passes; p++)
            row_pipeline_destroy(&workspace->pipeline[p]);
        free(workspace->pipeline);
    }
    for (int k = 0; self->slot && k < self->slots; k++)
        finish_slot(self->plan, &self->slot[k]);
    free(self->worker);
    free(self->workspace);
    free(self->slot);
    free(self->phase);
    free(self->buffer_stride);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->work_there);
    pthread_cond_destroy(&self->frame_done);
    free(self);
    *executor = NULL;
}

static enum status init_buffers(struct cpu_executor *self, struct cpu_slot *slot, int width,
                                int height)
{
    slot->buffer = calloc((size_t)self->plan->buffers + 1, sizeof *slot->buffer);
    if (!slot->buffer)
        return STATUS_MEMORY;
    for (int b = 0; b < self->plan->buffers; b++) {
        struct program_plane grid = self->plan->buffer[b].grid;
        size_t row = (size_t)subsampled(width, grid.shift_x) * (grid.depth > 8 ? 2 : 1);
        self->buffer_stride[b] = (ptrdiff_t)((row + 63) / 64 * 64);
        void *memory = NULL;
        if (posix_memalign(
                &memory, 64,
                (size_t)self->buffer_stride[b] * (size_t)subsampled(height, grid.shift_y) + 64))
            return STATUS_MEMORY;
        slot->buffer[b] = memory;
        self->base.memory +=
            (size_t)self->buffer_stride[b] * (size_t)subsampled(height, grid.shift_y);
    }
    return STATUS_OK;
}

static enum status init_analysis(struct cpu_executor *self, struct cpu_slot *slot, int analysis,
                                 int width, int height)
{
    size_t bytes = program_analysis_bytes(self->plan->program, analysis, width, height);
    self->base.memory += bytes;
    slot->analysis[analysis] = malloc(bytes);
    return slot->analysis[analysis] ? STATUS_OK : STATUS_MEMORY;
}

// Memory of the operations on the full frame, and the analysis that others of them read.
static enum status init_full_frame(struct cpu_executor *self, struct cpu_slot *slot, int width,
                                   int height)
{
    const struct plan *plan = self->plan;
    slot->full_frame = calloc((size_t)plan->passes + 1, sizeof(struct full_frame *));
    slot->analysis = calloc((size_t)plan->program->analyses + 1, sizeof(void *));
    enum status status = slot->full_frame && slot->analysis ? STATUS_OK : STATUS_MEMORY;
    for (int p = 0; p < plan->passes && !status; p++) {
        const struct plan_pass *pass = &plan->pass[p];
        if (!pass->full_frame)
            continue;
        struct full_frame_request request = {.op = pass->full_frame,
                                             .width = subsampled(width, pass->grid.shift_x),
                                             .height = subsampled(height, pass->grid.shift_y),
                                             .depth = pass->load_depth,
                                             .bands = self->bands,
                                             .rows = self->backend->rows,
                                             .transform_library = plan->limits.transform_library};
        status = full_frame_create(&request, &slot->full_frame[p]);
        if (!status)
            self->base.memory += slot->full_frame[p]->memory;
        if (!status && pass->reads >= 0 && !slot->analysis[pass->reads])
            status = init_analysis(self, slot, pass->reads, width, height);
    }
    return status;
}

// True if both passes take samples one by one from the same rows of pixels: each by itself would
// fetch all of them from memory.
static bool share_rows(const struct plan *plan, const struct plan_pass *a,
                       const struct plan_pass *b)
{
    const struct plan_pass *passes[2] = {a, b};
    const struct component *at[2];
    for (int k = 0; k < 2; k++) {
        const struct plan_pass *pass = passes[k];
        if (pass->mix || pass->full_frame || pass->halo_x || pass->halo_y || pass->sources != 1 ||
            pass->source[0].place != PLACE_INPUT || pass->targets != 1 ||
            pass->target[0].place != PLACE_OUTPUT)
            return false;
        at[k] = &plan->program->input.component[pass->source[0].index];
    }
    return at[0]->plane == at[1]->plane && a->grid.shift_y == b->grid.shift_y &&
           a->target[0].index / FORMAT_COMPONENTS == b->target[0].index / FORMAT_COMPONENTS;
}

// Phases are the same in every slot.
static enum status list_phases(struct cpu_executor *self)
{
    struct full_frame *const *full_frame = self->slot[0].full_frame;
    int count = 0;
    for (int p = 0; p < self->plan->passes; p++)
        count += full_frame[p] ? full_frame[p]->phases : 1;
    self->phase = calloc((size_t)count + 1, sizeof *self->phase);
    if (!self->phase)
        return STATUS_MEMORY;
    for (int p = 0; p < self->plan->passes; p++) {
        struct phase *last = self->phases ? &self->phase[self->phases - 1] : NULL;
        if (last && share_rows(self->plan, &self->plan->pass[last->pass], &self->plan->pass[p]))
            last->passes++;
        else
            for (int step = 0; step < (full_frame[p] ? full_frame[p]->phases : 1); step++)
                self->phase[self->phases++] = (struct phase){p, step, 1};
    }
    return STATUS_OK;
}

// Make row pipelines, and what they work in.
static enum status init_workspace(struct cpu_executor *self, struct workspace *workspace, int width)
{
    workspace->pipeline = calloc((size_t)self->plan->passes + 1, sizeof(struct row_pipeline *));
    if (!workspace->pipeline)
        return STATUS_MEMORY;
    for (int p = 0; p < self->plan->passes; p++) {
        if (self->plan->pass[p].full_frame)
            continue;
        enum status status = row_pipeline_create(self->plan, &self->plan->pass[p], width,
                                                 self->backend->rows, &workspace->pipeline[p]);
        if (status)
            return status;
        self->base.memory += row_pipeline_bytes(workspace->pipeline[p]);
    }
    return STATUS_OK;
}

static enum status start_worker(struct cpu_executor *self, int number)
{
    struct worker *worker = &self->worker[number];
    worker->executor = self;
    if (pthread_create(&worker->thread, NULL, worker_run, worker)) {
        log_print(self->backend->log, LOG_ERROR, "a CPU worker thread could not be started");
        return STATUS_FAILED;
    }
    worker->started = true;
    return STATUS_OK;
}

static enum status init_slot(struct cpu_executor *self, struct cpu_slot *slot, int width,
                             int height)
{
    enum status status = init_buffers(self, slot, width, height);
    return status ? status : init_full_frame(self, slot, width, height);
}

// An executor whose slots hold nothing yet, and whose workers do not run.
static enum status create_empty(const struct cpu_backend *cpu, const struct plan *plan, int slots,
                                bool frames_in_flight, struct executor **executor)
{
    struct cpu_executor *self = calloc(1, sizeof *self);
    *executor = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct executor){submit_async, wait, destroy};
    self->plan = plan;
    self->backend = cpu;
    self->slots = slots;
    self->workspaces = cpu->threads;
    self->workers = cpu->threads - (slots == 1); // the thread that waits is one
    self->bands = frames_in_flight && slots >= cpu->threads ? 1 : cpu->threads;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work_there, NULL);
    pthread_cond_init(&self->frame_done, NULL);
    *executor = &self->base;
    self->slot = calloc((size_t)slots, sizeof *self->slot);
    self->workspace = calloc((size_t)self->workspaces, sizeof *self->workspace);
    self->worker = calloc((size_t)self->workers + 1, sizeof *self->worker);
    self->buffer_stride = calloc((size_t)plan->buffers + 1, sizeof *self->buffer_stride);
    if (self->slot && self->workspace && self->worker && self->buffer_stride)
        return STATUS_OK;
    destroy(executor);
    return STATUS_MEMORY;
}

static enum status executor_create(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor)
{
    assert(width > 0 && height > 0 && slots > 0);
    enum status status =
        create_empty((const struct cpu_backend *)backend, plan, slots, frames_in_flight, executor);
    if (status)
        return status;
    struct cpu_executor *self = (struct cpu_executor *)*executor;
    for (int k = 0; k < slots && !status; k++)
        status = init_slot(self, &self->slot[k], width, height);
    if (!status)
        status = list_phases(self);
    for (int k = 0; k < self->workspaces && !status; k++)
        status = init_workspace(self, &self->workspace[k], width);
    for (int k = 0; k < self->workers && !status; k++)
        status = start_worker(self, k);
    if (status)
        destroy(executor);
    return status;
}

// Bytes of a workspace's row pipelines. None is made: they write to their rows, of which a run that is
// to be refused may have more than there is memory.
static enum status measure_workspace(const struct cpu_executor *self, int width, size_t *bytes)
{
    enum status status = STATUS_OK;
    *bytes = 0;
    for (int p = 0; p < self->plan->passes && !status; p++) {
        size_t of_pass = 0;
        if (!self->plan->pass[p].full_frame)
            status = row_pipeline_measure(self->plan, &self->plan->pass[p], width,
                                          self->backend->rows, &of_pass);
        *bytes += of_pass;
    }
    return status;
}

// All slots take as much as one, and all workspaces. The system hands a slot's memory out only when it
// is written to.
static enum status executor_measure(struct backend *backend, const struct plan *plan, int width,
                                    int height, int slots, bool frames_in_flight,
                                    struct executor_need *need)
{
    struct executor *executor;
    *need = (struct executor_need){0};
    enum status status =
        create_empty((const struct cpu_backend *)backend, plan, slots, frames_in_flight, &executor);
    if (status)
        return status;
    struct cpu_executor *self = (struct cpu_executor *)executor;
    size_t workspace_bytes = 0;
    status = init_slot(self, &self->slot[0], width, height);
    if (!status)
        status = measure_workspace(self, width, &workspace_bytes);
    need->host = executor->memory * (size_t)slots + workspace_bytes * (size_t)self->workspaces;
    destroy(&executor);
    return status;
}

static void backend_free(struct backend **backend)
{
    free(*backend);
    *backend = NULL;
}

static int usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    return CPU_COUNT(&set);
}

enum status backend_cpu_create(int threads, const struct log *log, struct backend **backend)
{
    const char *level = getenv("SLUICE_CPU");
    const struct row_kernels *rows = rows_select(level && *level ? level : NULL);
    *backend = NULL;
    if (!rows) {
        log_print(log, LOG_ERROR,
                  "SLUICE_CPU is '%s'; it can be %s, as far as this processor and this build go",
                  level, rows_names);
        return STATUS_USAGE;
    }
    const struct transform_library *library;
    const char *why, *named = getenv("SLUICE_TRANSFORMS");
    if (!fft_choose(named && *named ? named : NULL, &library, &why)) {
        log_print(log, LOG_ERROR,
                  "SLUICE_TRANSFORMS is '%s'; it can be fftw, libavutil or none, as far as these "
                  "libraries are installed",
                  named);
        return STATUS_USAGE;
    }
    struct cpu_backend *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct backend){.name = "cpu",
                                  .limits = {.stencils = 16,
                                             .radius = 40,
                                             .joins = row_pipeline_joins,
                                             .transform = fft_worth(library, TRANSFORM),
                                             .transform_size = fft_size,
                                             .transform_library = library,
                                             .transform_why = why},
                                  .executor_create = executor_create,
                                  .executor_measure = executor_measure,
                                  .alloc = host_alloc,
                                  .free = host_free,
                                  .destroy = backend_free};
    self->log = log;
    self->rows = rows;
    self->threads = threads > 0 ? threads : usable_cores();
    self->base.parallel = self->threads;
    snprintf(self->base.description, sizeof self->base.description,
             "%d thread%s, row kernels for %s", self->threads, self->threads == 1 ? "" : "s",
             rows->name);
    *backend = &self->base;
    return STATUS_OK;
}

#include "pipeline/report/async_file.h"

#include <libavutil/mem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/monitor.h"
#include "base/queue.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/file/file.h"

// Blocks that wait in the queue, at most. Two more are being filled and emptied.
enum { MAX_WAITING = 6, MAX_SKIPPING = 512, BLOCKS = MAX_SKIPPING + 2 };

enum {
    BLOCK_BYTES = 1 << 20, // of an asynchronous file that waits
    STEP = 1 << 14,        // by which blocks grow
    MAX_TEXT = 1 << 20,    // of a record, beside what its size says
    IO_BUFFER = 1 << 12,
};

// Bytes for one of the files.
struct buffer {
    uint8_t *byte;
    size_t size, room;
};

struct block {
    struct buffer buffer[ASYNC_FILES];
    int64_t made_for; // records of so many bytes
    bool ends;        // the last of its record
    struct async_file *async;
    struct block *next; // of those that are free
};

struct part {
    struct async_file *async;
    const char *name;
    AVIOContext *io; // into the block
    struct file *file;
};

struct async_file {
    const struct log *log;
    bool skips, started;
    struct queue *queue;
    pthread_t thread;

    // ---- the writing thread's ----
    struct block *block; // NULL: nothing is written of this record
    bool refused;        // this record goes nowhere
    bool warned;
    enum status trouble;  // of keeping the record
    int64_t record_bytes; // of a record

    // ---- any thread's ----
    _Atomic int64_t bytes, dropped;
    _Atomic int64_t queued; // bytes of the blocks in the queue
    atomic_bool gone;       // nothing more is written

    struct monitor lock;
    // ---- guarded by lock ----
    struct part part[ASYNC_FILES]; // the files: the file's thread may let them go
    struct block *free;
    size_t rooms;     // of all blocks
    const char *tail; // once it is closed
    bool closed, ended;
    enum status status;

    struct block all[BLOCKS];
};

// ---- blocks ----

static size_t size_of(const struct block *block)
{
    return block->buffer[0].size + block->buffer[1].size;
}

static int64_t room_of(const struct block *block)
{
    return (int64_t)(block->buffer[0].room + block->buffer[1].room);
}

// Count the records of a block that nobody will write any more.
static void drop(void *block_)
{
    struct block *block = block_;
    block->async->dropped += block->ends;
}

static void strip_locked(struct async_file *async, struct block *block)
{
    for (int k = 0; k < ASYNC_FILES; k++) {
        async->rooms -= block->buffer[k].room;
        free(block->buffer[k].byte);
        block->buffer[k] = (struct buffer){0};
    }
}

static void put_back(struct async_file *async, struct block *block)
{
    for (int k = 0; k < ASYNC_FILES; k++)
        block->buffer[k].size = 0;
    monitor_lock(&async->lock);
    block->next = async->free;
    async->free = block;
    monitor_notify(&async->lock);
    monitor_unlock(&async->lock);
}

// A free block: there is one where the queue has room, or will be.
static struct block *claim(struct async_file *async)
{
    monitor_lock(&async->lock);
    while (!async->free)
        monitor_wait(&async->lock);
    struct block *block = async->free;
    async->free = block->next;
    if (block->made_for != async->record_bytes)
        strip_locked(async, block);
    monitor_unlock(&async->lock);
    block->made_for = async->record_bytes;
    block->ends = false;
    return block;
}

// Give a buffer room for more. Where all have too much of it those that are free lose theirs.
static bool widen(struct async_file *async, struct buffer *buffer, size_t more)
{
    size_t room = (buffer->size + more + STEP - 1) / STEP * STEP;
    if (buffer->size + more <= buffer->room)
        return true;
    monitor_lock(&async->lock);
    for (struct block *one = async->free; one; one = one->next)
        if (async->rooms + room > (size_t)budget_records)
            strip_locked(async, one);
    async->rooms += room - buffer->room;
    monitor_unlock(&async->lock);
    uint8_t *byte = realloc(buffer->byte, room);
    if (byte)
        buffer->byte = byte;
    buffer->room = room;
    return byte;
}

// ---- the writing thread ----

static void warn(struct async_file *async)
{
    if (!async->warned)
        log_print(async->log, LOG_WARNING,
                  "%s is written too slowly: records of frames are left out", async->part[0].name);
    async->warned = true;
}

static void hand_over(struct async_file *async, bool ends)
{
    struct block *block = async->block;
    block->ends = ends;
    async->queued += room_of(block);
    if (queue_push(async->queue, &async->block)) { // the thread has ended
        async->refused = true;
        async->block = NULL;
        put_back(async, block);
    }
}

static bool has_room(const struct async_file *async)
{
    return queue_count(async->queue) < MAX_SKIPPING && async->queued < budget_records;
}

static bool begin_block(struct async_file *async)
{
    bool full = async->skips && !has_room(async);
    async->refused = full || async->gone;
    if (!async->refused)
        async->block = claim(async);
    else if (!async->gone)
        warn(async);
    return async->block;
}

// libavformat 61 made the data const.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int keep(void *part_, const uint8_t *data, int size)
#else
static int keep(void *part_, uint8_t *data, int size)
#endif
{
    const struct part *part = part_;
    struct async_file *async = part->async;
    if (async->trouble)
        return size;
    bool full =
        async->block && size_of(async->block) && size_of(async->block) + (size_t)size > BLOCK_BYTES;
    if (full && !async->skips)
        hand_over(async, false);
    if (!async->block && (async->refused || !begin_block(async)))
        return size;
    struct buffer *buffer = &async->block->buffer[part - async->part];
    if (!widen(async, buffer, (size_t)size)) {
        async->trouble = STATUS_MEMORY;
        return size;
    }
    memcpy(buffer->byte + buffer->size, data, (size_t)size);
    buffer->size += (size_t)size;
    return size;
}

AVIOContext *async_file_io(struct async_file *async, int file, int64_t bytes)
{
    async->record_bytes = bytes;
    if (!async->block && !async->refused)
        begin_block(async);
    return async->refused || async->trouble ? NULL : async->part[file].io;
}

enum status async_file_next(struct async_file *async)
{
    for (int k = 0; k < ASYNC_FILES; k++)
        if (async->part[k].io)
            avio_flush(async->part[k].io);
    if (async->block && !async->trouble)
        hand_over(async, true);
    async->dropped += async->refused;
    async->refused = false;
    return async->trouble;
}

void async_file_close(struct async_file *async, const char *tail)
{
    monitor_lock(&async->lock);
    async->tail = tail;
    async->closed = true;
    monitor_notify(&async->lock);
    monitor_unlock(&async->lock);
    queue_finish(async->queue);
}

// ---- the thread ----

static void discard_parts(struct async_file *async, int first, int last, enum status status)
{
    monitor_lock(&async->lock);
    for (int k = first; k <= last; k++)
        file_discard(&async->part[k].file);
    async->status = status_join(async->status, status);
    monitor_unlock(&async->lock);
}

// A part that has failed is logged and discarded, with the part that belongs to it unless that is
// whole already. That a stop did not wait for a reader is no failure. Parts that stay are made
// whole.
static enum status check_part(struct async_file *async, int k)
{
    const struct part *part = &async->part[k];
    int error = part->file ? file_error(part->file) : 0;
    if (!error)
        return STATUS_OK;
    if (error == ECANCELED) {
        discard_parts(async, k, k, STATUS_STOPPED);
        return STATUS_STOPPED;
    }
    log_fail(async->log, STATUS_OUTPUT, "%s could not be written: %s", part->name, strerror(error));
    discard_parts(async, async->skips ? k : 0, async->skips ? k : ASYNC_FILES - 1, STATUS_OUTPUT);
    return STATUS_OUTPUT;
}

static void write_buffer(const struct buffer *buffer, AVIOContext *to)
{
    const size_t most = 1 << 30;
    for (size_t at = 0; at < buffer->size; at += most)
        avio_write(to, buffer->byte + at,
                   (int)(buffer->size - at < most ? buffer->size - at : most));
}

static enum status write_block(struct async_file *async, const struct block *block)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < ASYNC_FILES && !status; k++) {
        if (!block->buffer[k].size)
            continue;
        write_buffer(&block->buffer[k], file_io(async->part[k].file));
        if (async->skips || async->part[1].io) // the second describes the first
            avio_flush(file_io(async->part[k].file));
        file_sync_due(async->part[k].file);
        status = check_part(async, k);
    }
    if (!status)
        async->bytes = file_size(async->part[0].file);
    return status;
}

static void flush(struct async_file *async)
{
    for (int k = 0; k < ASYNC_FILES; k++)
        if (async->part[k].file)
            avio_flush(file_io(async->part[k].file));
}

// The tail is of what was begun.
static void write_end(struct async_file *async)
{
    const struct part *last = &async->part[async->part[1].io ? 1 : 0];
    flush(async);
    if (async->tail && last->file && file_size(last->file) > 0)
        avio_write(file_io(last->file), (const uint8_t *)async->tail, (int)strlen(async->tail));
    flush(async);
    if (async->part[0].file)
        async->bytes = file_size(async->part[0].file);
    for (int k = 0; k < ASYNC_FILES; k++)
        check_part(async, k);
}

static void await_close(struct async_file *async)
{
    monitor_lock(&async->lock);
    while (!async->closed)
        monitor_wait(&async->lock);
    monitor_unlock(&async->lock);
}

static void *run(void *spool_)
{
    struct async_file *async = spool_;
    struct block *block = NULL;
    enum status status = STATUS_OK;
    while (!status && !queue_pop(async->queue, &block)) {
        async->queued -= room_of(block);
        status = write_block(async, block);
        if (status)
            drop(block);
        put_back(async, block);
    }
    async->gone = true;
    queue_cancel(async->queue);
    await_close(async);
    write_end(async);
    monitor_lock(&async->lock);
    async->ended = true;
    monitor_notify(&async->lock);
    monitor_unlock(&async->lock);
    return NULL;
}

// ---- the end ----

static void cancel(struct async_file *async)
{
    monitor_lock(&async->lock);
    for (int k = 0; k < ASYNC_FILES; k++)
        if (async->part[k].file)
            file_cancel(async->part[k].file);
    monitor_unlock(&async->lock);
}

static void join(struct async_file *async)
{
    if (async->started)
        pthread_join(async->thread, NULL);
    async->started = false;
}

enum status async_file_finish(struct async_file *async, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&async->lock);
    while (!async->ended && in_time)
        in_time = monitor_wait_until(&async->lock, until_ns);
    monitor_unlock(&async->lock);
    if (!in_time)
        cancel(async);
    join(async);
    enum status status = async->status;
    if (async->part[1].file && !file_size(async->part[1].file))
        file_discard(&async->part[1].file); // there is nothing to say of the other
    for (int k = 0; k < ASYNC_FILES; k++)
        if (async->part[k].file)
            status = status_join(status, file_commit(&async->part[k].file));
    return status;
}

void async_file_destroy(struct async_file **async)
{
    struct async_file *old = *async;
    if (!old)
        return;
    if (old->started) {
        async_file_close(old, NULL);
        queue_cancel(old->queue);
        cancel(old);
        join(old);
    }
    for (int k = 0; k < ASYNC_FILES; k++) {
        file_discard(&old->part[k].file);
        if (old->part[k].io)
            av_freep(&old->part[k].io->buffer);
        avio_context_free(&old->part[k].io);
    }
    queue_destroy(&old->queue);
    for (int k = 0; k < BLOCKS; k++)
        strip_locked(old, &old->all[k]);
    monitor_finish(&old->lock);
    free(old);
    *async = NULL;
}

// ---- creation ----

static enum status open_part(const struct async_file_request *request, struct part *part)
{
    enum status status =
        file_create(part->name, request->overwrite, request->log, request->stop, &part->file);
    if (!status && request->live)
        status = file_publish(part->file);
    unsigned char *buffer = status ? NULL : av_malloc(IO_BUFFER);
    if (buffer) {
        part->io = avio_alloc_context(buffer, IO_BUFFER, 1, part, NULL, keep, NULL);
        if (!part->io)
            av_free(buffer);
    }
    if (part->io)
        part->io->direct = 1; // planes are large, and go into memory anyway
    return status || part->io ? status : STATUS_MEMORY;
}

static enum status start(const struct async_file_request *request, struct async_file *async)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < ASYNC_FILES && request->name[k] && !status; k++) {
        async->part[k].async = async;
        async->part[k].name = request->name[k];
        status = open_part(request, &async->part[k]);
    }
    if (!status)
        status = queue_create(async->skips ? MAX_SKIPPING : MAX_WAITING, 1, drop, &async->queue);
    if (status)
        return status;
    async->started = !pthread_create(&async->thread, NULL, run, async);
    return async->started ? STATUS_OK
                          : log_fail(async->log, STATUS_FAILED, "a thread could not be started");
}

enum status async_file_create(const struct async_file_request *request, struct async_file **async)
{
    struct async_file *made = *async = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = request->log;
    made->skips = request->live;
    monitor_init(&made->lock);
    int blocks = 2 + (made->skips ? MAX_SKIPPING : MAX_WAITING);
    for (int k = 0; k < blocks; k++) {
        made->all[k].async = made;
        put_back(made, &made->all[k]);
    }
    enum status status = start(request, made);
    if (status)
        async_file_destroy(async);
    return status;
}

// ---- figures ----

int64_t async_file_bytes(const struct async_file *async)
{
    return async->bytes;
}

int64_t async_file_dropped(const struct async_file *async)
{
    return async->dropped;
}

int64_t async_file_memory(bool live, int64_t record_bytes)
{
    return live ? budget_records + 2 * (record_bytes + MAX_TEXT)
                : (MAX_WAITING + 2) * (int64_t)BLOCK_BYTES;
}

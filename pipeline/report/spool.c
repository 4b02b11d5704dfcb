#include "pipeline/report/spool.h"

#include <libavutil/mem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/file.h"
#include "base/monitor.h"
#include "base/queue.h"

// Of sheets that wait in the queue. Two more are being filled and emptied.
enum { MAX_WAITING = 6, MAX_SKIPPING = 512, SHEETS = MAX_SKIPPING + 2 };

enum {
    SHEET_BYTES = 1 << 20, // of a spool that waits
    STEP = 1 << 14,        // by which sheets grow
    MAX_TEXT = 1 << 20,    // of a record, beside what its size says
    IO_BUFFER = 1 << 12,
};

// Bytes for one of the files.
struct page {
    uint8_t *byte;
    size_t size, room;
};

struct sheet {
    struct page page[SPOOL_FILES];
    int64_t made_for; // records of so many bytes
    bool ends;        // the last of its record
    struct spool *spool;
    struct sheet *next; // of those that are free
};

struct part {
    struct spool *spool;
    const char *name;
    AVIOContext *io; // into the sheet
    struct file *file;
};

struct spool {
    const struct log *log;
    bool skips, started;
    struct queue *queue;
    pthread_t thread;

    // ---- the writing thread's ----
    struct sheet *sheet; // NULL: nothing is written of this record
    bool refused;        // this record goes nowhere
    bool warned;
    enum status trouble; // of keeping the record
    int64_t bytes_told;  // of a record

    // ---- any thread's ----
    _Atomic int64_t bytes, dropped;
    _Atomic int64_t queued; // bytes of the sheets in the queue
    atomic_bool gone;       // nothing more is written

    struct monitor lock;
    // ---- guarded by lock ----
    struct part part[SPOOL_FILES]; // the files: the spool's thread may let them go
    struct sheet *free;
    size_t rooms;     // of all sheets
    const char *tail; // once it is closed
    bool closed, ended;
    enum status status;

    struct sheet all[SHEETS];
};

// ---- sheets ----

static size_t size_of(const struct sheet *sheet)
{
    return sheet->page[0].size + sheet->page[1].size;
}

static int64_t room_of(const struct sheet *sheet)
{
    return (int64_t)(sheet->page[0].room + sheet->page[1].room);
}

// What nobody will write any more.
static void drop(void *sheet_)
{
    struct sheet *sheet = sheet_;
    sheet->spool->dropped += sheet->ends;
}

static void strip_locked(struct spool *spool, struct sheet *sheet)
{
    for (int k = 0; k < SPOOL_FILES; k++) {
        spool->rooms -= sheet->page[k].room;
        free(sheet->page[k].byte);
        sheet->page[k] = (struct page){0};
    }
}

static void put_back(struct spool *spool, struct sheet *sheet)
{
    for (int k = 0; k < SPOOL_FILES; k++)
        sheet->page[k].size = 0;
    monitor_lock(&spool->lock);
    sheet->next = spool->free;
    spool->free = sheet;
    monitor_tell(&spool->lock);
    monitor_unlock(&spool->lock);
}

// A free sheet: there is one where the queue has room, or will be.
static struct sheet *claim(struct spool *spool)
{
    monitor_lock(&spool->lock);
    while (!spool->free)
        monitor_wait(&spool->lock);
    struct sheet *sheet = spool->free;
    spool->free = sheet->next;
    if (sheet->made_for != spool->bytes_told)
        strip_locked(spool, sheet);
    monitor_unlock(&spool->lock);
    sheet->made_for = spool->bytes_told;
    sheet->ends = false;
    return sheet;
}

// Give a page room for more. Where all have too much of it those that are free lose theirs.
static bool widen(struct spool *spool, struct page *page, size_t more)
{
    size_t room = (page->size + more + STEP - 1) / STEP * STEP;
    if (page->size + more <= page->room)
        return true;
    monitor_lock(&spool->lock);
    for (struct sheet *one = spool->free; one; one = one->next)
        if (spool->rooms + room > (size_t)budget_records)
            strip_locked(spool, one);
    spool->rooms += room - page->room;
    monitor_unlock(&spool->lock);
    uint8_t *byte = realloc(page->byte, room);
    if (byte)
        page->byte = byte;
    page->room = room;
    return byte;
}

// ---- the writing analysis ----

static void warn(struct spool *spool)
{
    if (!spool->warned)
        log_print(spool->log, LOG_WARNING,
                  "%s takes less than there is to tell: records of frames are left out",
                  spool->part[0].name);
    spool->warned = true;
}

static void hand_over(struct spool *spool, bool ends)
{
    struct sheet *sheet = spool->sheet;
    sheet->ends = ends;
    spool->queued += room_of(sheet);
    if (queue_push(spool->queue, &spool->sheet)) { // the thread has ended
        spool->refused = true;
        spool->sheet = NULL;
        put_back(spool, sheet);
    }
}

static bool has_room(const struct spool *spool)
{
    return queue_count(spool->queue) < MAX_SKIPPING && spool->queued < budget_records;
}

static bool begin_sheet(struct spool *spool)
{
    bool full = spool->skips && !has_room(spool);
    spool->refused = full || spool->gone;
    if (!spool->refused)
        spool->sheet = claim(spool);
    else if (!spool->gone)
        warn(spool);
    return spool->sheet;
}

// libavformat 61 made the data const.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int keep(void *part_, const uint8_t *data, int size)
#else
static int keep(void *part_, uint8_t *data, int size)
#endif
{
    const struct part *part = part_;
    struct spool *spool = part->spool;
    if (spool->trouble)
        return size;
    bool full =
        spool->sheet && size_of(spool->sheet) && size_of(spool->sheet) + (size_t)size > SHEET_BYTES;
    if (full && !spool->skips)
        hand_over(spool, false);
    if (!spool->sheet && (spool->refused || !begin_sheet(spool)))
        return size;
    struct page *page = &spool->sheet->page[part - spool->part];
    if (!widen(spool, page, (size_t)size)) {
        spool->trouble = STATUS_MEMORY;
        return size;
    }
    memcpy(page->byte + page->size, data, (size_t)size);
    page->size += (size_t)size;
    return size;
}

AVIOContext *spool_io(struct spool *spool, int file, int64_t bytes)
{
    spool->bytes_told = bytes;
    if (!spool->sheet && !spool->refused)
        begin_sheet(spool);
    return spool->refused || spool->trouble ? NULL : spool->part[file].io;
}

enum status spool_next(struct spool *spool)
{
    for (int k = 0; k < SPOOL_FILES; k++)
        if (spool->part[k].io)
            avio_flush(spool->part[k].io);
    if (spool->sheet && !spool->trouble)
        hand_over(spool, true);
    spool->dropped += spool->refused;
    spool->refused = false;
    return spool->trouble;
}

void spool_close(struct spool *spool, const char *tail)
{
    monitor_lock(&spool->lock);
    spool->tail = tail;
    spool->closed = true;
    monitor_tell(&spool->lock);
    monitor_unlock(&spool->lock);
    queue_finish(spool->queue);
}

// ---- the thread ----

static void discard_parts(struct spool *spool, int first, int last, enum status status)
{
    monitor_lock(&spool->lock);
    for (int k = first; k <= last; k++)
        file_discard(&spool->part[k].file);
    spool->status = status_join(spool->status, status);
    monitor_unlock(&spool->lock);
}

// What has failed is told and let go, with what belongs to it unless that stands already. That a
// stop did not wait for a reader is no failure. What stays is made whole.
static enum status check_part(struct spool *spool, int k)
{
    const struct part *part = &spool->part[k];
    int error = part->file ? file_error(part->file) : 0;
    if (!error)
        return STATUS_OK;
    if (error == ECANCELED) {
        discard_parts(spool, k, k, STATUS_STOPPED);
        return STATUS_STOPPED;
    }
    fail(spool->log, STATUS_OUTPUT, "%s could not be written: %s", part->name, strerror(error));
    discard_parts(spool, spool->skips ? k : 0, spool->skips ? k : SPOOL_FILES - 1, STATUS_OUTPUT);
    return STATUS_OUTPUT;
}

static void write_page(const struct page *page, AVIOContext *to)
{
    const size_t most = 1 << 30;
    for (size_t at = 0; at < page->size; at += most)
        avio_write(to, page->byte + at, (int)(page->size - at < most ? page->size - at : most));
}

static enum status write_sheet(struct spool *spool, const struct sheet *sheet)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < SPOOL_FILES && !status; k++) {
        if (!sheet->page[k].size)
            continue;
        write_page(&sheet->page[k], file_io(spool->part[k].file));
        if (spool->skips || spool->part[1].io) // the second tells of what is in the first
            avio_flush(file_io(spool->part[k].file));
        status = check_part(spool, k);
    }
    if (!status)
        spool->bytes = file_size(spool->part[0].file);
    return status;
}

static void flush(struct spool *spool)
{
    for (int k = 0; k < SPOOL_FILES; k++)
        if (spool->part[k].file)
            avio_flush(file_io(spool->part[k].file));
}

// The tail is of what was begun.
static void write_end(struct spool *spool)
{
    const struct part *last = &spool->part[spool->part[1].io ? 1 : 0];
    flush(spool);
    if (spool->tail && last->file && file_size(last->file) > 0)
        avio_write(file_io(last->file), (const uint8_t *)spool->tail, (int)strlen(spool->tail));
    flush(spool);
    if (spool->part[0].file)
        spool->bytes = file_size(spool->part[0].file);
    for (int k = 0; k < SPOOL_FILES; k++)
        check_part(spool, k);
}

static void await_close(struct spool *spool)
{
    monitor_lock(&spool->lock);
    while (!spool->closed)
        monitor_wait(&spool->lock);
    monitor_unlock(&spool->lock);
}

static void *run(void *spool_)
{
    struct spool *spool = spool_;
    struct sheet *sheet = NULL;
    enum status status = STATUS_OK;
    while (!status && !queue_pop(spool->queue, &sheet)) {
        spool->queued -= room_of(sheet);
        status = write_sheet(spool, sheet);
        if (status)
            drop(sheet);
        put_back(spool, sheet);
    }
    spool->gone = true;
    queue_cancel(spool->queue);
    await_close(spool);
    write_end(spool);
    monitor_lock(&spool->lock);
    spool->ended = true;
    monitor_tell(&spool->lock);
    monitor_unlock(&spool->lock);
    return NULL;
}

// ---- the end ----

static void cancel(struct spool *spool)
{
    monitor_lock(&spool->lock);
    for (int k = 0; k < SPOOL_FILES; k++)
        if (spool->part[k].file)
            file_cancel(spool->part[k].file);
    monitor_unlock(&spool->lock);
}

static void join(struct spool *spool)
{
    if (spool->started)
        pthread_join(spool->thread, NULL);
    spool->started = false;
}

enum status spool_finish(struct spool *spool, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&spool->lock);
    while (!spool->ended && in_time)
        in_time = monitor_wait_until(&spool->lock, until_ns);
    monitor_unlock(&spool->lock);
    if (!in_time)
        cancel(spool);
    join(spool);
    enum status status = spool->status;
    if (spool->part[1].file && !file_size(spool->part[1].file))
        file_discard(&spool->part[1].file); // there is nothing to say of the other
    for (int k = 0; k < SPOOL_FILES; k++)
        if (spool->part[k].file)
            status = status_join(status, file_commit(&spool->part[k].file));
    return status;
}

void spool_destroy(struct spool **spool)
{
    struct spool *old = *spool;
    if (!old)
        return;
    if (old->started) {
        spool_close(old, NULL);
        queue_cancel(old->queue);
        cancel(old);
        join(old);
    }
    for (int k = 0; k < SPOOL_FILES; k++) {
        file_discard(&old->part[k].file);
        if (old->part[k].io)
            av_freep(&old->part[k].io->buffer);
        avio_context_free(&old->part[k].io);
    }
    queue_destroy(&old->queue);
    for (int k = 0; k < SHEETS; k++)
        strip_locked(old, &old->all[k]);
    monitor_finish(&old->lock);
    free(old);
    *spool = NULL;
}

// ---- creation ----

static enum status open_part(const struct spool_request *request, struct part *part)
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

static enum status start(const struct spool_request *request, struct spool *spool)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < SPOOL_FILES && request->name[k] && !status; k++) {
        spool->part[k].spool = spool;
        spool->part[k].name = request->name[k];
        status = open_part(request, &spool->part[k]);
    }
    if (!status)
        status = queue_create(spool->skips ? MAX_SKIPPING : MAX_WAITING, 1, drop, &spool->queue);
    if (status)
        return status;
    spool->started = !pthread_create(&spool->thread, NULL, run, spool);
    return spool->started ? STATUS_OK
                          : fail(spool->log, STATUS_FAILED, "a thread could not be started");
}

enum status spool_create(const struct spool_request *request, struct spool **spool)
{
    struct spool *made = *spool = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = request->log;
    made->skips = request->live;
    monitor_init(&made->lock);
    int sheets = 2 + (made->skips ? MAX_SKIPPING : MAX_WAITING);
    for (int k = 0; k < sheets; k++) {
        made->all[k].spool = made;
        put_back(made, &made->all[k]);
    }
    enum status status = start(request, made);
    if (status)
        spool_destroy(spool);
    return status;
}

// ---- figures ----

int64_t spool_bytes(const struct spool *spool)
{
    return spool->bytes;
}

int64_t spool_dropped(const struct spool *spool)
{
    return spool->dropped;
}

int64_t spool_memory(bool live, int64_t record_bytes)
{
    return live ? budget_records + 2 * (record_bytes + MAX_TEXT)
                : (MAX_WAITING + 2) * (int64_t)SHEET_BYTES;
}

// The ring of a stream's chunks, and those who watch.
#include "page/preview/stream.h"

#include <assert.h>
#include <libavutil/intreadwrite.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/output/http/http.h"

struct stream {
    struct view view;
    struct monitor *lock;
    // ---- guarded by lock ----
    int refs, viewers;
    bool ended, wants_key;
    struct chunk *head;
    // Chunks `oldest` to `next` - 1 are there, number n at n % STREAM_CHUNKS.
    struct chunk *ring[STREAM_CHUNKS];
    int64_t oldest, next, newest_key; // newest_key below `oldest`: there is none
    size_t bytes;
};

struct viewer {
    struct http_stream base;
    struct stream *stream;
    // ---- guarded by stream->lock ----
    struct chunk *chunk; // being sent; NULL: none
    size_t sent;         // its bytes that went out
    int64_t time;        // the chunk's, in the viewer's own timeline
    int64_t next;        // chunk to come
    bool began;          // false: with a key frame, `next` or a later one
    bool has_head;
};

// ---- chunks ----

struct chunk *chunk_create(size_t size)
{
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (chunk)
        *chunk = (struct chunk){.refs = 1, .size = size};
    return chunk;
}

static struct chunk *chunk_ref_locked(struct chunk *chunk)
{
    chunk->refs++;
    return chunk;
}

void chunk_unref_locked(struct chunk **chunk)
{
    if (*chunk && --(*chunk)->refs == 0)
        free(*chunk);
    *chunk = NULL;
}

// ---- the ring ----

static void drop_oldest(struct stream *stream)
{
    struct chunk **chunk = &stream->ring[stream->oldest++ % STREAM_CHUNKS];
    stream->bytes -= (*chunk)->size;
    chunk_unref_locked(chunk);
}

static void drop_all(struct stream *stream)
{
    while (stream->oldest < stream->next)
        drop_oldest(stream);
}

void stream_head_locked(struct stream *stream, struct chunk **head)
{
    assert(!stream->head && stream->next == 0 && *head);
    stream->head = *head;
    *head = NULL;
}

void stream_push_locked(struct stream *stream, struct chunk **chunk)
{
    assert(stream->head && !stream->ended);
    if (stream->next - stream->oldest == STREAM_CHUNKS)
        drop_oldest(stream);
    stream->bytes += (*chunk)->size;
    if ((*chunk)->key) {
        stream->newest_key = stream->next;
        stream->wants_key = false;
    }
    stream->ring[stream->next++ % STREAM_CHUNKS] = *chunk;
    *chunk = NULL;
    while (stream->bytes > STREAM_BYTES && stream->oldest < stream->next - 1)
        drop_oldest(stream);
}

void stream_end_locked(struct stream *stream)
{
    stream->ended = true;
    drop_all(stream);
}

// ---- viewers ----

// The time from chunk `from` up to chunk `to`.
static int64_t span(const struct stream *stream, int64_t from, int64_t to)
{
    int64_t ticks = 0;
    for (int64_t k = from; k < to; k++)
        ticks += stream->ring[k % STREAM_CHUNKS]->duration;
    return ticks;
}

// The chunk that a viewer gets next; below 0: none yet.
static int64_t choose(const struct stream *stream, const struct viewer *viewer)
{
    bool has_key = stream->newest_key >= stream->oldest;
    if (!viewer->began || viewer->next < stream->oldest)
        return has_key && stream->newest_key >= viewer->next ? stream->newest_key : -1;
    if (has_key && viewer->next < stream->newest_key &&
        span(stream, viewer->next, stream->newest_key) > STREAM_BEHIND)
        return stream->newest_key;
    return viewer->next < stream->next ? viewer->next : -1;
}

static bool take_next(struct viewer *viewer)
{
    struct stream *stream = viewer->stream;
    if (!stream->head)
        return false;
    if (viewer->has_head) {
        int64_t number = choose(stream, viewer);
        if (number < 0)
            return false;
        viewer->next = number + 1;
        viewer->began = true;
        viewer->chunk = chunk_ref_locked(stream->ring[number % STREAM_CHUNKS]);
    } else {
        viewer->chunk = chunk_ref_locked(stream->head);
        viewer->has_head = true;
    }
    viewer->sent = 0;
    return true;
}

// Copy a piece of the chunk, with the viewer's own time in it.
static size_t copy_piece(const struct viewer *viewer, uint8_t *to, size_t size)
{
    const struct chunk *chunk = viewer->chunk;
    size_t begin = viewer->sent, left = chunk->size - begin, count = left < size ? left : size;
    uint8_t time[8];
    memcpy(to, chunk->data + begin, count);
    AV_WB64(time, viewer->time);
    for (size_t k = 0; chunk->time_at && k < sizeof time; k++) {
        size_t at = chunk->time_at + k;
        if (at >= begin && at < begin + count)
            to[at - begin] = time[k];
    }
    return count;
}

static size_t fill(struct viewer *viewer, uint8_t *to, size_t size)
{
    size_t done = 0;
    while (done < size && (viewer->chunk || take_next(viewer))) {
        size_t count = copy_piece(viewer, to + done, size - done);
        done += count;
        viewer->sent += count;
        if (viewer->sent < viewer->chunk->size)
            continue;
        viewer->time += viewer->chunk->duration;
        chunk_unref_locked(&viewer->chunk);
    }
    return done;
}

static ssize_t viewer_read(struct http_stream *stream, char *to, size_t size)
{
    struct viewer *viewer = (struct viewer *)stream;
    monitor_lock(viewer->stream->lock);
    size_t done = fill(viewer, (uint8_t *)to, size);
    bool over = !done && viewer->stream->ended;
    monitor_unlock(viewer->stream->lock);
    return over ? -1 : (ssize_t)done;
}

static void viewer_close(struct http_stream *stream)
{
    struct viewer *viewer = (struct viewer *)stream;
    struct monitor *lock = viewer->stream->lock;
    monitor_lock(lock);
    chunk_unref_locked(&viewer->chunk);
    viewer->stream->viewers--;
    stream_unref_locked(&viewer->stream);
    monitor_notify(lock);
    monitor_unlock(lock);
    free(viewer);
}

struct http_stream *stream_join_locked(struct stream *stream)
{
    struct viewer *viewer = calloc(1, sizeof *viewer);
    if (!viewer)
        return NULL;
    *viewer = (struct viewer){.base = {viewer_read, viewer_close},
                              .stream = stream_ref_locked(stream),
                              .next = stream->next};
    stream->viewers++;
    stream->wants_key = true;
    monitor_notify(stream->lock);
    return &viewer->base;
}

int stream_viewers_locked(const struct stream *stream)
{
    return stream->viewers;
}

bool stream_has_ended_locked(const struct stream *stream)
{
    return stream->ended;
}

bool stream_wants_key_locked(const struct stream *stream)
{
    return stream->wants_key;
}

// ---- construction ----

enum status stream_create(const struct view *view, struct monitor *lock, struct stream **stream)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return STATUS_MEMORY;
    (*stream)->view = *view;
    (*stream)->lock = lock;
    (*stream)->refs = 1;
    (*stream)->newest_key = -1;
    return STATUS_OK;
}

struct stream *stream_ref_locked(struct stream *stream)
{
    stream->refs++;
    return stream;
}

void stream_unref_locked(struct stream **stream)
{
    struct stream *old = *stream;
    *stream = NULL;
    if (!old || --old->refs > 0)
        return;
    assert(!old->viewers);
    drop_all(old);
    chunk_unref_locked(&old->head);
    free(old);
}

const struct view *stream_view(const struct stream *stream)
{
    return &stream->view;
}

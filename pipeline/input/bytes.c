#include "pipeline/input/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <libavutil/error.h>
#include <libavutil/mem.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"

enum { IO_BUFFER = 1 << 16, POLL_MS = 100 };

struct bytes {
    struct bytes_request request;
    AVIOContext *io;
    int fd;
    int64_t size; // at the beginning; -1: of what is no regular file
    bool came;
};

// ---- reading ----

// Whether something has arrived. Regular files always answer at once.
static bool readable_soon(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, POLL_MS) != 0;
}

static int io_read(void *opaque, uint8_t *buffer, int size)
{
    struct bytes *bytes = opaque;
    while (!bytes->request.is_over(bytes->request.opaque)) {
        if (!readable_soon(bytes->fd))
            continue;
        ssize_t got = read(bytes->fd, buffer, (size_t)size);
        bytes->came |= got > 0;
        if (got > 0)
            return (int)got;
        if (got == 0)
            return AVERROR_EOF;
        if (errno != EINTR && errno != EAGAIN)
            return AVERROR(errno);
    }
    return AVERROR_EXIT;
}

static int64_t io_seek(void *opaque, int64_t offset, int whence)
{
    const struct bytes *bytes = opaque;
    if (whence == AVSEEK_SIZE) {
        struct stat about;
        return fstat(bytes->fd, &about) ? AVERROR(errno) : about.st_size;
    }
    off_t at = lseek(bytes->fd, offset, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

// ---- opening ----

static enum status open_file(struct bytes *bytes)
{
    const char *name = bytes->request.name;
    const struct log *log = bytes->request.log;
    struct stat about;
    bytes->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (bytes->fd < 0)
        return fail(log, STATUS_INPUT, "%s cannot be opened: %s", name, strerror(errno));
    if (fstat(bytes->fd, &about))
        return fail(log, STATUS_INPUT, "%s cannot be examined: %s", name, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return fail(log, STATUS_INPUT,
                    "%s is a folder; name a video, or its pictures as in '%s/*.png'", name, name);
    if (S_ISREG(about.st_mode) && about.st_size == 0)
        return fail(log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected", name);
    return STATUS_OK;
}

static bool is_seekable(int fd)
{
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode) && lseek(fd, 0, SEEK_CUR) >= 0;
}

static enum status make_io(struct bytes *bytes)
{
    unsigned char *buffer = av_malloc(IO_BUFFER);
    if (!buffer)
        return STATUS_MEMORY;
    bytes->io = avio_alloc_context(buffer, IO_BUFFER, 0, bytes, io_read, NULL,
                                   is_seekable(bytes->fd) ? io_seek : NULL);
    if (!bytes->io)
        av_free(buffer);
    return bytes->io ? STATUS_OK : STATUS_MEMORY;
}

enum status bytes_open(const struct bytes_request *request, struct bytes **bytes)
{
    *bytes = calloc(1, sizeof **bytes);
    if (!*bytes)
        return STATUS_MEMORY;
    (*bytes)->request = *request;
    (*bytes)->fd = STDIN_FILENO;
    enum status status = request->is_stdin ? STATUS_OK : open_file(*bytes);
    if (!status)
        status = make_io(*bytes);
    if (!status)
        (*bytes)->size = bytes_size(*bytes);
    if (status)
        bytes_close(bytes);
    return status;
}

void bytes_close(struct bytes **bytes)
{
    struct bytes *old = *bytes;
    if (!old)
        return;
    if (old->io)
        av_freep(&old->io->buffer);
    avio_context_free(&old->io);
    if (old->fd >= 0 && !old->request.is_stdin)
        close(old->fd);
    free(old);
    *bytes = NULL;
}

// ---- what they are ----

AVIOContext *bytes_io(const struct bytes *bytes)
{
    return bytes->io;
}

size_t bytes_read_at(const struct bytes *bytes, int64_t at, uint8_t *to, size_t size)
{
    ssize_t got = bytes_size(bytes) < 0 ? 0 : pread(bytes->fd, to, size, at);
    return got < 0 ? 0 : (size_t)got;
}

int64_t bytes_size(const struct bytes *bytes)
{
    struct stat about;
    bool regular = !fstat(bytes->fd, &about) && S_ISREG(about.st_mode);
    return regular ? about.st_size : -1;
}

bool bytes_have_shrunk(const struct bytes *bytes)
{
    return bytes_size(bytes) < bytes->size;
}

bool bytes_came(const struct bytes *bytes)
{
    return bytes->came;
}

#include "pipeline/input/io/input_io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libavutil/error.h>
#include <libavutil/mem.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"

enum { IO_BUFFER = 1 << 16, POLL_MS = 100 };

struct input_io {
    struct input_io_request request;
    AVIOContext *context;
    int fd;
    int64_t size;     // at the beginning; -1: of what is no regular file
    int64_t begin;    // where reading began; -1: where there are no places
    bool has_data;    // something was read
    atomic_int error; // the last failed read's; 0: none failed
};

// ---- reading ----

// True if something has arrived. Regular files always answer at once.
static bool readable_soon(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, POLL_MS) != 0;
}

static int io_read(void *opaque, uint8_t *buffer, int size)
{
    struct input_io *input = opaque;
    while (!input->request.is_over(input->request.opaque)) {
        if (!readable_soon(input->fd))
            continue;
        ssize_t got = read(input->fd, buffer, (size_t)size);
        input->has_data |= got > 0;
        if (got > 0)
            return (int)got;
        if (got == 0)
            return AVERROR_EOF;
        if (errno != EINTR && errno != EAGAIN) {
            input->error = errno;
            return AVERROR(errno);
        }
    }
    return AVERROR_EXIT;
}

static int64_t io_seek(void *opaque, int64_t offset, int whence)
{
    const struct input_io *input = opaque;
    if (whence == AVSEEK_SIZE) {
        struct stat about;
        return fstat(input->fd, &about) ? AVERROR(errno) : about.st_size;
    }
    off_t at = lseek(input->fd, offset, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

// ---- opening ----

static enum status open_file(struct input_io *input)
{
    const char *name = input->request.name;
    const struct log *log = input->request.log;
    struct stat about;
    input->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return log_fail(log, STATUS_INPUT, "%s cannot be opened: %s", name, strerror(errno));
    if (fstat(input->fd, &about))
        return log_fail(log, STATUS_INPUT, "%s cannot be examined: %s", name, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return log_fail(log, STATUS_INPUT,
                        "%s is a folder; name a video, or its pictures as in '%s/*.png'", name,
                        name);
    if (S_ISREG(about.st_mode) && about.st_size == 0)
        return log_fail(log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected", name);
    return STATUS_OK;
}

static bool is_seekable(int fd)
{
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode) && lseek(fd, 0, SEEK_CUR) >= 0;
}

static enum status make_context(struct input_io *input)
{
    unsigned char *buffer = av_malloc(IO_BUFFER);
    if (!buffer)
        return STATUS_MEMORY;
    input->context = avio_alloc_context(buffer, IO_BUFFER, 0, input, io_read, NULL,
                                        is_seekable(input->fd) ? io_seek : NULL);
    if (!input->context)
        av_free(buffer);
    return input->context ? STATUS_OK : STATUS_MEMORY;
}

enum status input_io_open(const struct input_io_request *request, struct input_io **input)
{
    assert((request->name || request->is_stdin) && request->is_over);
    *input = calloc(1, sizeof **input);
    if (!*input)
        return STATUS_MEMORY;
    (*input)->request = *request;
    (*input)->fd = STDIN_FILENO;
    enum status status = request->is_stdin ? STATUS_OK : open_file(*input);
    if (!status)
        (*input)->begin = lseek((*input)->fd, 0, SEEK_CUR);
    if (!status)
        status = make_context(*input);
    if (!status)
        (*input)->size = input_io_size(*input);
    if (status)
        input_io_close(input);
    return status;
}

void input_io_close(struct input_io **input)
{
    struct input_io *old = *input;
    if (!old)
        return;
    if (old->context)
        av_freep(&old->context->buffer);
    avio_context_free(&old->context);
    if (old->fd >= 0 && !old->request.is_stdin)
        close(old->fd);
    free(old);
    *input = NULL;
}

// ---- questions ----

AVIOContext *input_io_context(const struct input_io *input)
{
    return input->context;
}

size_t input_io_read_at(const struct input_io *input, int64_t at, uint8_t *to, size_t size)
{
    size_t got = 0;
    ssize_t more = input_io_size(input) >= 0;
    while (more > 0 && got < size) { // a file system may give less than there is
        more = pread(input->fd, to + got, size - got, at + (int64_t)got);
        if (more < 0 && errno == EINTR)
            more = 1;
        else if (more > 0)
            got += (size_t)more;
    }
    return got;
}

int64_t input_io_size(const struct input_io *input)
{
    struct stat about;
    bool regular = !fstat(input->fd, &about) && S_ISREG(about.st_mode);
    return regular ? about.st_size : -1;
}

int input_io_file(const struct input_io *input)
{
    return input_io_size(input) < 0 || input->begin ? -1 : input->fd;
}

bool input_io_has_shrunk(const struct input_io *input)
{
    return input_io_size(input) < input->size;
}

bool input_io_has_data(const struct input_io *input)
{
    return input->has_data;
}

int input_io_error(const struct input_io *input)
{
    return input->error;
}

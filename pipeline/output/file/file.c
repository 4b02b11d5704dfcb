#define _GNU_SOURCE
#include "pipeline/output/file/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libavutil/error.h>
#include <libavutil/mem.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/file/folder.h"

enum { IO_BUFFER = 1 << 18, POLL_MS = 100, GRACE_MS = 300 };
static const int64_t sync_ns = 500 * INT64_C(1000000);

struct file {
    const struct log *log;
    const struct stop *stop; // NULL: never
    char *name;              // for messages, and to be given at the end
    char *temporary;         // how to open the unfinished file; NULL: written in place
    char *url;               // "file:" and the temporary
    bool nameless;           // no name leads to it yet, and `temporary` is its entry in /proc
    bool overwrite;
    bool published;    // it has its name already
    bool held;         // complete and safe, without its name
    bool dirty;        // written to since it was last synced
    int64_t synced_ns; // when that was, once published
    bool waits;        // a pipe or the like, whose reader may block writes
    bool stubborn;     // ... and RWF_NOWAIT does not work on it
    atomic_bool cancelled;
    int fd;
    AVIOContext *io;
    int64_t end;
    int error; // errno of the first write that failed
};

static bool is_late(const struct file *file)
{
    return file->cancelled || (file->stop && stop_is_late(file->stop));
}

// How long to wait for a reader at a time. After a stop a slow reader gets no more.
static int patience_ms(const struct file *file)
{
    const int64_t grace_ns = GRACE_MS * INT64_C(1000000);
    const struct stop *stop = file->stop;
    bool over = file->cancelled ||
                (stop && stop->asked && meter_now_ns() > stop->at_ns + stop_flush_ns + grace_ns);
    return over ? 0 : POLL_MS;
}

// Write some of the data to a pipe. EAGAIN: it was full for POLL_MS.
static ssize_t write_pipe(struct file *file, const uint8_t *data, size_t size)
{
    struct pollfd poll_fd = {.fd = file->fd, .events = POLLOUT};
    struct iovec all = {(void *)data, size};
    ssize_t written = -1;
    if (!file->stubborn) {
        written = pwritev2(file->fd, &all, 1, -1, RWF_NOWAIT);
        if (written < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
            file->stubborn = true; // this kind of file does not know the flag, or fails anyhow
    }
    if (!file->stubborn && (written >= 0 || errno == EPIPE))
        return written;
    if (poll(&poll_fd, 1, patience_ms(file)) > 0) // so much never blocks then
        return file->stubborn ? write(file->fd, data, size < PIPE_BUF ? size : PIPE_BUF)
                              : (errno = EAGAIN, -1);
    errno = is_late(file) ? ECANCELED : EAGAIN;
    return -1;
}

static int note_error(struct file *file)
{
    int error = errno;
    if (!file->error)
        file->error = error;
    return AVERROR(error);
}

// libavformat 61 made the data const.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int io_write(void *opaque, const uint8_t *data, int size)
#else
static int io_write(void *opaque, uint8_t *data, int size)
#endif
{
    struct file *file = opaque;
    int left = size;
    while (left > 0) {
        ssize_t written = file->waits ? write_pipe(file, data, (size_t)left)
                                      : write(file->fd, data, (size_t)left);
        if (written < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (written < 0)
            return note_error(file);
        data += written;
        left -= (int)written;
    }
    file->dirty = true;
    off_t at = file->temporary ? lseek(file->fd, 0, SEEK_CUR) : -1;
    if (file->temporary && at < 0)
        return note_error(file);
    file->end = at < 0 ? file->end + size : at > file->end ? at : file->end;
    return size;
}

int file_sync_due(struct file *file)
{
    if (!file->published || !file->dirty || meter_now_ns() - file->synced_ns < sync_ns)
        return 0;
    if (fdatasync(file->fd) && errno != EINVAL) {
        if (errno == EINTR) // it is still due
            return 0;
        note_error(file); // reported once: a later call would succeed
        return file->error;
    }
    file->dirty = false;
    file->synced_ns = meter_now_ns();
    return 0;
}

static int64_t io_seek(void *opaque, int64_t offset, int whence)
{
    struct file *file = opaque;
    if (whence == AVSEEK_SIZE)
        return file->end;
    off_t at = lseek(file->fd, offset, whence & ~AVSEEK_FORCE);
    return at < 0 ? note_error(file)
                  : at; // not every muxer looks, and writes on in the wrong place
}

// The descriptor that a name stands for; -1: it names a file. Others may have written to the
// descriptor, so nothing is replaced.
static int descriptor_of(const char *name)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (!strcmp(name, "-") || !strcmp(name, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(name, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        const char *number = name + strlen(folders[k]);
        if (!strncmp(name, folders[k], strlen(folders[k])) && *number >= '0' && *number <= '9' &&
            strspn(number, "0123456789") == strlen(number))
            return atoi(number);
    }
    return -1;
}

// True if a name exists and is no regular file: a pipe, a device.
static bool is_special(const char *name)
{
    struct stat about;
    return !stat(name, &about) && !S_ISREG(about.st_mode);
}

bool file_is_in_place(const char *name)
{
    struct stat about;
    bool there = !stat(name, &about);
    return descriptor_of(name) >= 0 ||
           (there && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

static bool is_fifo(const char *name)
{
    struct stat about;
    return !stat(name, &about) && S_ISFIFO(about.st_mode);
}

// Check that the folder of a file takes another one. `name` is for messages, `place` where it
// really is.
static enum status check_folder(const char *name, const char *place, const struct log *log)
{
    struct stat about;
    char folder[4096];
    folder_of(place, folder, sizeof folder);
    if (stat(folder, &about))
        return log_fail(log, STATUS_OUTPUT, "%s cannot be written: the folder %s: %s", name, folder,
                        strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return log_fail(log, STATUS_OUTPUT, "%s cannot be written: %s is no folder", name, folder);
    if (access(folder, W_OK | X_OK))
        return log_fail(log, STATUS_OUTPUT, "%s cannot be written in %s: %s", name, folder,
                        strerror(errno));
    return STATUS_OK;
}

enum status file_check(const char *name, bool overwrite, const struct log *log)
{
    struct stat about;
    if (descriptor_of(name) >= 0)
        return STATUS_OK;
    bool there = !stat(name, &about);
    if (there && S_ISDIR(about.st_mode))
        return log_fail(log, STATUS_OUTPUT, "%s is a folder; name a file in it", name);
    if (there && S_ISREG(about.st_mode) && !overwrite)
        return log_fail(log, STATUS_OUTPUT, "%s exists; -y replaces it", name);
    if (there && !S_ISREG(about.st_mode))
        return STATUS_OK;
    char *place = url_resolve(name);
    if (!place)
        return log_fail(log, STATUS_OUTPUT, "%s cannot be written: %s", name, strerror(errno));
    enum status status = check_folder(name, place, log);
    free(place);
    return status;
}

// A random name beside `name`, which the caller frees; NULL: no memory.
static char *unique_name(const char *name)
{
    enum { KEPT = 200 }; // of the name, so that the whole stays below NAME_MAX
    char folder[4096], copy[4096], *made;
    uint64_t random;
    snprintf(copy, sizeof copy, "%s", name);
    folder_of(name, folder, sizeof folder);
    const char *base = basename(copy);
    int kept = (int)strnlen(base, KEPT);
    while (kept > 0 && (base[kept] & 0xc0) == 0x80) // no half of a UTF-8 character
        kept--;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid() * 1000003 + (uint64_t)time(NULL);
    if (asprintf(&made, "%s/.%.*s.%010llx", folder, kept, base,
                 (unsigned long long)(random & 0xffffffffff)) < 0)
        return NULL;
    return made;
}

// Open a file without a name in the folder of the output: whatever ends the process, nothing is
// left of it. Some file systems do not have such files, and without /proc they could not be named.
static bool open_nameless(struct file *file, const char *folder)
{
    file->fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return false;
    if (asprintf(&file->temporary, "/proc/self/fd/%d", file->fd) < 0)
        file->temporary = NULL;
    file->nameless = file->temporary && !access(file->temporary, R_OK);
    if (file->nameless)
        return true;
    free(file->temporary);
    file->temporary = NULL;
    close(file->fd);
    file->fd = -1;
    return false;
}

static bool open_named(struct file *file)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        file->temporary = unique_name(file->name);
        if (!file->temporary) {
            errno = ENOMEM;
            return false;
        }
        file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            return true;
        free(file->temporary);
        file->temporary = NULL;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static enum status open_temporary(struct file *file)
{
    char folder[4096];
    struct stat old;
    folder_of(file->name, folder, sizeof folder);
    if (!open_nameless(file, folder) && !open_named(file))
        return log_fail(file->log, STATUS_OUTPUT, "%s cannot be written in %s: %s", file->name,
                        folder, strerror(errno));
    // Keep the permissions of the file that it will replace, if possible.
    if (!stat(file->name, &old) && fchmod(file->fd, old.st_mode & 07777))
        log_print(file->log, LOG_DEBUG, "%s: permissions could not be kept", file->name);
    return STATUS_OK;
}

// True if a reader may block writes.
static bool may_wait(int fd)
{
    struct stat about;
    return !fstat(fd, &about) && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || isatty(fd));
}

// Open a pipe or device. A pipe without a reader is waited for until a stop, as a shell's
// redirection waits.
static int open_special(const struct file *file)
{
    for (;;) {
        int fd = open(file->name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0) {
            fcntl(fd, F_SETFL, O_WRONLY);
            return fd;
        }
        if (errno != ENXIO || !is_fifo(file->name))
            return -1;
        if (file->stop && file->stop->asked) {
            errno = ECANCELED;
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000 / 2}, NULL);
    }
}

// Open a descriptor that is open already: a duplicate, or standard output itself.
static int open_descriptor(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        errno = EBADF;
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return -1;
    return fd == STDOUT_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static enum status open_fd(struct file *file)
{
    int descriptor = descriptor_of(file->name);
    if (descriptor < 0 && !is_special(file->name))
        return open_temporary(file);
    file->fd = descriptor >= 0 ? open_descriptor(descriptor) : open_special(file);
    if (file->fd < 0 && errno == ECANCELED)
        return log_fail(file->log, STATUS_OUTPUT, "%s was not opened by anyone to be read",
                        file->name);
    if (file->fd < 0)
        return log_fail(file->log, STATUS_OUTPUT, "%s cannot be opened for writing: %s", file->name,
                        strerror(errno));
    return STATUS_OK;
}

enum status file_create(const char *name, bool overwrite, const struct log *log,
                        const struct stop *stop, struct file **file)
{
    *file = calloc(1, sizeof **file);
    struct file *made = *file;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->stop = stop;
    made->overwrite = overwrite;
    made->fd = -1;
    // The link's target is replaced, not the link.
    bool follows = descriptor_of(name) < 0 && !is_special(name);
    made->name = follows ? url_resolve(name) : strdup(name);
    enum status status = made->name ? open_fd(made) : STATUS_OUTPUT;
    if (!made->name)
        log_fail(log, status, "%s cannot be written: %s", name, strerror(errno));
    made->waits = !status && may_wait(made->fd);
    unsigned char *buffer = status ? NULL : av_malloc(IO_BUFFER);
    if (buffer) {
        made->io = avio_alloc_context(buffer, IO_BUFFER, 1, made, NULL, io_write,
                                      made->temporary ? io_seek : NULL);
        if (!made->io)
            av_free(buffer);
    }
    if (!status && made->temporary && asprintf(&made->url, "file:%s", made->temporary) < 0)
        made->url = NULL;
    if (!status && (!made->io || (made->temporary && !made->url)))
        status = STATUS_MEMORY;
    if (status)
        file_discard(file);
    return status;
}

void file_hide(struct file *file)
{
    assert(!file->end);
    struct stat old;
    if (file->temporary && stat(file->name, &old) && fchmod(file->fd, 0600))
        log_print(file->log, LOG_DEBUG, "%s: permissions could not be set", file->name);
}

AVIOContext *file_io(const struct file *file)
{
    return file->io;
}

const char *file_temporary(const struct file *file)
{
    return file->url ? file->url : "";
}

int64_t file_size(const struct file *file)
{
    return file->end;
}

int file_error(const struct file *file)
{
    return file->error;
}

void file_cancel(struct file *file)
{
    file->cancelled = true;
}

static void free_all(struct file **file)
{
    if ((*file)->io)
        av_freep(&(*file)->io->buffer);
    avio_context_free(&(*file)->io);
    free((*file)->name);
    free((*file)->temporary);
    free((*file)->url);
    free(*file);
    *file = NULL;
}

void file_discard(struct file **file)
{
    if (!*file)
        return;
    if ((*file)->fd >= 0 && (*file)->fd != STDOUT_FILENO)
        close((*file)->fd);
    if ((*file)->temporary && !(*file)->nameless && !(*file)->published)
        unlink((*file)->temporary);
    free_all(file);
}

// Give a file without a name its first one. linkat() replaces nothing: to replace takes a rename
// from a second name. Returns an errno.
static int link_nameless(const struct file *file, const char *name)
{
    return linkat(AT_FDCWD, file->temporary, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static int name_nameless(const struct file *file)
{
    int error = link_nameless(file, file->name);
    if (error != EEXIST || !file->overwrite)
        return error;
    char *other = unique_name(file->name);
    error = other ? link_nameless(file, other) : ENOMEM;
    if (!error && rename(other, file->name)) {
        error = errno;
        unlink(other);
    }
    free(other);
    return error;
}

// Rename a named temporary, without replacing a file that has appeared meanwhile unless that was
// allowed. Returns an errno.
static int rename_named(const struct file *file)
{
    if (file->overwrite)
        return rename(file->temporary, file->name) ? errno : 0;
    return folder_rename_new(file->temporary, file->name);
}

enum status file_publish(struct file *file)
{
    avio_flush(file->io);
    int error = file->temporary ? file->error : 0;
    if (file->published)
        error = file_sync_due(file);
    if (!file->temporary || (file->published && !error))
        return STATUS_OK;
    // A name before the bytes would be that of an empty file after a power cut.
    if (!error && file->dirty && fsync(file->fd))
        error = errno;
    if (!error)
        error = file->nameless ? name_nameless(file) : rename_named(file);
    if (error)
        return log_fail(file->log, STATUS_OUTPUT, "%s could not be written: %s", file->name,
                        strerror(error));
    file->dirty = false;
    file->published = true;
    return folder_sync_of(file->name, file->log);
}

// True if descriptors run short, and a held file should not keep one.
static bool has_high_number(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd >= limit.rlim_cur / 2;
}

// Give a file without a name a hidden one. Returns an errno.
static int name_hidden(struct file *file)
{
    char *url, *other = unique_name(file->name);
    if (!other || asprintf(&url, "file:%s", other) < 0) {
        free(other);
        return ENOMEM;
    }
    int error = link_nameless(file, other);
    free(error ? url : file->url);
    free(error ? other : file->temporary);
    if (error)
        return error;
    file->url = url;
    file->temporary = other;
    file->nameless = false;
    return 0;
}

// Without a descriptor only a name leads to the file. Returns an errno.
static int hide_behind_name(struct file *file)
{
    int error = file->nameless ? name_hidden(file) : 0;
    if (error)
        return error;
    error = close(file->fd) ? errno : 0;
    file->fd = -1;
    return error;
}

enum status file_hold(struct file *file)
{
    assert(!file->held && !file->published);
    avio_flush(file->io);
    int error = file->error;
    if (!file->temporary)
        return error ? STATUS_OUTPUT : STATUS_OK;
    if (!error && fsync(file->fd))
        error = errno;
    if (!error && has_high_number(file->fd))
        error = hide_behind_name(file);
    if (error)
        return log_fail(file->log, STATUS_OUTPUT, "%s could not be written: %s", file->name,
                        strerror(error));
    av_freep(&file->io->buffer);
    avio_context_free(&file->io);
    file->held = true;
    return STATUS_OK;
}

enum status file_stage(struct file *file)
{
    assert(file->held || !file->temporary);
    int error = file->nameless ? hide_behind_name(file) : 0;
    return error ? log_fail(file->log, STATUS_OUTPUT, "%s could not be written: %s", file->name,
                            strerror(error))
                 : STATUS_OK;
}

const char *file_name(const struct file *file)
{
    return file->name;
}

enum status file_commit(struct file **file)
{
    struct file *whole = *file;
    if (!whole->held)
        avio_flush(whole->io);
    int error = whole->error;
    if (whole->temporary && !whole->held && !error && fsync(whole->fd))
        error = errno;
    if (whole->nameless && !whole->published && !error)
        error = name_nameless(whole);
    if (whole->fd >= 0 && whole->fd != STDOUT_FILENO) {
        if (close(whole->fd) && !error)
            error = errno;
        whole->fd = -1;
    }
    if (whole->temporary && !whole->nameless && !whole->published && !error)
        error = rename_named(whole);
    enum status status = STATUS_OK;
    if (error == ECANCELED)
        status = STATUS_STOPPED;
    else if (error == EPIPE)
        status = STATUS_OUTPUT; // the reader has closed the pipe: nothing is logged
    else if (error)
        status = log_fail(whole->log, STATUS_OUTPUT, "%s could not be written: %s%s", whole->name,
                          strerror(error), error == EEXIST ? "; -y replaces it" : "");
    if (status) {
        file_discard(file);
        return status;
    }
    if (whole->temporary && !whole->held)
        status = folder_sync_of(whole->name, whole->log);
    free_all(file);
    return status;
}

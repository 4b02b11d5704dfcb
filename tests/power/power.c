// Records what a program does to files, and what of it it syncs, by LD_PRELOAD: tests/power.py works out from it
// what a disk may hold after a power cut.
//
//   POWER_LOG=FILE   a line a call: nanoseconds of CLOCK_MONOTONIC, what was done, to which inode, and how
//
//   make INODE                         a file without a name, or a folder
//   name FOLDER INODE NAME             an entry of a folder; a new file is made, then named
//   move FROM TO INODE NAME\0NAME      a renaming, from folder to folder
//   swap FROM TO INODE NAME\0NAME INODE  two entries that change places
//   drop FOLDER NAME                   an entry that is removed
//   data INODE OFFSET                  bytes
//   size INODE BYTES
//   sync INODE                         of a file or a folder; 0: all there is
//   odd NAME                           a call that changes files in ways that are not recorded
//
// A call and its line are one step: calls of several threads are in the order of their lines. Failed calls have none.
// sync_file_range() is no sync: it leaves out what leads to the bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(type, symbol, ...)       \
    static type (*real)(__VA_ARGS__); \
    if (!real)                        \
    *(void **)&real = dlsym(RTLD_NEXT, symbol)

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("POWER_LOG");
    REAL(int, "open", const char *, int, ...);
    int fd = name ? real(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    log_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (name && log_fd < 0)
        _exit(125);
    close(fd);
}

// One line, and the bytes behind it.
static void note(const void *bytes, size_t size, const char *format, ...)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    char text[3 * PATH_MAX], line[3 * PATH_MAX + 64];
    struct timespec now;
    va_list rest;
    int error = errno;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(line, sizeof line, "%lld %zu %s\n",
                          (long long)now.tv_sec * 1000000000 + now.tv_nsec, size, text);
    struct iovec both[] = {{line, (size_t)length}, {(void *)bytes, size}};
    if (real(log_fd, both, 2) != length + (ssize_t)size)
        _exit(125);
    errno = error;
}

// Begin a step; false: nothing is recorded.
static bool step(void)
{
    return log_fd >= 0 && !pthread_mutex_lock(&turn);
}

static void end(bool recorded)
{
    if (recorded)
        pthread_mutex_unlock(&turn);
}

// ---- where a name is ----

struct place {
    unsigned long folder, inode; // 0: there is none
    char name[NAME_MAX + 1];
};

static struct place place_of(int at, const char *path)
{
    char copy[PATH_MAX], folder[PATH_MAX];
    struct place place = {0};
    struct stat about;
    int error = errno;
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(folder, sizeof folder, "%s", dirname(copy));
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(place.name, sizeof place.name, "%s", basename(copy));
    if (!fstatat(at, folder, &about, 0))
        place.folder = about.st_ino;
    if (!fstatat(at, path, &about, AT_SYMLINK_NOFOLLOW))
        place.inode = about.st_ino;
    errno = error;
    return place;
}

// The inode of a regular file or folder that is open; 0: it is something else.
static unsigned long inode_of(int fd)
{
    struct stat about;
    int error = errno;
    bool known = !fstat(fd, &about) && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
    errno = error;
    return known && fd != log_fd ? about.st_ino : 0;
}

// ---- opening ----

static int open_at(const char *symbol, int at, const char *path, int flags, mode_t mode)
{
    int (*real)(int, const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, symbol);
    bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (!nameless && !(flags & (O_CREAT | O_TRUNC)))
        return real(at, path, flags, mode);
    bool recorded = step();
    struct place before = place_of(at, path);
    int fd = real(at, path, flags, mode);
    unsigned long inode = recorded && fd >= 0 ? inode_of(fd) : 0;
    if (inode && (nameless || !before.inode))
        note(NULL, 0, "make %lu file", inode);
    if (inode && !nameless && !before.inode)
        note(before.name, strlen(before.name), "name %lu %lu", before.folder, inode);
    if (inode && before.inode && (flags & O_TRUNC))
        note(NULL, 0, "size %lu 0", inode);
    end(recorded);
    return fd;
}

static mode_t mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPEN(function, as)                               \
    int function(const char *path, int flags, ...)       \
    {                                                    \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode_t mode = mode_of(flags, rest);              \
        va_end(rest);                                    \
        return open_at(as, AT_FDCWD, path, flags, mode); \
    }
#define OPENAT(function)                                   \
    int function(int at, const char *path, int flags, ...) \
    {                                                      \
        va_list rest;                                      \
        va_start(rest, flags);                             \
        mode_t mode = mode_of(flags, rest);                \
        va_end(rest);                                      \
        return open_at(#function, at, path, flags, mode);  \
    }
OPEN(open, "openat")
OPEN(open64, "openat64")
OPENAT(openat)
OPENAT(openat64)

int mkostemp(char *path, int flags)
{
    REAL(int, "mkostemp", char *, int);
    bool recorded = step();
    int fd = real(path, flags);
    struct place made = place_of(AT_FDCWD, path);
    if (recorded && fd >= 0) {
        note(NULL, 0, "make %lu file", made.inode);
        note(made.name, strlen(made.name), "name %lu %lu", made.folder, made.inode);
    }
    end(recorded);
    return fd;
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(FILE *, "fopen", const char *, const char *);
    if (log_fd >= 0 && strpbrk(mode, "wa+"))
        note(NULL, 0, "odd fopen of %s", path);
    return real(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

void *mmap(void *address, size_t size, int access, int flags, int fd, off_t offset)
{
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
    if (log_fd >= 0 && fd >= 0 && (flags & MAP_SHARED) && (access & PROT_WRITE) && inode_of(fd))
        note(NULL, 0, "odd mmap");
    return real(address, size, access, flags, fd, offset);
}

// ---- bytes ----

static void note_data(int fd, unsigned long inode, const void *bytes, ssize_t size, off_t offset)
{
    if (size <= 0)
        return;
    note(bytes, (size_t)size, "data %lu %lld", inode, (long long)offset);
    if (fcntl(fd, F_GETFL) & O_DSYNC) // O_SYNC has it, too
        note(NULL, 0, "sync %lu", inode);
}

// Where the next write() goes.
static off_t position_of(int fd)
{
    struct stat about;
    if (fcntl(fd, F_GETFL) & O_APPEND)
        return fstat(fd, &about) ? 0 : about.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    unsigned long inode = log_fd >= 0 ? inode_of(fd) : 0;
    if (!inode)
        return real(fd, bytes, size);
    bool recorded = step();
    off_t offset = position_of(fd);
    ssize_t written = real(fd, bytes, size);
    note_data(fd, inode, bytes, written, offset);
    end(recorded);
    return written;
}

static ssize_t write_at(const char *symbol, int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, symbol);
    unsigned long inode = log_fd >= 0 ? inode_of(fd) : 0;
    bool recorded = inode && step();
    ssize_t written = real(fd, bytes, size, offset);
    if (inode)
        note_data(fd, inode, bytes, written, offset);
    end(recorded);
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return write_at("pwrite", fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
    return write_at("pwrite64", fd, bytes, size, offset);
}

ssize_t writev(int fd, const struct iovec *vectors, int count)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (log_fd >= 0 && inode_of(fd))
        note(NULL, 0, "odd writev");
    return real(fd, vectors, count);
}

ssize_t pwritev2(int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
    REAL(ssize_t, "pwritev2", int, const struct iovec *, int, off_t, int);
    if (log_fd >= 0 && inode_of(fd))
        note(NULL, 0, "odd pwritev2");
    return real(fd, vectors, count, offset, flags);
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    REAL(ssize_t, "copy_file_range", int, off_t *, int, off_t *, size_t, unsigned);
    if (log_fd >= 0)
        note(NULL, 0, "odd copy_file_range");
    return real(from, from_at, to, to_at, size, flags);
}

static int resize(const char *symbol, int fd, off_t size)
{
    int (*real)(int, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, symbol);
    bool recorded = step();
    int result = real(fd, size);
    if (recorded && !result && inode_of(fd))
        note(NULL, 0, "size %lu %lld", inode_of(fd), (long long)size);
    end(recorded);
    return result;
}

int ftruncate(int fd, off_t size)
{
    return resize("ftruncate", fd, size);
}

int ftruncate64(int fd, off_t size)
{
    return resize("ftruncate64", fd, size);
}

// ---- syncing ----

static int sync_by(const char *symbol, int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, symbol);
    bool recorded = step();
    int result = real(fd);
    if (recorded && !result && inode_of(fd))
        note(NULL, 0, "sync %lu", strcmp(symbol, "syncfs") != 0 ? inode_of(fd) : 0);
    end(recorded);
    return result;
}

int fsync(int fd)
{
    return sync_by("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_by("fdatasync", fd);
}

int syncfs(int fd)
{
    return sync_by("syncfs", fd);
}

// ---- entries ----

static int make_folder(const char *path, mode_t mode)
{
    REAL(int, "mkdir", const char *, mode_t);
    bool recorded = step();
    int result = real(path, mode);
    if (recorded && !result) {
        struct place place = place_of(AT_FDCWD, path);
        note(NULL, 0, "make %lu folder", place.inode);
        note(place.name, strlen(place.name), "name %lu %lu", place.folder, place.inode);
    }
    end(recorded);
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    return make_folder(path, mode);
}

char *mkdtemp(char *path)
{
    static unsigned counter;
    size_t length = strlen(path);
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(path + length - 6, 7, "%06u",
                 (unsigned)(getpid() * 7919 + (int)++counter) % 1000000);
        if (!make_folder(path, 0700))
            return path;
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

static int link_between(int from_at, const char *from, int to_at, const char *to, int flags)
{
    REAL(int, "linkat", int, const char *, int, const char *, int);
    bool recorded = step();
    int result = real(from_at, from, to_at, to, flags);
    if (recorded && !result) {
        struct place place = place_of(to_at, to);
        note(place.name, strlen(place.name), "name %lu %lu", place.folder, place.inode);
    }
    end(recorded);
    return result;
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    return link_between(from_at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
    return link_between(AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int move(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    bool recorded = step();
    struct place old = place_of(from_at, from), new = place_of(to_at, to);
    int result = real(from_at, from, to_at, to, flags);
    if (recorded && !result) {
        char names[2 * NAME_MAX + 2];
        int size = snprintf(names, sizeof names, "%s%c%s", old.name, '\0', new.name);
        if (flags & RENAME_EXCHANGE)
            note(names, (size_t)size, "swap %lu %lu %lu %lu", old.folder, new.folder, old.inode,
                 new.inode);
        else
            note(names, (size_t)size, "move %lu %lu %lu", old.folder, new.folder, old.inode);
    }
    end(recorded);
    return result;
}

int rename(const char *from, const char *to)
{
    return move(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return move(from_at, from, to_at, to, 0);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    return move(from_at, from, to_at, to, flags);
}

static int drop(int at, const char *path, int flags)
{
    REAL(int, "unlinkat", int, const char *, int);
    bool recorded = step();
    struct place place = place_of(at, path);
    int result = real(at, path, flags);
    if (recorded && !result)
        note(place.name, strlen(place.name), "drop %lu", place.folder);
    end(recorded);
    return result;
}

int unlinkat(int at, const char *path, int flags)
{
    return drop(at, path, flags);
}

int unlink(const char *path)
{
    return drop(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return drop(AT_FDCWD, path, AT_REMOVEDIR);
}

// Meddles with a program at a chosen moment, by LD_PRELOAD:
//
//   KILL_AT=N   ends it when it is about to give, change or remove a file's name for the N-th time,
//               as kill -9 or a power cut would
//   HANG_AT=N   lets the N-th opening of the file HANG_FILE take four seconds, and makes the file
//               HANG_MARK then; O_PATH opens nothing
//   LINGER      lets each renaming take a second longer, when it is done
//   FAIL_AT=N   fails read() with EIO where it would give byte N of a file that FAIL_FILE is in the
//               name of, as a bad sector does
//   FAIL_FOPEN=N  instead gives a stream that does so to the N-th fopen() of the file
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count(atomic_int *calls, const char *variable)
{
    const char *at = getenv(variable);
    return at && ++*calls == atoi(at);
}

static void may_end(void)
{
    static atomic_int calls;
    if (count(&calls, "KILL_AT"))
        _exit(137);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    int (*real)(int, const char *, int, const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    may_end();
    return real(from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    may_end();
    int result = real(from, to);
    if (getenv("LINGER"))
        sleep(1);
    return result;
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    may_end();
    return real(from_folder, from, to_folder, to, flags);
}

int unlink(const char *name)
{
    int (*real)(const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "unlink");
    may_end();
    return real(name);
}

static int slow_open(const char *symbol, const char *name, int flags, mode_t mode)
{
    static atomic_int calls;
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, symbol);
    const char *file = getenv("HANG_FILE"), *mark = getenv("HANG_MARK");
    if (!(flags & O_PATH) && file && !strcmp(name, file) && count(&calls, "HANG_AT")) {
        close(real(mark ? mark : "/dev/null", O_WRONLY | O_CREAT, 0666));
        sleep(4);
    }
    return real(name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return slow_open("open", name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return slow_open("open64", name, flags, mode);
}

static int has_name(int fd, const char *part)
{
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    return strstr(name, part) != NULL;
}

static ssize_t read_cookie(void *fd, char *to, size_t size)
{
    return read((int)(intptr_t)fd, to, size);
}

static int close_cookie(void *fd)
{
    return close((int)(intptr_t)fd);
}

FILE *fopen(const char *name, const char *mode)
{
    static atomic_int calls;
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    const char *file = getenv("FAIL_FILE"), *end = file ? strstr(name, file) : NULL;
    if (!end || strcmp(end, file) || !count(&calls, "FAIL_FOPEN"))
        return real(name, mode);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    cookie_io_functions_t does = {.read = read_cookie, .close = close_cookie};
    return fopencookie((void *)(intptr_t)fd, "r", does);
}

ssize_t read(int fd, void *to, size_t size)
{
    ssize_t (*real)(int, void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "read");
    const char *file = getenv("FAIL_FILE"), *where = getenv("FAIL_AT");
    if (file && where && has_name(fd, file)) {
        off_t at = lseek(fd, 0, SEEK_CUR), bad = atol(where);
        if (at <= bad && bad < at + (off_t)size) {
            errno = EIO;
            return -1;
        }
    }
    return real(fd, to, size);
}

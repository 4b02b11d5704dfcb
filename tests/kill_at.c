// Ends the program by LD_PRELOAD when it is about to give, change or remove a file's name for the
// KILL_AT-th time, as kill -9 or a power cut would.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void count(void)
{
    static atomic_int calls;
    const char *last = getenv("KILL_AT");
    if (last && ++calls == atoi(last))
        _exit(137);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    int (*real)(int, const char *, int, const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    count();
    return real(from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    count();
    return real(from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    count();
    return real(from_folder, from, to_folder, to, flags);
}

int unlink(const char *name)
{
    int (*real)(const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "unlink");
    count();
    return real(name);
}

#include "pipeline/input/io/mapped.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 // Linux 5.14
#endif

// Packets lie in windows, each mapped once. All that are there at a time of all files have a seat.
enum { WINDOW = 16 << 20, SEATS = 256 };

// Shared by the file's owner and its windows.
struct torn {
    atomic_int users;
    atomic_bool is_torn;
};

struct mapped {
    int fd;
    struct torn *torn;
    AVBufferRef *window; // the last one; NULL: none
    int64_t begin;       // of it in the file
};

// A window that is mapped. `begin` is set last and taken away first, by who has taken the seat; the
// handler, in any thread at any time, reads all of them.
static struct seat {
    atomic_bool taken;
    _Atomic uintptr_t begin; // 0: there is none
    atomic_size_t size;
    _Atomic(struct torn *) torn;
} seats[SEATS];

static size_t page_size;
static struct sigaction before;

static void release(struct torn *torn)
{
    if (atomic_fetch_sub(&torn->users, 1) == 1)
        free(torn);
}

// ---- the signal ----

// The seat of the window that has this address. Who reads there has a reference to it, so that it stays
// while others come and go.
static struct seat *seat_of(uintptr_t address)
{
    for (int k = 0; k < SEATS; k++) {
        uintptr_t begin = seats[k].begin;
        size_t size = (seats[k].size + page_size - 1) / page_size * page_size;
        if (begin && address >= begin && address - begin < size && seats[k].begin == begin)
            return &seats[k];
    }
    return NULL;
}

// Put zeros in the place of a page of ours that is gone.
static bool mend(uintptr_t address)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    struct seat *seat = seat_of(address);
    void *page = (void *)(address / page_size * page_size);
    if (!seat || mmap(page, page_size, PROT_READ, how, -1, 0) != page)
        return false;
    seat->torn->is_torn = true;
    return true;
}

static void handle(int signal, siginfo_t *about, void *context)
{
    int error = errno;
    if (about->si_code == BUS_ADRERR && mend((uintptr_t)about->si_addr)) {
        errno = error;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, about, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else if (about->si_code > 0 || before.sa_handler == SIG_DFL) {
        sigaction(SIGBUS, &before, NULL); // what was read is read again, and ends the process
        if (about->si_code <= 0)          // somebody sent it
            raise(signal);
    }
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}

// ---- windows ----

static void free_window(void *opaque, uint8_t *data)
{
    struct seat *seat = opaque;
    struct torn *torn = seat->torn;
    seat->begin = 0;
    munmap(data, seat->size);
    seat->taken = false;
    release(torn);
}

static struct seat *take_seat(void)
{
    for (int k = 0; k < SEATS; k++)
        if (!seats[k].taken && !atomic_exchange(&seats[k].taken, true))
            return &seats[k];
    return NULL;
}

// Map a window from `at` on, a multiple of the page's size.
static bool map_window(struct mapped *mapped, int64_t at, size_t size)
{
    struct seat *seat = take_seat();
    if (!seat)
        return false;
    void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, mapped->fd, at);
    AVBufferRef *window = NULL;
    if (data != MAP_FAILED) {
        seat->size = size;
        seat->torn = mapped->torn;
        window = av_buffer_create(data, size, free_window, seat, AV_BUFFER_FLAG_READONLY);
    }
    if (!window) {
        if (data != MAP_FAILED)
            munmap(data, size);
        seat->taken = false;
        return false;
    }
    atomic_fetch_add(&mapped->torn->users, 1);
    seat->begin = (uintptr_t)data;
    mapped->window = window;
    mapped->begin = at;
    return true;
}

static bool has_window(const struct mapped *mapped, int64_t at, int64_t bytes)
{
    return mapped->window && at >= mapped->begin &&
           at + bytes <= mapped->begin + (int64_t)mapped->window->size;
}

// ---- the file ----

struct mapped *mapped_open(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    struct mapped *mapped = malloc(sizeof *mapped);
    struct torn *torn = calloc(1, sizeof *torn);
    if (!mapped || !torn) {
        free(mapped);
        free(torn);
        return NULL;
    }
    torn->users = 1;
    *mapped = (struct mapped){.fd = fd, .torn = torn};
    return mapped;
}

void mapped_close(struct mapped **mapped)
{
    if (!*mapped)
        return;
    av_buffer_unref(&(*mapped)->window);
    release((*mapped)->torn);
    free(*mapped);
    *mapped = NULL;
}

bool mapped_take(struct mapped *mapped, int64_t at, int size, AVPacket *packet)
{
    struct stat about;
    int64_t bytes = (int64_t)size + AV_INPUT_BUFFER_PADDING_SIZE, page = (int64_t)page_size;
    if (fstat(mapped->fd, &about) || about.st_size - bytes < at)
        return false;
    int64_t begin = at / page * page, end = at + bytes, most = about.st_size - begin;
    if (!has_window(mapped, at, bytes)) {
        av_buffer_unref(&mapped->window);
        int64_t wanted = end - begin < WINDOW ? WINDOW : end - begin;
        if (!map_window(mapped, begin, (size_t)(wanted < most ? wanted : most)))
            return false;
    }
    uint8_t *data = mapped->window->data + (at - mapped->begin);
    uint8_t *first = mapped->window->data + (begin - mapped->begin);
    int error = madvise(first, (size_t)(end - begin), MADV_POPULATE_READ) ? errno : 0;
    if (error && error != EINVAL) // before Linux 5.14 pages come as they are read
        return false;
    packet->buf = av_buffer_ref(mapped->window);
    if (!packet->buf)
        return false;
    packet->data = data;
    packet->size = size;
    return true;
}

bool mapped_is_torn(const struct mapped *mapped)
{
    return mapped->torn->is_torn;
}

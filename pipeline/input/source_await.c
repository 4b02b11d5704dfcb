// Waiting for a source that is absent at the start, as for one that was lost.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/io/input_io.h"
#include "pipeline/input/source_open.h"

// A log that keeps the first error and hands on all else.
struct reason {
    const struct log *log;
    char words[1024];
};

static void keep_reason(void *reason_, enum log_level level, const char *sentence)
{
    struct reason *reason = reason_;
    if (level != LOG_ERROR)
        log_print(reason->log, level, "%s", sentence);
    else if (!*reason->words)
        snprintf(reason->words, sizeof reason->words, "%s", sentence);
}

// True if a source may appear: addresses and devices do; a file that is absent was misnamed.
static bool may_come(const struct source_request *request)
{
    const char *format, *what;
    if (url_is_device(request->name, &format, &what))
        return strcmp(format, "lavfi") != 0;
    return url_has_scheme(request->name) && strncmp(request->name, "file:", 5) != 0;
}

// Free what a failed attempt left. Nothing else refers to it.
static void clear(struct source *source)
{
    if (source->live) {
        live_close(&source->live);
        source->format = NULL; // it was that one's
    }
    avformat_close_input(&source->format);
    input_io_close(&source->io);
}

static enum status rest(const struct source *source, int attempts, unsigned *seed)
{
    const int64_t look_ns = 50 * INT64_C(1000000);
    int64_t until_ns = meter_now_ns() + backoff_ns(attempts, seed);
    while (!source_is_over(source) && meter_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = look_ns}, NULL);
    return source_is_over(source) ? STATUS_STOPPED : STATUS_OK;
}

// One attempt; why it failed is in `reason`.
static enum status try(struct source *source, const struct source_request *request,
                       enum status (*open)(struct source *, const struct source_request *),
                       struct reason *reason)
{
    const struct log *log = source->log;
    struct log quiet = {keep_reason, reason};
    *reason = (struct reason){.log = log};
    source->log = &quiet;
    enum status status = open(source, request);
    source->log = log;
    if (source->live)
        live_set_log(source->live, log);
    return status;
}

enum status source_await(struct source *source, const struct source_request *request,
                         enum status (*open)(struct source *, const struct source_request *))
{
    int64_t begin_ns = meter_now_ns();
    unsigned seed = (unsigned)begin_ns;
    struct reason reason;
    if (!request->await_start || !may_come(request))
        return open(source, request);
    enum status status = try(source, request, open, &reason);
    for (int k = 1; status == STATUS_INPUT && k <= backoff_max_attempts(request->reconnects); k++) {
        log_print(source->log, k == 1 ? LOG_WARNING : LOG_DEBUG, "%s; it is tried again",
                  reason.words);
        clear(source);
        status = rest(source, k, &seed);
        if (!status)
            status = try(source, request, open, &reason);
        if (!status)
            log_print(source->log, LOG_INFO, "%s is there after %.1f s", source->name,
                      (double)(meter_now_ns() - begin_ns) * 1e-9);
    }
    if (status && status != STATUS_STOPPED && *reason.words)
        log_print(source->log, LOG_ERROR, "%s", reason.words);
    return status;
}

// Log: sentences for people, through the caller's callback. Libraries never print.
#pragma once

#include "base/status.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

// The callback behind a log; a zeroed log swallows messages. `print` gets one sentence without a
// newline, which lives until it returns, from any thread, from several at once.
struct log {
    void (*print)(void *opaque, enum log_level level, const char *sentence);
    void *opaque;
};

// Format one sentence, cut to 1 KiB, and hand it over without the secrets of its addresses.
// Thread-safety: as safe as log->print.
__attribute__((format(printf, 3, 4))) void log_print(const struct log *log, enum log_level level,
                                                     const char *format, ...);

// Log an error in the same way and return `status`.
__attribute__((format(printf, 3, 4))) enum status log_fail(const struct log *log,
                                                           enum status status, const char *format,
                                                           ...);

// Log "out of memory" if that is what `status` says, and return it: where a call of an interface ends,
// as those within it log nothing then.
enum status log_memory(const struct log *log, enum status status);

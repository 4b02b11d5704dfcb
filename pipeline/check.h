// FFmpeg's error codes become statuses where they arise, with one sentence in the log.
#pragma once

#include <libavutil/error.h>
#include <stdarg.h>

#include "stages/log.h"
#include "stages/status.h"

// Log "SENTENCE: FFmpeg's words for the error" and return `status`; STATUS_MEMORY for ENOMEM.
__attribute__((format(printf, 4, 5))) enum status check_failed(const struct log *log,
                                                               enum status status, int error,
                                                               const char *format, ...);

// Log a sentence and return `status`.
__attribute__((format(printf, 3, 4))) enum status fail(const struct log *log, enum status status,
                                                       const char *format, ...);

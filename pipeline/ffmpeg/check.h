// FFmpeg's error codes become statuses where they arise, with one sentence in the log.
#pragma once

#include <libavutil/error.h>
#include <stdarg.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

// Interpret an error of FFmpeg's about an input. A damaged size asks for more memory than there can
// be: AVERROR(ENOMEM) is AVERROR_INVALIDDATA while the `bytes` that a sound input may ask for (0:
// some) are to be had. Other errors stay what they are.
int input_error(int error, int64_t bytes);

// Log "SENTENCE: FFmpeg's words for the error" and return `status`; STATUS_MEMORY for ENOMEM, of
// STATUS_INPUT as input_error() sees it.
__attribute__((format(printf, 4, 5))) enum status check_failed(const struct log *log,
                                                               enum status status, int error,
                                                               const char *format, ...);

#include "pipeline/check.h"

#include <errno.h>
#include <stdio.h>

enum status check_failed(const struct log *log, enum status status, int error, const char *format,
                         ...)
{
    char sentence[1024], words[AV_ERROR_MAX_STRING_SIZE] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    av_strerror(error, words, sizeof words);
    log_print(log, LOG_ERROR, "%s: %s", sentence, words);
    return error == AVERROR(ENOMEM) ? STATUS_MEMORY : status;
}

enum status fail(const struct log *log, enum status status, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    log_print(log, LOG_ERROR, "%s", sentence);
    return status;
}

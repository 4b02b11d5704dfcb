#include "pipeline/ffmpeg/check.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

int input_error(int error, int64_t bytes)
{
    const int64_t some = INT64_C(64) << 20;
    if (error != AVERROR(ENOMEM))
        return error;
    size_t size = (size_t)(bytes > some ? bytes : some);
    void *trial = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (trial == MAP_FAILED)
        return error;
    munmap(trial, size);
    return AVERROR_INVALIDDATA;
}

enum status check_failed(const struct log *log, enum status status, int error, const char *format,
                         ...)
{
    char sentence[1024], words[AV_ERROR_MAX_STRING_SIZE] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (status == STATUS_INPUT)
        error = input_error(error, 0);
    av_strerror(error, words, sizeof words);
    log_print(log, LOG_ERROR, "%s: %s", sentence, words);
    return error == AVERROR(ENOMEM) ? STATUS_MEMORY : status;
}

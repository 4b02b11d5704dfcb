#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/secrets.h"

__attribute__((format(printf, 3, 0))) static void print(const struct log *log, enum log_level level,
                                                        const char *format, va_list arguments)
{
    assert(format && *format && level >= LOG_ERROR && level <= LOG_DEBUG);
    if (!log || !log->print)
        return;
    char sentence[1024], shown[1024];
    if (vsnprintf(sentence, sizeof sentence, format, arguments) < (int)sizeof sentence)
        secrets_copy(sentence, SECRETS_IN_SENTENCE, shown, sizeof shown);
    else
        secrets_copy_cut(sentence, shown, sizeof shown);
    log->print(log->opaque, level, shown);
}

void log_print(const struct log *log, enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(log, level, format, arguments);
    va_end(arguments);
}

enum status log_fail(const struct log *log, enum status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(log, LOG_ERROR, format, arguments);
    va_end(arguments);
    return status;
}

enum status log_memory(const struct log *log, enum status status)
{
    return status == STATUS_MEMORY ? log_fail(log, status, "out of memory") : status;
}

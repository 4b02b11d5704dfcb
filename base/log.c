#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/secrets.h"

void log_print(const struct log *log, enum log_level level, const char *format, ...)
{
    assert(format && *format && level >= LOG_ERROR && level <= LOG_DEBUG);
    if (!log || !log->print)
        return;
    char sentence[1024], shown[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    secrets_copy(sentence, SECRETS_IN_SENTENCE, shown, sizeof shown);
    log->print(log->opaque, level, shown);
}

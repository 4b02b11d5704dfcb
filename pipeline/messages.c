// FFmpeg's own messages, on their way to standard error.
#include <libavutil/log.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/secrets.h"
#include "sluice/sluice.h"

enum { LINE = 2048 };

static void print_line(const char *line, bool cut)
{
    char shown[2 * LINE];
    if (cut)
        secrets_copy_cut(line, shown, sizeof shown);
    else
        secrets_copy(line, SECRETS_IN_SENTENCE, shown, sizeof shown);
    fputs(shown, stderr);
}

static void print_message(void *object, int level, const char *format, va_list arguments)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    // ---- guarded by lock ----
    static int prefix = 1; // FFmpeg's: whether a new line begins
    char line[LINE];
    if ((level & 0xff) > av_log_get_level())
        return;
    pthread_mutex_lock(&lock);
    int length = av_log_format_line2(object, level, format, arguments, line, sizeof line, &prefix);
    for (char *c = line; *c; c++) // what a file names itself must not steer a terminal
        if ((unsigned char)*c < 0x08 || ((unsigned char)*c > 0x0d && (unsigned char)*c < 0x20))
            *c = '?';
    print_line(line, length >= LINE);
    pthread_mutex_unlock(&lock);
}

void sluice_ffmpeg_log(int level)
{
    av_log_set_level(level);
    av_log_set_callback(print_message);
}

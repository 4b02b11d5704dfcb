// FFmpeg's own messages, on their way to standard error.
#include <libavutil/log.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/names.h"
#include "pipeline/sluice.h"

// Where the word that holds the address at `colon` begins and ends.
static const char *word_begin(const char *line, const char *colon)
{
    while (colon > line && !strchr(" '\"<([", colon[-1]))
        colon--;
    return colon;
}

static size_t word_length(const char *word)
{
    return strcspn(word, " '\">)]\n");
}

// Print a line with the secrets of its addresses left out.
static void print_line(const char *line)
{
    const char *address;
    while ((address = strstr(line, "://"))) {
        char word[1024], shown[1100];
        const char *begin = word_begin(line, address);
        size_t length = word_length(begin);
        snprintf(word, sizeof word, "%.*s", (int)length, begin);
        name_without_secrets(word, shown, sizeof shown);
        fprintf(stderr, "%.*s%s", (int)(begin - line), line, shown);
        line = begin + length;
    }
    fputs(line, stderr);
}

static void print_message(void *object, int level, const char *format, va_list arguments)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    // ---- guarded by lock ----
    static int prefix = 1; // FFmpeg's: whether a new line begins
    char line[2048];
    if ((level & 0xff) > av_log_get_level())
        return;
    pthread_mutex_lock(&lock);
    av_log_format_line2(object, level, format, arguments, line, sizeof line, &prefix);
    for (char *c = line; *c; c++) // what a file names itself must not steer a terminal
        if ((unsigned char)*c < 0x08 || ((unsigned char)*c > 0x0d && (unsigned char)*c < 0x20))
            *c = '?';
    print_line(line);
    pthread_mutex_unlock(&lock);
}

void sluice_ffmpeg_log(int level)
{
    av_log_set_level(level);
    av_log_set_callback(print_message);
}

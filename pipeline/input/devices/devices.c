#include "pipeline/input/devices/devices.h"

#include <dlfcn.h>
#include <libavutil/avstring.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "pipeline/ffmpeg/check.h"

// The library's number is libavformat's.
#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)
static const char library[] = "libavdevice.so." TEXT(LIBAVFORMAT_VERSION_MAJOR);

static bool registered;

static void register_devices(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void (*register_all)(void) = NULL;
    if (handle)
        *(void **)&register_all = dlsym(handle, "avdevice_register_all");
    if (register_all)
        register_all();
    registered = register_all;
}

static enum status refuse(const char *format, const struct log *log)
{
    if (!registered)
        return log_fail(log, STATUS_INPUT, "devices need FFmpeg's %s, which is not here", library);
    return log_fail(log, STATUS_INPUT,
                    "this FFmpeg has no device '%s'; 'sluice --list-devices' shows which it has",
                    format);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

enum status device_find(const char *format, const struct log *log, const AVInputFormat **demuxer)
{
    pthread_once(&once, register_devices);
    *demuxer = av_find_input_format(format);
    return *demuxer ? STATUS_OK : refuse(format, log);
}

bool device_is_camera(const AVInputFormat *demuxer)
{
    return demuxer && av_match_name("v4l2", demuxer->name);
}

// The capture devices of this machine, as the public header shows them.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "base/sized.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/devices/camera.h"
#include "pipeline/input/devices/devices.h"
#include "pipeline/input/live/connection.h"
#include "sluice/sluice.h"

struct listing {
    void (*device)(void *opaque, const struct sluice_device *device);
    void *opaque;
};

// ---- cameras ----

static void keep_sentence(void *sentence, enum log_level level, const char *text)
{
    if (level == LOG_ERROR)
        snprintf(sentence, 1024, "%s", text);
}

// A device that does not capture video is not a camera, and not listed.
static enum status list_camera(const struct listing *listing, int number)
{
    char path[32], sentence[1024] = "";
    struct log log = {keep_sentence, sentence};
    struct camera camera;
    snprintf(path, sizeof path, "/dev/video%d", number);
    enum status status = camera_open(path, &log, &camera);
    bool other = status == STATUS_INPUT && camera.fd >= 0;
    struct sluice_device device = {path, *camera.name ? camera.name : "camera",
                                   *sentence     ? sentence
                                   : camera.busy ? "in use by another program"
                                                 : NULL,
                                   camera.mode, camera.modes};
    if (!other && status != STATUS_MEMORY)
        listing->device(listing->opaque, &device);
    camera_close(&camera);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static enum status list_cameras(const struct listing *listing)
{
    int number[256], count = 0;
    enum status status = STATUS_OK;
    DIR *folder = opendir("/dev");
    if (!folder)
        return STATUS_OK;
    for (const struct dirent *entry; count < 256 && (entry = readdir(folder));) {
        int length = 0;
        if (sscanf(entry->d_name, "video%d%n", &number[count], &length) == 1 &&
            !entry->d_name[length])
            count++;
    }
    closedir(folder);
    qsort(number, (size_t)count, sizeof *number, compare_numbers);
    for (int k = 0; k < count && !status; k++)
        status = list_camera(listing, number[k]);
    return status;
}

// ---- the screen ----

static const int64_t patience_ns = 2000 * INT64_C(1000000);

static enum status look_at_screen(const char *display, const AVInputFormat *demuxer,
                                  struct sluice_device *device, char *name, size_t size)
{
    struct connection *connection;
    struct connection_request request = {
        .url = display, .demuxer = demuxer, .open_ns = patience_ns, .stall_ns = patience_ns};
    enum status status = connection_start(&request, &connection);
    if (status)
        return status;
    connection_await(connection, meter_now_ns() + patience_ns);
    AVFormatContext *format = connection_take_format(connection);
    if (format && format->nb_streams)
        snprintf(name, size, "X11 screen, %dx%d", format->streams[0]->codecpar->width,
                 format->streams[0]->codecpar->height);
    else
        device->trouble = "it does not answer, or does not let this user in";
    avformat_free_context(format);
    connection_close(&connection);
    return STATUS_OK;
}

static enum status list_screen(const struct listing *listing)
{
    const struct log silent = {0};
    const char *display = getenv("DISPLAY");
    const AVInputFormat *demuxer;
    char input[512], name[64] = "X11 screen";
    if (!display || !*display)
        return STATUS_OK;
    snprintf(input, sizeof input, "x11grab:%s", display);
    struct sluice_device device = {.input = input, .name = name};
    enum status status = STATUS_OK;
    if (device_find("x11grab", &silent, &demuxer))
        device.trouble = "FFmpeg's libavdevice is not here, or has no x11grab";
    else
        status = look_at_screen(display, demuxer, &device, name, sizeof name);
    if (!status)
        listing->device(listing->opaque, &device);
    return status;
}

// ---- the public side ----

enum sluice_status sluice_devices(void (*device)(void *opaque, const struct sluice_device *device),
                                  void *opaque)
{
    const struct listing listing = {device, opaque};
    enum status status = list_cameras(&listing);
    if (!status)
        status = list_screen(&listing);
    return (enum sluice_status)status;
}

enum sluice_status sluice_device_kind(int index, struct sluice_device_kind *kind)
{
    const struct log silent = {0};
    for (int k = 0; device_names[k].format; k++) {
        const struct device_name *name = &device_names[k];
        const AVInputFormat *demuxer;
        if (device_find(name->format, &silent, &demuxer) || index-- > 0)
            continue;
        const struct sluice_device_kind now = {
            .name = name->format, .description = demuxer->long_name, .example = name->example};
        return sized_write(kind, &now, sizeof now) ? SLUICE_STATUS_OK : SLUICE_STATUS_USAGE;
    }
    return SLUICE_STATUS_END;
}

#include "pipeline/input/devices/camera.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>
#include <linux/videodev2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pipeline/ffmpeg/check.h"

enum { V4L_MAJOR = 81, MAX_MODES = 4096 };

static int ask(int fd, unsigned long what, void *argument)
{
    int answer;
    do
        answer = ioctl(fd, what, argument);
    while (answer < 0 && errno == EINTR);
    return answer;
}

// ---- formats ----

// Formats that libavdevice reads, by the names that it takes; earlier ones are preferred.
static const struct {
    unsigned fourcc;
    const char *pixfmt;
} formats[] = {
    {V4L2_PIX_FMT_YUV420, "yuv420p"},     {V4L2_PIX_FMT_YVU420, "yuv420p"},
    {V4L2_PIX_FMT_YUV422P, "yuv422p"},    {V4L2_PIX_FMT_YUYV, "yuyv422"},
    {V4L2_PIX_FMT_UYVY, "uyvy422"},       {V4L2_PIX_FMT_YUV411P, "yuv411p"},
    {V4L2_PIX_FMT_YUV410, "yuv410p"},     {V4L2_PIX_FMT_YVU410, "yuv410p"},
    {V4L2_PIX_FMT_RGB555, "rgb555le"},    {V4L2_PIX_FMT_RGB555X, "rgb555be"},
    {V4L2_PIX_FMT_RGB565, "rgb565le"},    {V4L2_PIX_FMT_RGB565X, "rgb565be"},
    {V4L2_PIX_FMT_BGR24, "bgr24"},        {V4L2_PIX_FMT_RGB24, "rgb24"},
    {V4L2_PIX_FMT_BGR32, "bgr0"},         {V4L2_PIX_FMT_RGB32, "0rgb"},
    {V4L2_PIX_FMT_GREY, "gray"},          {V4L2_PIX_FMT_Y16, "gray16le"},
    {V4L2_PIX_FMT_NV12, "nv12"},          {V4L2_PIX_FMT_MJPEG, "mjpeg"},
    {V4L2_PIX_FMT_JPEG, "mjpeg"},         {V4L2_PIX_FMT_H264, "h264"},
    {V4L2_PIX_FMT_CPIA1, "cpia"},         {V4L2_PIX_FMT_SBGGR8, "bayer_bggr8"},
    {V4L2_PIX_FMT_SGBRG8, "bayer_gbrg8"}, {V4L2_PIX_FMT_SGRBG8, "bayer_grbg8"},
    {V4L2_PIX_FMT_SRGGB8, "bayer_rggb8"},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static int rank_of(unsigned fourcc)
{
    int k = 0;
    while (k < FORMATS && formats[k].fourcc != fourcc)
        k++;
    return k;
}

static bool same_format(const char *a, const char *b)
{
    enum AVPixelFormat pixel = av_get_pix_fmt(a);
    return !strcmp(a, b) || (pixel != AV_PIX_FMT_NONE && pixel == av_get_pix_fmt(b));
}

// ---- what a driver says ----

static struct sluice_mode *add_mode(struct camera *camera, const struct v4l2_fmtdesc *format)
{
    struct sluice_mode *list = NULL;
    if (camera->modes < MAX_MODES)
        list = realloc(camera->mode, (size_t)(camera->modes + 1) * sizeof *list);
    if (!list)
        return NULL;
    camera->mode = list;
    struct sluice_mode *mode = &list[camera->modes++];
    int rank = rank_of(format->pixelformat);
    *mode = (struct sluice_mode){.pixfmt = rank < FORMATS ? formats[rank].pixfmt : NULL,
                                 .fourcc = format->pixelformat};
    snprintf(mode->description, sizeof mode->description, "%s", (const char *)format->description);
    return mode;
}

static void add_rate(struct sluice_mode *mode, const struct v4l2_fract *interval)
{
    if (interval->numerator && interval->denominator)
        mode->rate[mode->rates++] =
            (struct sluice_rate){(int)interval->denominator, (int)interval->numerator};
}

// The rates of pictures of that size.
static void read_rates(const struct camera *camera, struct sluice_mode *mode, int width, int height)
{
    const int most = sizeof mode->rate / sizeof *mode->rate;
    mode->rates = 0;
    for (unsigned k = 0; mode->rates < most && k < MAX_MODES; k++) {
        struct v4l2_frmivalenum interval = {.index = k,
                                            .pixel_format = mode->fourcc,
                                            .width = (unsigned)width,
                                            .height = (unsigned)height};
        if (ask(camera->fd, VIDIOC_ENUM_FRAMEINTERVALS, &interval))
            return;
        if (interval.type == V4L2_FRMIVAL_TYPE_DISCRETE) {
            add_rate(mode, &interval.discrete);
            continue;
        }
        add_rate(mode, &interval.stepwise.max);
        add_rate(mode, &interval.stepwise.min);
        mode->any_rate = mode->rates == 2;
        return;
    }
}

static void set_range(struct sluice_mode *mode, const struct v4l2_frmsize_stepwise *range)
{
    mode->width = (int)range->min_width;
    mode->height = (int)range->min_height;
    mode->max_width = (int)range->max_width;
    mode->max_height = (int)range->max_height;
    mode->width_step = range->step_width ? (int)range->step_width : 1;
    mode->height_step = range->step_height ? (int)range->step_height : 1;
}

static enum status read_sizes(struct camera *camera, const struct v4l2_fmtdesc *format)
{
    for (unsigned k = 0; camera->modes < MAX_MODES; k++) {
        struct v4l2_frmsizeenum size = {.index = k, .pixel_format = format->pixelformat};
        bool said = !ask(camera->fd, VIDIOC_ENUM_FRAMESIZES, &size);
        if (!said && k > 0)
            break;
        struct sluice_mode *mode = add_mode(camera, format);
        if (!mode)
            return STATUS_MEMORY;
        if (!said)
            break;
        bool range = size.type != V4L2_FRMSIZE_TYPE_DISCRETE;
        if (range) {
            set_range(mode, &size.stepwise);
            read_rates(camera, mode, mode->max_width, mode->max_height);
            break;
        }
        mode->width = (int)size.discrete.width;
        mode->height = (int)size.discrete.height;
        read_rates(camera, mode, mode->width, mode->height);
    }
    return STATUS_OK;
}

// True if libavdevice would choose another by that name: planes in another order.
static bool is_shadowed(const struct camera *camera, unsigned fourcc)
{
    int rank = rank_of(fourcc);
    for (int k = 0; k < camera->modes && rank < FORMATS; k++)
        if (camera->mode[k].pixfmt && !strcmp(camera->mode[k].pixfmt, formats[rank].pixfmt) &&
            camera->mode[k].fourcc != fourcc)
            return true;
    return false;
}

static enum status read_modes(struct camera *camera)
{
    enum status status = STATUS_OK;
    for (unsigned k = 0; !status && camera->modes < MAX_MODES; k++) {
        struct v4l2_fmtdesc format = {.index = k, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
        if (ask(camera->fd, VIDIOC_ENUM_FMT, &format))
            break;
        if (!is_shadowed(camera, format.pixelformat))
            status = read_sizes(camera, &format);
    }
    return status;
}

// True if another program captures: buffers are one program's at a time. Asking for none changes
// nothing.
static bool is_busy(int fd)
{
    struct v4l2_requestbuffers none = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
                                       .memory = V4L2_MEMORY_MMAP};
    return ask(fd, VIDIOC_REQBUFS, &none) && errno == EBUSY;
}

// ---- opening ----

static enum status cannot_open(const char *path, int error, const struct log *log)
{
    if (error == EACCES || error == EPERM)
        return log_fail(
            log, STATUS_INPUT,
            "%s may not be opened by this user; members of the group video may, as a rule "
            "('sudo usermod -aG video NAME', then log in again)",
            path);
    if (error == ENOENT || error == ENODEV || error == ENXIO)
        return log_fail(log, STATUS_INPUT,
                        "the camera %s is not there; 'sluice --list-devices' shows what is", path);
    return log_fail(log, STATUS_INPUT, "the camera %s cannot be opened: %s", path, strerror(error));
}

static enum status open_node(const char *path, const struct log *log, int *fd)
{
    struct stat about;
    if (stat(path, &about))
        return cannot_open(path, errno, log);
    if (!S_ISCHR(about.st_mode) || major(about.st_rdev) != V4L_MAJOR)
        return log_fail(log, STATUS_INPUT,
                        "%s is no camera; a video device was expected, as 'sluice --list-devices' "
                        "shows them",
                        path);
    *fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return *fd < 0 ? cannot_open(path, errno, log) : STATUS_OK;
}

static enum status check_capture(const char *path, const struct log *log, struct camera *camera)
{
    const unsigned wanted = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    struct v4l2_capability about = {0};
    if (ask(camera->fd, VIDIOC_QUERYCAP, &about))
        return cannot_open(path, errno, log);
    snprintf(camera->name, sizeof camera->name, "%s", (const char *)about.card);
    bool own = about.capabilities & V4L2_CAP_DEVICE_CAPS;
    unsigned has = own ? about.device_caps : about.capabilities;
    if ((has & wanted) != wanted)
        return log_fail(log, STATUS_INPUT,
                        "%s (%s) does not capture video; 'sluice --list-devices' shows what does",
                        path, camera->name);
    return STATUS_OK;
}

enum status camera_open(const char *path, const struct log *log, struct camera *camera)
{
    struct v4l2_format now = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    *camera = (struct camera){.fd = -1};
    enum status status = open_node(path, log, &camera->fd);
    if (!status)
        status = check_capture(path, log, camera);
    if (status)
        return status;
    if (!ask(camera->fd, VIDIOC_G_FMT, &now)) {
        camera->width = (int)now.fmt.pix.width;
        camera->height = (int)now.fmt.pix.height;
    }
    camera->busy = is_busy(camera->fd);
    return read_modes(camera);
}

void camera_close(struct camera *camera)
{
    if (camera->fd >= 0)
        close(camera->fd);
    free(camera->mode);
    *camera = (struct camera){.fd = -1};
}

// ---- what is asked for ----

static bool is_on_grid(int value, int least, int most, int step)
{
    return value >= least && value <= most && (value - least) % step == 0;
}

static bool mode_has_size(const struct sluice_mode *mode, int width, int height)
{
    if (!mode->width)
        return true;
    if (!mode->max_width)
        return width == mode->width && height == mode->height;
    return is_on_grid(width, mode->width, mode->max_width, mode->width_step) &&
           is_on_grid(height, mode->height, mode->max_height, mode->height_step);
}

static double per_second(struct sluice_rate rate)
{
    return (double)rate.num / rate.den;
}

// Drivers count in units of 100 ns; 29.97 and 30 are a thousandth apart.
static int compare_rates(struct sluice_rate a, struct sluice_rate b)
{
    double ratio = per_second(a) / per_second(b);
    return ratio < 0.9998 ? -1 : ratio > 1.0002;
}

static bool mode_has_rate(const struct sluice_mode *mode, struct sluice_rate rate)
{
    if (mode->any_rate)
        return compare_rates(mode->rate[0], rate) <= 0 && compare_rates(rate, mode->rate[1]) <= 0;
    for (int k = 0; k < mode->rates; k++)
        if (compare_rates(mode->rate[k], rate) == 0)
            return true;
    return !mode->rates;
}

static bool is_readable(const struct sluice_mode *mode, const struct camera_request *wanted)
{
    (void)wanted;
    return mode->pixfmt;
}

static bool has_pixfmt(const struct sluice_mode *mode, const struct camera_request *wanted)
{
    return same_format(mode->pixfmt, wanted->pixfmt);
}

static bool has_size(const struct sluice_mode *mode, const struct camera_request *wanted)
{
    return mode_has_size(mode, wanted->width, wanted->height);
}

static bool has_rate(const struct sluice_mode *mode, const struct camera_request *wanted)
{
    return mode_has_rate(mode, wanted->rate);
}

// Leave only the modes that fit, and return true; or all, if none does.
static bool narrow(struct camera *camera,
                   bool (*fits)(const struct sluice_mode *mode,
                                const struct camera_request *wanted),
                   const struct camera_request *wanted)
{
    int count = 0;
    for (int k = 0; k < camera->modes; k++)
        count += fits(&camera->mode[k], wanted);
    if (!count)
        return false;
    for (int k = 0, to = 0; k < camera->modes; k++)
        if (fits(&camera->mode[k], wanted))
            camera->mode[to++] = camera->mode[k];
    camera->modes = count;
    return true;
}

// ---- words ----

void sluice_mode_size(const struct sluice_mode *mode, char *to, size_t size)
{
    to[0] = 0;
    if (mode->width)
        snprintf(to, size, "%dx%d", mode->width, mode->height);
    size_t used = strlen(to);
    if (mode->max_width)
        snprintf(to + used, size - used, " to %dx%d", mode->max_width, mode->max_height);
    used = strlen(to);
    if (mode->max_width && (mode->width_step > 1 || mode->height_step > 1))
        snprintf(to + used, size - used, " in steps of %dx%d", mode->width_step, mode->height_step);
}

static void print_rate(struct sluice_rate rate, char *to, size_t size)
{
    double whole = round(per_second(rate));
    if (rate.den == 1 || fabs(per_second(rate) - whole) < 1e-4 * whole)
        snprintf(to, size, "%.0f", whole);
    else
        snprintf(to, size, "%d/%d", rate.num, rate.den);
}

void sluice_mode_rates(const struct sluice_mode *mode, char *to, size_t size)
{
    to[0] = 0;
    for (int k = 0; k < mode->rates; k++) {
        char rate[32];
        size_t used = strlen(to);
        print_rate(mode->rate[k], rate, sizeof rate);
        snprintf(to + used, size - used, "%s%s",
                 k == 0           ? ""
                 : mode->any_rate ? " to "
                                  : ", ",
                 rate);
    }
}

static void print_pixfmt(const struct sluice_mode *mode, char *to, size_t size)
{
    snprintf(to, size, "%s", mode->pixfmt);
}

static bool is_listed(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; (at = strstr(at, item)); at++)
        if ((at == list || (at > list + 1 && at[-2] == ',')) && (!at[length] || at[length] == ','))
            return true;
    return false;
}

// Add an item to a list of items, each once, as far as there is room.
static void list_item(const char *item, char *to, size_t size)
{
    static const char more[] = "and others";
    size_t used = strlen(to);
    if (is_listed(to, item) || is_listed(to, more))
        return;
    if (used + strlen(item) + sizeof more + 4 > size)
        item = more;
    snprintf(to + used, size - used, "%s%s", used ? ", " : "", item);
}

// Lists of what the modes have.
static void list_modes(const struct camera *camera,
                       void (*print)(const struct sluice_mode *mode, char *to, size_t size),
                       char *to, size_t size)
{
    char items[512], *rest;
    to[0] = 0;
    for (int k = 0; k < camera->modes; k++) {
        print(&camera->mode[k], items, sizeof items);
        for (char *item = strtok_r(items, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
            list_item(item + strspn(item, " "), to, size);
    }
}

static enum status refuse(const char *path, const struct camera *camera, const char *what,
                          void (*print)(const struct sluice_mode *mode, char *to, size_t size),
                          const struct log *log)
{
    char list[640];
    list_modes(camera, print, list, sizeof list);
    return log_fail(
        log, STATUS_USAGE,
        "the camera %.80s (%s) has no %s; it has %s ('sluice --list-devices' shows all)", path,
        camera->name, what, list);
}

// ---- choice ----

static double fastest(const struct sluice_mode *mode)
{
    double most = 0;
    for (int k = 0; k < mode->rates; k++)
        most = fmax(most, per_second(mode->rate[k]));
    return most;
}

static bool is_better(const struct sluice_mode *a, const struct sluice_mode *b, bool any_rate)
{
    if (any_rate && fastest(a) != fastest(b))
        return fastest(a) > fastest(b);
    return rank_of(a->fourcc) < rank_of(b->fourcc);
}

static const struct sluice_mode *best_mode(const struct camera *camera, bool any_rate)
{
    const struct sluice_mode *best = camera->mode;
    for (int k = 1; k < camera->modes; k++)
        if (is_better(&camera->mode[k], best, any_rate))
            best = &camera->mode[k];
    return best;
}

// Ask the driver what it would make of the size. One that does not answer is taken at its word.
static enum status try_size(const char *path, const struct camera *camera,
                            const struct sluice_mode *mode, const struct camera_request *wanted,
                            const struct log *log)
{
    struct v4l2_format format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    struct v4l2_pix_format *pix = &format.fmt.pix;
    pix->width = (unsigned)wanted->width;
    pix->height = (unsigned)wanted->height;
    pix->pixelformat = mode->fourcc;
    pix->field = V4L2_FIELD_ANY;
    if (!wanted->width || ask(camera->fd, VIDIOC_TRY_FMT, &format) ||
        ((int)pix->width == wanted->width && (int)pix->height == wanted->height))
        return STATUS_OK;
    return log_fail(log, STATUS_USAGE, "the camera %s (%s) makes %ux%u of --size %dx%d in %s", path,
                    camera->name, pix->width, pix->height, wanted->width, wanted->height,
                    mode->pixfmt);
}

// Leave only the modes with that rate, in the size that is asked for or set now.
static enum status narrow_to_rate(const char *path, struct camera *camera,
                                  const struct camera_request *request, const struct log *log)
{
    char what[160], rate[32];
    struct camera_request now = *request;
    if (!now.width) {
        now.width = camera->width;
        now.height = camera->height;
        narrow(camera, has_size, &now);
    }
    for (int k = 0; k < camera->modes; k++)
        if (camera->mode[k].max_width || !camera->mode[k].width)
            read_rates(camera, &camera->mode[k], now.width, now.height);
    if (narrow(camera, has_rate, request))
        return STATUS_OK;
    print_rate(request->rate, rate, sizeof rate);
    snprintf(what, sizeof what, "%s frames a second in %dx%d%s%.40s", rate, now.width, now.height,
             request->pixfmt ? " of " : "", request->pixfmt ? request->pixfmt : "");
    return refuse(path, camera, what, sluice_mode_rates, log);
}

static enum status choose(const char *path, struct camera *camera,
                          const struct camera_request *request, const struct log *log,
                          const char **pixfmt)
{
    char what[160];
    enum status status = STATUS_OK;
    if (!narrow(camera, is_readable, request))
        return log_fail(log, STATUS_INPUT, "the camera %s (%s) has no format that FFmpeg reads",
                        path, camera->name);
    if (request->pixfmt && !narrow(camera, has_pixfmt, request)) {
        snprintf(what, sizeof what, "pixel format %.60s", request->pixfmt);
        return refuse(path, camera, what, print_pixfmt, log);
    }
    if (request->width && !narrow(camera, has_size, request)) {
        snprintf(what, sizeof what, "pictures of %dx%d%s%.60s", request->width, request->height,
                 request->pixfmt ? " in " : "", request->pixfmt ? request->pixfmt : "");
        return refuse(path, camera, what, sluice_mode_size, log);
    }
    if (request->rate.num)
        status = narrow_to_rate(path, camera, request, log);
    if (status)
        return status;
    const struct sluice_mode *mode = best_mode(camera, !request->rate.num);
    *pixfmt = mode->pixfmt;
    return try_size(path, camera, mode, request, log);
}

enum status camera_check(const char *path, const struct camera_request *request,
                         const struct log *log, const char **pixfmt)
{
    struct camera camera;
    assert(path && request);
    *pixfmt = NULL;
    enum status status = camera_open(path, log, &camera);
    if (!status && camera.busy)
        status =
            log_fail(log, STATUS_INPUT,
                     "the camera %s (%s) is in use by another program; 'fuser -v %s' shows which",
                     path, camera.name, path);
    if (!status && (request->width || request->rate.num || request->pixfmt))
        status = choose(path, &camera, request, log, pixfmt);
    camera_close(&camera);
    return status;
}

enum status camera_check_rate(const char *path, const struct camera_request *request,
                              AVRational given, const struct log *log)
{
    char shown[32], asked[32];
    struct sluice_rate rate = {given.num, given.den};
    if (!request->rate.num || given.num <= 0 || given.den <= 0)
        return STATUS_OK;
    if (fabs(per_second(rate) - per_second(request->rate)) < 0.01 * per_second(request->rate))
        return STATUS_OK;
    print_rate(rate, shown, sizeof shown);
    print_rate(request->rate, asked, sizeof asked);
    return log_fail(log, STATUS_USAGE, "the camera %s makes %s frames a second of --rate %s", path,
                    shown, asked);
}

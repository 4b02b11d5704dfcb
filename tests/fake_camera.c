// A camera for LD_PRELOAD: /dev/video97 speaks as much V4L2 as libavdevice does. Its pictures of
// MJPEG lie in the file FAKE_CAMERA_JPEG. It is for what the kernel's test driver has not: a
// webcam's two formats, one of them compressed; continuous sizes and rates; and, by FAKE_CAMERA,
//
//   mute     lists neither sizes nor rates, and goes at its own pace
//   dead     never gives a picture
//   stuck    gives LAST pictures, and more only when it is opened anew
//   gone     gives LAST pictures, and is unplugged
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, BUFFERS = 4, LAST = 20, Z16 = v4l2_fourcc('Z', '1', '6', ' ') };

static const char path[] = "/dev/video97";

// Pictures a second in each format and size; 0 rates: sizes and rates are continuous.
static const struct mode {
    unsigned fourcc, width, height, rates, rate[2];
} modes[] = {
    {V4L2_PIX_FMT_YUYV, 320, 240, 2, {30, 15}},
    {V4L2_PIX_FMT_YUYV, 640, 480, 1, {5}},
    {V4L2_PIX_FMT_MJPEG, 320, 240, 1, {30}},
    {V4L2_PIX_FMT_MJPEG, 640, 480, 1, {30}},
    {Z16, 320, 240, 1, {30}},
    {V4L2_PIX_FMT_GREY, 16, 16, 0, {0}},
};
static const unsigned formats[] = {V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_MJPEG, Z16, V4L2_PIX_FMT_GREY};

// ---- what is set ----

static int camera = -1, second = -1; // descriptors; of the second all it learns is that it is busy
static bool blocks;
static unsigned fourcc = V4L2_PIX_FMT_YUYV, width = 320, height = 240, rate = 30;
static unsigned queued[BUFFERS], queue_length, given;
static long long began_ns;

static bool is(const char *what)
{
    const char *kind = getenv("FAKE_CAMERA");
    return kind && !strcmp(kind, what);
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static unsigned picture_size(void)
{
    return width * height * (fourcc == V4L2_PIX_FMT_GREY ? 1 : 2);
}

// ---- what it has ----

static int list_formats(struct v4l2_fmtdesc *format)
{
    if (format->index >= sizeof formats / sizeof *formats)
        return refuse(EINVAL);
    format->pixelformat = formats[format->index];
    memcpy(format->description, &format->pixelformat, 4);
    return 0;
}

static const struct mode *find(unsigned code, unsigned index)
{
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
        if (modes[k].fourcc == code && index-- == 0)
            return &modes[k];
    return NULL;
}

static int list_sizes(struct v4l2_frmsizeenum *size)
{
    const struct mode *mode = find(size->pixel_format, size->index);
    if (!mode || is("mute"))
        return refuse(is("mute") ? ENOTTY : EINVAL);
    size->type = mode->rates ? V4L2_FRMSIZE_TYPE_DISCRETE : V4L2_FRMSIZE_TYPE_CONTINUOUS;
    if (mode->rates) {
        size->discrete.width = mode->width;
        size->discrete.height = mode->height;
    } else {
        size->stepwise = (struct v4l2_frmsize_stepwise){16, 64, 1, 16, 48, 1};
    }
    return 0;
}

static int list_rates(struct v4l2_frmivalenum *interval)
{
    const struct mode *mode;
    unsigned k = 0;
    while ((mode = find(interval->pixel_format, k)) && mode->rates &&
           (mode->width != interval->width || mode->height != interval->height))
        k++;
    if (!mode || is("mute") || interval->index >= (mode->rates ? mode->rates : 1))
        return refuse(EINVAL);
    interval->type = mode->rates ? V4L2_FRMIVAL_TYPE_DISCRETE : V4L2_FRMIVAL_TYPE_CONTINUOUS;
    if (mode->rates)
        interval->discrete = (struct v4l2_fract){1, mode->rate[interval->index]};
    else
        interval->stepwise = (struct v4l2_frmival_stepwise){{1, 60}, {1, 1}, {1, 1}};
    return 0;
}

// As drivers do: what it has not becomes something that it has.
static int set_format(struct v4l2_format *format, bool keep)
{
    struct v4l2_pix_format *pix = &format->fmt.pix;
    const struct mode *best = find(pix->pixelformat, 0), *mode = best;
    if (!best || pix->pixelformat == Z16)
        best = &modes[0];
    for (unsigned k = 0; best->rates && (mode = find(pix->pixelformat, k)); k++)
        if (mode->width <= pix->width)
            best = mode;
    pix->pixelformat = best->fourcc;
    if (best->rates) {
        pix->width = best->width;
        pix->height = best->height;
    }
    if (keep) {
        fourcc = pix->pixelformat;
        width = pix->width;
        height = pix->height;
        rate = best->rates ? best->rate[0] : 30;
    }
    return 0;
}

static int get_format(struct v4l2_format *format)
{
    format->fmt.pix = (struct v4l2_pix_format){width, height, fourcc};
    return 0;
}

static int handle_rate(struct v4l2_streamparm *parameters, bool set)
{
    struct v4l2_captureparm *capture = &parameters->parm.capture;
    if (set && capture->timeperframe.numerator && !is("mute"))
        rate = capture->timeperframe.denominator / capture->timeperframe.numerator;
    capture->capability = V4L2_CAP_TIMEPERFRAME;
    capture->timeperframe = (struct v4l2_fract){1, rate};
    return 0;
}

// ---- pictures ----

static unsigned draw(unsigned index)
{
    unsigned char *to = mmap(NULL, BUFFER, PROT_WRITE, MAP_SHARED, camera, (off_t)index * BUFFER);
    unsigned size = picture_size();
    if (to == MAP_FAILED)
        return 0;
    if (fourcc == V4L2_PIX_FMT_MJPEG) {
        int file = open(getenv("FAKE_CAMERA_JPEG"), O_RDONLY);
        ssize_t got = read(file, to, BUFFER);
        size = got > 0 ? (unsigned)got : 0;
        close(file);
    } else {
        memset(to, (int)(given * 5 % 200), size);
    }
    munmap(to, BUFFER);
    return size;
}

static int give(struct v4l2_buffer *buffer)
{
    long long due = began_ns + (given + 1) * 1000000000LL / (rate ? rate : 30);
    if (is("gone") && given == LAST)
        return refuse(ENODEV);
    bool never = is("dead") || (is("stuck") && given == LAST);
    while (!queue_length || never || now_ns() < due) {
        if (!blocks)
            return refuse(EAGAIN);
        usleep(1000);
    }
    buffer->index = queued[0];
    queue_length--;
    memmove(queued, queued + 1, queue_length * sizeof *queued);
    buffer->bytesused = draw(buffer->index);
    buffer->flags = 0;
    buffer->timestamp.tv_sec = due / 1000000000;
    buffer->timestamp.tv_usec = due % 1000000000 / 1000;
    given++;
    return 0;
}

static int handle_buffer(struct v4l2_buffer *buffer, bool queue)
{
    if (buffer->index >= BUFFERS)
        return refuse(EINVAL);
    buffer->length = BUFFER;
    buffer->m.offset = buffer->index * BUFFER;
    if (queue && queue_length < BUFFERS)
        queued[queue_length++] = buffer->index;
    return 0;
}

static int start(void)
{
    began_ns = now_ns();
    given = 0;
    return 0;
}

// ---- the calls ----

static int answer(unsigned long what, void *argument)
{
    struct v4l2_capability *about = argument;
    switch (what) {
    case VIDIOC_QUERYCAP:
        *about = (struct v4l2_capability){
            .card = "Fake",
            .capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING,
            .device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING};
        return 0;
    case VIDIOC_G_INPUT:
        *(int *)argument = 0;
        return 0;
    case VIDIOC_ENUMINPUT:
        return 0;
    case VIDIOC_ENUM_FMT:
        return list_formats(argument);
    case VIDIOC_ENUM_FRAMESIZES:
        return list_sizes(argument);
    case VIDIOC_ENUM_FRAMEINTERVALS:
        return list_rates(argument);
    case VIDIOC_G_FMT:
        return get_format(argument);
    case VIDIOC_TRY_FMT:
        return set_format(argument, false);
    case VIDIOC_S_FMT:
        return set_format(argument, true);
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM:
        return handle_rate(argument, what == VIDIOC_S_PARM);
    case VIDIOC_REQBUFS:
        queue_length = 0;
        if (((struct v4l2_requestbuffers *)argument)->count)
            ((struct v4l2_requestbuffers *)argument)->count = BUFFERS;
        return 0;
    case VIDIOC_QUERYBUF:
    case VIDIOC_QBUF:
        return handle_buffer(argument, what == VIDIOC_QBUF);
    case VIDIOC_DQBUF:
        return give(argument);
    case VIDIOC_STREAMON:
        return start();
    case VIDIOC_STREAMOFF:
        return 0;
    default:
        return refuse(ENOTTY);
    }
}

int ioctl(int fd, unsigned long what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (fd >= 0 && fd == second && (what == VIDIOC_S_FMT || what == VIDIOC_REQBUFS))
        return refuse(EBUSY);
    if (fd >= 0 && (fd == camera || fd == second))
        return answer(what, argument);
    int (*real)(int, unsigned long, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "ioctl");
    return real(fd, what, argument);
}

static int open_any(const char *name, int flags, mode_t mode)
{
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "open");
    if (strcmp(name, path) != 0)
        return real(name, flags, mode);
    int fd = memfd_create("camera", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, BUFFERS * BUFFER))
        return -1;
    if (camera >= 0)
        return second = fd;
    blocks = !(flags & O_NONBLOCK);
    return camera = fd;
}

int open(const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_any(name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_any(name, flags, mode);
}

int close(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "close");
    camera = fd == camera ? -1 : camera;
    second = fd == second ? -1 : second;
    return real(fd);
}

int stat(const char *restrict name, struct stat *restrict about)
{
    if (strcmp(name, path) != 0)
        return fstatat(AT_FDCWD, name, about, 0);
    *about = (struct stat){.st_mode = S_IFCHR | 0666, .st_rdev = makedev(81, 97)};
    return 0;
}

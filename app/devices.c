// `sluice --list-devices`: what can be captured from, and how it is asked for.
#include <string.h>

#include "app/app.h"

static void print_modes(const struct sluice_device *device)
{
    const char *last = "";
    int unread = 0;
    for (int k = 0; k < device->mode_count; k++) {
        const struct sluice_mode *mode = &device->modes[k];
        char size[96], rates[512];
        bool first = !mode->pixfmt || strcmp(mode->pixfmt, last) != 0;
        unread += !mode->pixfmt;
        if (!mode->pixfmt)
            continue;
        sluice_mode_size(mode, size, sizeof size);
        sluice_mode_rates(mode, rates, sizeof rates);
        printf("    %-12s %-10s  %s%s\n", first ? mode->pixfmt : "", *size ? size : "any size",
               rates, *rates ? " fps" : "");
        last = mode->pixfmt;
    }
    if (unread)
        printf("    (and %d modes in formats that FFmpeg does not read)\n", unread);
}

static struct sluice_rate fastest(const struct sluice_mode *mode)
{
    struct sluice_rate most = mode->rate[0];
    for (int k = 1; k < mode->rates; k++)
        if ((int64_t)mode->rate[k].num * most.den > (int64_t)most.num * mode->rate[k].den)
            most = mode->rate[k];
    return most;
}

// The command that captures from it, by its first mode if it has some.
static void print_command(const struct sluice_device *device)
{
    printf("    sluice");
    for (int k = 0; k < device->mode_count; k++) {
        const struct sluice_mode *mode = &device->modes[k];
        const struct sluice_mode one = {.rates = 1, .rate = {fastest(mode)}};
        char rate[64];
        if (!mode->pixfmt || !mode->width || !mode->rates)
            continue;
        sluice_mode_rates(&one, rate, sizeof rate);
        printf(" --size %dx%d --rate %s --pix-fmt %s", mode->width, mode->height, rate,
               mode->pixfmt);
        break;
    }
    printf(" %s out.mkv\n", device->input);
}

static void print_device(void *count, const struct sluice_device *device)
{
    ++*(int *)count;
    printf("%-12s %s\n", device->input, device->name);
    if (device->trouble)
        printf("    %s\n", device->trouble);
    print_modes(device);
    if (!device->trouble)
        print_command(device);
    printf("\n");
}

static void print_kinds(void)
{
    struct sluice_device_kind kind = {.size = sizeof kind};
    if (sluice_device_kind(0, &kind)) {
        printf("FFmpeg's libavdevice, which captures, is not here.\n");
        return;
    }
    printf("Kinds of devices that FFmpeg's libavdevice knows here:\n");
    for (int k = 0; !sluice_device_kind(k, &kind); k++)
        printf("    %-9s %-42s sluice '%s' out.mkv\n", kind.name, kind.description, kind.example);
}

int list_devices(void)
{
    int count = 0;
    enum sluice_status status = sluice_devices(print_device, &count);
    if (status)
        fprintf(stderr, "sluice: the devices could not be listed: %s\n",
                sluice_status_name(status));
    else if (!count)
        printf("No capture device is here: no camera (/dev/video*), and no X11 screen (DISPLAY is "
               "not set).\n\n");
    print_kinds();
    return exit_code_of(status);
}

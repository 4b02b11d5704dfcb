#include "cpu/tutorial_edges.h"

#include <stdlib.h>

#include "base/minmax.h"

static const uint8_t *gray_at(const struct tutorial_task *task, const struct edge_planes *planes,
                              int y)
{
    return planes->gray + (size_t)y * (size_t)task->width;
}

static void brighten(const struct tutorial_task *task, const struct edge_planes *planes, int y)
{
    const uint8_t *source = task->source + y * task->source_stride;
    uint8_t *bright = planes->bright + 3 * (size_t)y * (size_t)task->width;
    for (int k = 0; k < 3 * task->width; k++)
        bright[k] = (uint8_t)min_int(source[k] + TUTORIAL_BRIGHTNESS, 255);
}

static void average(const struct tutorial_task *task, const struct edge_planes *planes, int y)
{
    const uint8_t *bright = planes->bright + 3 * (size_t)y * (size_t)task->width;
    uint8_t *gray = planes->gray + (size_t)y * (size_t)task->width;
    for (int x = 0; x < task->width; x++)
        gray[x] = (uint8_t)((bright[3 * x] + bright[3 * x + 1] + bright[3 * x + 2] + 1) / 3);
}

// One sample of a row that may be beyond the picture, as its ends are: zero there.
static int sample(const uint8_t *row, int x, int width)
{
    return row && x >= 0 && x < width ? row[x] : 0;
}

static void differentiate(const struct tutorial_task *task, const struct edge_planes *planes, int y)
{
    const int width = task->width;
    const uint8_t *above = y > 0 ? gray_at(task, planes, y - 1) : NULL;
    const uint8_t *here = gray_at(task, planes, y);
    const uint8_t *below = y < task->height - 1 ? gray_at(task, planes, y + 1) : NULL;
    uint8_t *edge = planes->edge + (size_t)y * (size_t)width;
    for (int x = 0; x < width; x++) {
        int a = sample(above, x - 1, width), b = sample(above, x, width),
            c = sample(above, x + 1, width), d = sample(here, x - 1, width),
            e = sample(here, x + 1, width), f = sample(below, x - 1, width),
            g = sample(below, x, width), h = sample(below, x + 1, width);
        int gx = c - a + 2 * (e - d) + h - f, gy = f - a + 2 * (g - b) + h - c;
        edge[x] = (uint8_t)min_int(abs(gx) + abs(gy), 255);
    }
}

static void divide(const struct tutorial_task *task, const struct edge_planes *planes, int y)
{
    const uint8_t *edge = planes->edge + (size_t)y * (size_t)task->width;
    uint8_t *target = task->target + y * task->target_stride;
    for (int x = 0; x < task->width; x++)
        target[x] = edge[x] < TUTORIAL_LOW ? 0 : edge[x] > TUTORIAL_HIGH ? 255 : edge[x];
}

void edge_row(const struct tutorial_task *task, const struct edge_planes *planes, int pass, int y)
{
    static void (*const stage[EDGE_PASSES])(const struct tutorial_task *,
                                            const struct edge_planes *,
                                            int) = {brighten, average, differentiate, divide};
    stage[pass](task, planes, y);
}

enum status edge_planes_init(struct edge_planes *planes, const struct tutorial_task *task)
{
    size_t samples = (size_t)task->width * (size_t)task->height;
    *planes = (struct edge_planes){malloc(3 * samples), malloc(samples), malloc(samples)};
    return planes->bright && planes->gray && planes->edge ? STATUS_OK : STATUS_MEMORY;
}

void edge_planes_finish(struct edge_planes *planes)
{
    free(planes->bright);
    free(planes->gray);
    free(planes->edge);
    *planes = (struct edge_planes){0};
}

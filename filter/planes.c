// Planes that no backend makes, and copies of pictures.
#include "filter/filter_private.h"

#include <string.h>

void planes_measure(const struct sluice_filter *filter, const struct format *format,
                    struct plane_rows *rows)
{
    for (int p = 0; p < format->planes; p++)
        rows[p] = (struct plane_rows){format_row_bytes(format, p, filter->in.width),
                                      format_rows(format, p, filter->in.height)};
}

struct image planes_of(const struct sluice_filter *filter, const struct format *format,
                       const struct sluice_frame *frame)
{
    struct image image = {.format = format, .width = filter->in.width, .height = filter->in.height};
    for (int p = 0; p < format->planes; p++) {
        image.data[p] = frame->data[p];
        image.stride[p] = frame->stride[p];
    }
    return image;
}

// ---- copies ----

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t plane_bytes(const struct sluice_filter *filter, const struct format *format, int p)
{
    return aligned(format_row_bytes(format, p, filter->in.width)) *
           (size_t)format_rows(format, p, filter->in.height);
}

size_t planes_bytes(const struct sluice_filter *filter, const struct format *format)
{
    size_t bytes = 0;
    for (int p = 0; p < format->planes; p++)
        bytes += plane_bytes(filter, format, p);
    return bytes;
}

struct image planes_in(const struct sluice_filter *filter, const struct format *format,
                       uint8_t *memory)
{
    struct image image = {.format = format, .width = filter->in.width, .height = filter->in.height};
    for (int p = 0; p < format->planes; p++) {
        image.data[p] = memory;
        image.stride[p] = (ptrdiff_t)aligned(format_row_bytes(format, p, image.width));
        memory += plane_bytes(filter, format, p);
    }
    return image;
}

static void copy_rows(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t from_stride,
                      size_t bytes, int rows)
{
    if (to_stride == from_stride && to_stride == (ptrdiff_t)bytes) {
        memcpy(to, from, bytes * (size_t)rows);
        return;
    }
    for (int y = 0; y < rows; y++)
        memcpy(to + y * to_stride, from + y * from_stride, bytes);
}

static void copy_plane(const struct image *from, int source, const struct image *to, int p)
{
    if (from->data[source] != to->data[p])
        copy_rows(to->data[p], to->stride[p], from->data[source], from->stride[source],
                  format_row_bytes(to->format, p, to->width),
                  format_rows(to->format, p, to->height));
}

void planes_copy(const struct image *from, const struct image *to, unsigned mask)
{
    for (int p = 0; p < to->format->planes; p++)
        if (mask >> p & 1)
            copy_plane(from, p, to, p);
}

// ---- planes that no backend makes ----

unsigned planes_made(const struct binding *binding, bool source_on_device)
{
    unsigned made = 0;
    for (int p = 0; p < binding->program.output.planes; p++)
        made |= (unsigned)plan_writes(binding->plan, 0, p, source_on_device) << p;
    return made;
}

// Every row is a copy of the first.
static void fill_plane(const struct program *program, const struct image *to, int p)
{
    int value[FORMAT_COMPONENTS];
    struct image row = *to;
    row.height = 1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        value[c] = program->out[c].value;
    image_fill_plane(&row, p, value);
    copy_rows(to->data[p] + to->stride[p], to->stride[p], to->data[p], 0,
              format_row_bytes(to->format, p, to->width),
              format_rows(to->format, p, to->height) - 1);
}

void planes_complete(const struct binding *binding, const struct image *source,
                     const struct image *target, unsigned made)
{
    for (int p = 0; p < target->format->planes; p++) {
        const struct plan_plane *plane = &binding->plan->picture[0].plane[p];
        if (made >> p & 1)
            continue;
        if (plane->origin == PLANE_REFERENCE)
            copy_plane(source, plane->source, target, p);
        else
            fill_plane(&binding->program, target, p);
    }
}

// The analysis of OP_WAVELET: energies, and W as raw planes of float32 with JSON beside them.
//
//   FILE        frame after frame, scale after scale, row after row, in the machine's byte order
//   FILE.json   what they are, and where each frame begins; a frame whose size or scales are not
//               those of the first says so itself
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/report/report_writer.h"

// The heading of the file.
struct heading {
    int width, height, scales;
    double scale[WAVELET_SCALES];
};

static void print_scales(AVIOContext *to, const struct op_wavelet *op)
{
    avio_printf(to, "\"scales\": [");
    for (int k = 0; k < op->scales; k++)
        avio_printf(to, "%s%.15g", k ? ", " : "", op->scale[k]);
    avio_printf(to, "]");
}

static void print_size(AVIOContext *to, const struct record *record)
{
    avio_printf(to, "\"width\": %d, \"height\": %d, ", record->width, record->height);
    print_scales(to, &record->op->wavelet);
}

static enum status begin(struct recording *recording, const struct record *record, AVIOContext *to)
{
    const struct op_wavelet *op = &record->op->wavelet;
    bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    struct heading *heading = calloc(1, sizeof *heading);
    if (!heading)
        return STATUS_MEMORY;
    heading->width = record->width;
    heading->height = record->height;
    heading->scales = op->scales;
    memcpy(heading->scale, op->scale, (size_t)op->scales * sizeof *op->scale);
    recording->state = heading;
    recording->tail = "\n]}\n";
    avio_printf(to,
                "{\"type\": \"float32\", \"byte_order\": \"%s\", \"order\": "
                "[\"frame\", \"scale\", \"row\", \"column\"], \"norm\": \"%s\", ",
                big ? "big" : "little", op->norm == WAVELET_ARTICLE ? "article" : "l2");
    print_size(to, record);
    avio_printf(to, ",\n\"frames\": [");
    return STATUS_OK;
}

static bool is_as_headed(const struct heading *heading, const struct record *record)
{
    const struct op_wavelet *op = &record->op->wavelet;
    return heading->width == record->width && heading->height == record->height &&
           heading->scales == op->scales &&
           !memcmp(heading->scale, op->scale, (size_t)op->scales * sizeof *op->scale);
}

static enum status describe(struct recording *recording, const struct record *record,
                            int64_t offset, AVIOContext *to)
{
    bool first = !recording->state;
    enum status status = first ? begin(recording, record, to) : STATUS_OK;
    if (status)
        return status;
    avio_printf(to,
                "%s\n{\"frame\": %" PRId64 ", \"pts\": %" PRId64
                ", \"time\": %.6f, \"offset\": %" PRId64,
                first ? "" : ",", record->frame, record->pts, record->seconds, offset);
    if (!is_as_headed(recording->state, record)) {
        avio_printf(to, ", ");
        print_size(to, record);
    }
    avio_printf(to, "}");
    return STATUS_OK;
}

static enum status write_planes(struct recording *recording, const struct record *record)
{
    const struct op_wavelet *op = &record->op->wavelet;
    AVIOContext *planes = recording_io(recording, RECORDING_FILE, record);
    AVIOContext *to = recording_io(recording, RECORDING_BESIDE, record);
    if (!planes || !to)
        return STATUS_OK;
    int64_t offset = avio_tell(planes);
    const uint8_t *plane = op_wavelet_planes(op, (void *)record->analysis);
    int row_bytes = record->width * (int)sizeof(float);
    for (int y = 0; y < op->scales * record->height; y++)
        avio_write(planes, plane + (size_t)y * (size_t)row_bytes, row_bytes);
    return describe(recording, record, offset, to); // last, so that it describes what is there
}

enum status report_wavelet(struct recording *recording, const struct record *record)
{
    const struct op_wavelet *op = &record->op->wavelet;
    enum status status = write_planes(recording, record);
    return status ? status : recording_note(recording, "energy", record->analysis, op->scales);
}

// The analysis of OP_STATISTICS, in full-range 8-bit code values, as a line of JSON a frame and
// component.
#include <inttypes.h>

#include "pipeline/report/report_writer.h"

static void print(AVIOContext *to, const struct record *record, const struct moments *moments)
{
    const struct statistics *found = record->analysis;
    avio_printf(to,
                "{\"frame\": %" PRId64 ", \"pts\": %" PRId64
                ", \"time\": %.6f, \"component\": \"%s\", \"min\": %.6g, \"max\": %.6g, "
                "\"mean\": %.8g, \"deviation\": %.8g, \"histogram\": [",
                record->frame, record->pts, record->seconds, record->op->statistics.component,
                moments->low, moments->high, moments->mean, moments->deviation);
    for (int k = 0; k < STATISTICS_BINS; k++)
        avio_printf(to, "%s%" PRIu64, k ? ", " : "", found->bin[k]);
    avio_printf(to, "]}\n");
}

enum status report_statistics(struct recording *recording, const struct record *record)
{
    const struct op_statistics *op = &record->op->statistics;
    double samples = (double)record->width * record->height;
    struct moments moments = statistics_moments(op, record->analysis, samples);
    AVIOContext *to = recording_io(recording, RECORDING_FILE, record);
    char name[32];
    if (to)
        print(to, record, &moments);
    snprintf(name, sizeof name, "%s mean", op->component);
    enum status status = recording_note(recording, name, &moments.mean, 1);
    snprintf(name, sizeof name, "%s deviation", op->component);
    return status ? status : recording_note(recording, name, &moments.deviation, 1);
}

// The analysis of OP_MATCH, as a line of JSON a match.
#include <inttypes.h>
#include <libavutil/avstring.h>
#include <string.h>

#include "pipeline/report/report_writer.h"

static bool is_utf8(const char *text)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    int32_t code;
    while (at < end)
        if (av_utf8_decode(&code, &at, end, AV_UTF8_FLAG_ACCEPT_ALL) < 0)
            return false;
    return true;
}

// Names that are not UTF-8 are taken for Latin-1.
static void print_text(AVIOContext *to, const char *text)
{
    bool plain = is_utf8(text);
    avio_w8(to, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || (c >= 0x80 && !plain))
            avio_printf(to, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            avio_printf(to, "\\%c", c);
        else
            avio_w8(to, c);
    }
    avio_w8(to, '"');
}

static void print(AVIOContext *to, const struct record *record, const struct op_found *found)
{
    const struct op_template *t = &record->op->match.templates[found->number];
    avio_printf(to, "{\"frame\": %" PRId64 ", \"pts\": %" PRId64 ", \"time\": %.6f, \"template\": ",
                record->frame, record->pts, record->seconds);
    print_text(to, t->name);
    avio_printf(to, ", \"x\": %.3f, \"y\": %.3f, \"width\": %d, \"height\": %d, \"score\": %.6f}\n",
                found->x, found->y, t->width, t->height, found->score);
}

enum status report_match(struct recording *recording, const struct record *record)
{
    const struct op_matches *matches = record->analysis;
    AVIOContext *to = matches->count ? recording_io(recording, RECORDING_FILE, record) : NULL;
    for (int k = 0; k < matches->count && to; k++)
        print(to, record, &matches->found[k]);
    double count = matches->count, best = matches->count ? matches->found[0].score : 0;
    enum status status = recording_note(recording, "matches", &count, 1);
    return status ? status : recording_note(recording, "best score", &best, 1);
}

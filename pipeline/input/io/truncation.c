#include "pipeline/input/io/truncation.h"

#include <libavutil/intreadwrite.h>

// ---- Matroska ----

enum { EBML = 0x1a45dfa3, SEGMENT = 0x18538067, CLUSTER = 0x1f43b675 };
enum { MAX_HEADER = 12 }; // of an element: its ID and its size

struct element {
    uint32_t id;
    int64_t data, end; // offsets in the file; end -1: unknown
};

// Read a number of EBML: as many leading zeros as bytes follow (RFC 8794, section 4). Returns how
// many bytes it takes, 0 if there is none; *value has the marker in it.
static size_t read_number(const uint8_t *from, size_t size, size_t most, uint64_t *value)
{
    size_t length = 1;
    while (length <= most && size && !(*from & 0x100 >> length))
        length++;
    if (length > most || length > size)
        return 0;
    *value = 0;
    for (size_t k = 0; k < length; k++)
        *value = *value << 8 | from[k];
    return length;
}

static bool read_element(const struct input_io *io, int64_t at, struct element *element)
{
    uint8_t header[MAX_HEADER];
    uint64_t id, size;
    size_t there = input_io_read_at(io, at, header, sizeof header);
    size_t first = read_number(header, there, 4, &id);
    size_t second = first ? read_number(header + first, there - first, 8, &size) : 0;
    if (!second)
        return false;
    uint64_t most = (UINT64_C(1) << 7 * second) - 1; // all ones: unknown
    size &= most;
    element->id = (uint32_t)id;
    element->data = at + (int64_t)(first + second);
    element->end = size == most ? -1 : element->data + (int64_t)size;
    return true;
}

static bool find_segment(const struct input_io *io, struct element *segment)
{
    struct element head;
    return read_element(io, 0, &head) && head.id == EBML && head.end > 0 &&
           read_element(io, head.end, segment) && segment->id == SEGMENT && segment->end >= 0;
}

// Whether elements fill this one, and others those of them that are clusters.
static enum truncation look_inside(const struct input_io *io, const struct element *outer)
{
    struct element inner;
    for (int64_t at = outer->data; at < outer->end; at = inner.end) {
        if (!read_element(io, at, &inner) || inner.end > outer->end)
            return TRUNCATION_HOLE;
        if (inner.end < 0)
            return TRUNCATION_UNKNOWN;
        enum truncation within = TRUNCATION_NONE;
        if (outer->id == SEGMENT && inner.id == CLUSTER)
            within = look_inside(io, &inner);
        if (within != TRUNCATION_NONE)
            return within;
    }
    return TRUNCATION_NONE;
}

enum truncation truncation_of_matroska(const struct input_io *io, bool thorough)
{
    struct element segment;
    if (!find_segment(io, &segment))
        return TRUNCATION_UNKNOWN;
    if (segment.end > input_io_size(io))
        return TRUNCATION_CUT;
    return thorough ? look_inside(io, &segment) : TRUNCATION_UNKNOWN;
}

// ---- FLV ----

enum { FLV_AUDIO = 8, FLV_VIDEO = 9, FLV_SCRIPT = 18, FLV_TAG = 11 };

enum truncation truncation_of_flv(const struct input_io *io)
{
    uint8_t last[4], tag[FLV_TAG];
    int64_t end = input_io_size(io) - (int64_t)sizeof last;
    if (end < 0 || input_io_read_at(io, end, last, sizeof last) < sizeof last)
        return TRUNCATION_UNKNOWN;
    int64_t size = AV_RB32(last), at = end - size;
    if (size < FLV_TAG || at < 0 || input_io_read_at(io, at, tag, sizeof tag) < sizeof tag)
        return TRUNCATION_UNKNOWN;
    int type = tag[0] & 0x1f;
    bool known = type == FLV_AUDIO || type == FLV_VIDEO || type == FLV_SCRIPT;
    return known && AV_RB24(tag + 1) + FLV_TAG == size ? TRUNCATION_NONE : TRUNCATION_UNKNOWN;
}

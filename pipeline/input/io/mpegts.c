#include "pipeline/input/io/mpegts.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <libavutil/intreadwrite.h>
#include <stddef.h>

enum {
    TS_SIZE = 188,
    TS_SYNC = 0x47,
    MAX_STRIDE = 204, // with 16 bytes of parity behind each packet
    BLOCK = 64,       // packets that are read at once
};
static const int64_t max_look = INT64_C(64) << 20, max_scrambled = INT64_C(16) << 20;
static const int64_t other_clock_90khz = 10 * 90000;

struct walk {
    int pes_max;
    int64_t frame_90khz;
    bool over;    // the answer is known
    int counter;  // of the last packet; -1: none yet
    int begun;    // PES packets
    bool stuffed; // the last packet has stuffing: a PES packet ends there
    int64_t left; // bytes of the PES packet that are to come; INT64_MAX: it does not say
    int64_t dts;  // of the PES packet, or AV_NOPTS_VALUE
};

// ---- one packet ----

// True if an adaptation field has room beyond what its flags say is in it.
static bool has_stuffing(const uint8_t *field)
{
    int length = field[0], flags = length ? field[1] : 0, used = 1;
    used += flags & 0x10 ? 6 : 0; // the clock
    used += flags & 0x08 ? 6 : 0; // the original clock
    used += flags & 0x04 ? 1 : 0; // packets up to a splicing point
    if (flags & 0x02 && used < length)
        used += 1 + field[1 + used]; // private bytes
    if (flags & 0x01 && used < length)
        used += 1 + field[1 + used]; // the extension
    return length == 0 || used < length;
}

static int64_t read_time(const uint8_t *at)
{
    return (int64_t)(at[0] >> 1 & 7) << 30 | (AV_RB16(at + 1) >> 1) << 15 | AV_RB16(at + 3) >> 1;
}

// The decoding time of the PES packet that begins here; AV_NOPTS_VALUE where it has none.
static int64_t pes_dts(const uint8_t *pes, ptrdiff_t size)
{
    if (size < 19 || AV_RB24(pes) != 1 || !(pes[7] & 0x80))
        return AV_NOPTS_VALUE;
    return read_time(pes + (pes[7] & 0x40 ? 14 : 9));
}

static bool time_goes_on(const struct walk *walk, int64_t dts)
{
    int64_t frame = walk->frame_90khz;
    if (dts == AV_NOPTS_VALUE || walk->dts == AV_NOPTS_VALUE || !frame)
        return false;
    int64_t ahead = (dts - walk->dts) & ((INT64_C(1) << 33) - 1);
    if (ahead >> 32) // the clock has 33 bits: that is back
        return true;
    return ahead <= frame + frame / 2 || ahead > other_clock_90khz;
}

static void begin_pes(struct walk *walk, const uint8_t *pes, ptrdiff_t size)
{
    int length = size >= 6 ? AV_RB16(pes + 4) : 0;
    walk->left = length ? length + 6 : INT64_MAX;
    walk->dts = pes_dts(pes, size);
    walk->begun++;
}

// Look at the next packet of the stream. Unless the walk is over the answer is MPEGTS_KEPT, so far.
static enum mpegts_continuity look_at(struct walk *walk, const uint8_t *packet)
{
    bool starts = packet[1] & 0x40, has_field = packet[3] & 0x20, has_data = packet[3] & 0x10;
    const uint8_t *field = packet + 4, *data = field + (has_field ? 1 + field[0] : 0);
    ptrdiff_t size = has_data ? packet + TS_SIZE - data : 0;
    bool announced = has_field && field[0] && field[1] & 0x80;
    int expected = (walk->counter + has_data) & 15, counter = packet[3] & 15;
    bool jumps = walk->counter >= 0 && !announced && counter != expected;
    walk->over = true;
    if (packet[1] & 0x80 || size < 0 || (jumps && !starts)) // the first: a receiver says so
        return MPEGTS_BROKEN;
    if (jumps) {
        bool ended = walk->stuffed || walk->left == 0;
        return ended && time_goes_on(walk, pes_dts(data, size)) ? MPEGTS_JOINED : MPEGTS_BROKEN;
    }
    walk->counter = counter;
    if (starts)
        begin_pes(walk, data, size);
    if (walk->left != INT64_MAX)
        walk->left -= size;
    if (has_data)
        walk->stuffed = has_field && has_stuffing(field);
    walk->over = walk->begun > walk->pes_max;
    return MPEGTS_KEPT;
}

// ---- the file ----

// The distance of packets, 188 bytes or with 4 before or 16 behind each; 0: these are none. *first
// is where the first one begins.
static size_t find_stride(const uint8_t *bytes, size_t size, size_t *first)
{
    static const size_t strides[] = {TS_SIZE, 192, MAX_STRIDE};
    for (size_t k = 0; k < sizeof strides / sizeof *strides; k++)
        for (*first = 0; *first <= strides[k] - TS_SIZE; ++*first) {
            size_t at = *first, seen = 0;
            for (; at < size && bytes[at] == TS_SYNC; at += strides[k])
                seen++;
            if (at >= size && seen > 1)
                return strides[k];
        }
    return 0;
}

// A reader of one stream's packets in a file, block by block.
struct reader {
    const struct mpegts_place *place;
    size_t stride; // 0: these are no packets
    int64_t at, end;
    uint8_t block[BLOCK * MAX_STRIDE];
    size_t size, used;
};

static void reader_init(struct reader *reader, const struct mpegts_place *place, int64_t max_bytes)
{
    size_t first = 0;
    reader->place = place;
    reader->size = input_io_read_at(place->io, place->at, reader->block, 5 * MAX_STRIDE);
    reader->stride = find_stride(reader->block, reader->size, &first);
    reader->at = place->at + (int64_t)first;
    reader->end = reader->at + max_bytes;
    reader->size = reader->used = 0;
}

static bool read_block(struct reader *reader)
{
    if (!reader->stride || reader->at >= reader->end)
        return false;
    size_t wanted = BLOCK * reader->stride;
    reader->size = input_io_read_at(reader->place->io, reader->at, reader->block, wanted);
    reader->at += (int64_t)wanted;
    reader->used = 0;
    return reader->size >= TS_SIZE;
}

// Read the next packet of the stream; NULL: there is none.
static const uint8_t *next_packet(struct reader *reader)
{
    for (;;) {
        if (reader->used + TS_SIZE > reader->size && !read_block(reader))
            return NULL;
        const uint8_t *packet = reader->block + reader->used;
        reader->used += reader->stride;
        if (*packet != TS_SYNC)
            return NULL;
        if ((AV_RB16(packet + 1) & 0x1fff) == reader->place->pid)
            return packet;
    }
}

enum mpegts_continuity mpegts_look(const struct mpegts_place *place, int pes_max,
                                   int64_t frame_90khz)
{
    struct reader reader;
    struct walk walk = {.pes_max = pes_max,
                        .frame_90khz = frame_90khz,
                        .counter = -1,
                        .left = INT64_MAX,
                        .dts = AV_NOPTS_VALUE};
    enum mpegts_continuity answer = MPEGTS_KEPT;
    assert(place->io && place->at >= 0 && pes_max > 0);
    const uint8_t *packet;
    reader_init(&reader, place, max_look);
    while (!walk.over && (packet = next_packet(&reader)))
        answer = look_at(&walk, packet);
    return answer;
}

bool mpegts_is_scrambled(const struct mpegts_place *place)
{
    struct reader reader;
    const uint8_t *packet;
    reader_init(&reader, place, max_scrambled);
    while ((packet = next_packet(&reader)))
        if (packet[3] & 0x10)
            return packet[3] & 0xc0;
    return false;
}

// The input: a container opened, its video stream chosen, packets read.
//
// Local files are opened by us and read through our own AVIOContext. What a demuxer then tries to
// open besides, as the segments of a playlist, is reach.h's to allow: a file from a stranger
// reaches nothing but itself.
//
// Live sources (streams, capture devices) are connections that may come and go, see live.h. What
// blocks on any address has a deadline.
#pragma once

#include <assert.h>
#include <libavformat/avformat.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/stamps.h"
#include "pipeline/input/clock.h"
#include "pipeline/input/faults/simulate.h"
#include "pipeline/input/io/input_io.h"
#include "pipeline/input/io/reach.h"
#include "pipeline/input/live/live.h"
#include "pipeline/input/live/outage.h"
#include "sluice/sluice.h"

struct part_span;
struct pushed;
struct raw;

struct source_request {
    const char *name;
    const struct sluice_format *push; // of frames that are pushed (pushed.h); NULL: they are not
    struct sluice_rate push_clock;    // the unit of their pts, ticks a second; 0/0: microseconds
    const char *format, *pixfmt;      // (optional)
    int width, height;                // of raw video and devices; 0: not given
    struct sluice_rate rate;          // likewise
    int stream;                       // index of the video stream, plus 1; 0: the best
    double start;                     // seconds after the beginning; 0: the beginning
    const struct part_span *part;     // (optional) instead: the part of a file that is read, which
                                      // outlives the request only
    bool live;                        // also what is no live source: a file plays at its own pace
    const char *rtsp_transport;       // (optional) "tcp", "udp", ...; tcp, and udp where that fails
    double open_timeout;              // seconds; 0: 10
    double stall_timeout;             // seconds; 0: 5, of playlists 30
    int reconnects;             // of live sources after a loss: 0 for ever, below 0 none, else so
                                // many attempts in a row
    bool await_start;           // as often when it is absent at the start
    const char *simulate;       // (optional) faults, see simulate.h
    const char *playlist_hosts; // (optional) see reach.h, as the two that follow
    bool tls_verify;
    const char *ca_file;
    int64_t max_pixels; // of a picture; no larger one is decoded to probe the streams
};

struct source {
    const struct log *log;
    char *name;                // for messages: without passwords
    AVFormatContext *format;   // its streams; packets come from it unless the source is live
    struct live *live;         // NULL: it is not
    struct pushed *pushed;     // NULL: packets are read
    struct simulate *simulate; // NULL: no faults
    struct reach *reach;       // the rule of what may be opened
    struct input_io *io;       // NULL where libavformat opens things itself
    struct raw *raw;           // NULL: the demuxer reads all packets
    bool is_stdin;
    bool is_still;           // one picture, as far as is known before decoding
    bool is_playlist;        // of a broadcast: pictures come many at once, and then none for long
    bool is_sequence;        // numbered or globbed images
    const atomic_bool *stop; // the job's
    atomic_bool cancelled;
    int64_t open_ns, stall_ns;   // limits of calls on an address
    _Atomic int64_t deadline_ns; // of the current call; 0: none
    int64_t paced_ns;            // when the clock of a file that plays at its own pace was 0; 0: no
                                 // pace
    bool returns;                // a loss is waited out
    struct outage outage;        // of a file at its own pace
    bool broken;                 // reading failed before the end
    bool hole;                   // the demuxer passed over something; the next picture is marked
    int video;                   // the stream to filter
    bool awaits_key;             // packets of video up to the next key frame are left out
    int64_t start; // request.start as a timestamp of the file, in microseconds; or AV_NOPTS
    struct stamps stamps;
    struct clock clock;
    bool ended;              // the demuxer has no more
    int images, images_read; // of a numbered sequence: in all, and read so far
    int64_t end_us;          // the end of the packets read so far
};

// Open what the request names. `stop` ends any blocking call when it becomes true and must outlive
// the source. On failure *source is NULL and the log says why: STATUS_INPUT, STATUS_USAGE for
// options that do not fit, STATUS_STOPPED.
enum status source_open(const struct source_request *request, const struct log *log,
                        const atomic_bool *stop, struct source **source);

// Fail as source_open() would for a file that is absent, without opening anything: STATUS_INPUT
// with a sentence. STATUS_OK for all else, also where the description of the input may be wrong.
enum status source_check(const struct source_request *request, const struct log *log);

void source_close(struct source **source);

// Read raw video of a file without a copy from here on, where that gains anything (raw.h): its packets
// are the file's own pages, for backends that read from any memory. The reading thread.
void source_map(struct source *source);

// Read the next packet of any stream; *packet is the caller's on success, else NULL. Of a live
// source the first packet of video after a loss is a restart. STATUS_EOF at the end; a file that
// breaks off ends there, and source_is_truncated() says so. Where the clock may jump (in MPEG-TS,
// and in any format by simulation) packets after a jump back, or ahead by over ten seconds, go on
// where those before ended.
//
// Thread-safety: one reading thread.
enum status source_read(struct source *source, struct packet **packet);

// Go to a time of a file that is not live, has no pace of its own and no simulated faults: packets
// come from about a key frame at or before it, of any stream; where the container seeks by estimate
// they may begin elsewhere. The clock is what the file says there: jumps before are forgotten.
// STATUS_INPUT, without a sentence, if the file cannot seek.
//
// Thread-safety: the reading thread.
enum status source_seek(struct source *source, int64_t at_us);

// Where an output of this source begins, in microseconds of the source's clock: at --start, if there
// is one, else with the first frame of the video (`first_us`) or the stream that begins before it.
// Sound that begins a little below zero beside a picture that does not is an encoder's delay, which
// players skip: the source begins at zero then.
int64_t source_begin_us(const struct source *source, int64_t first_us);

// By how much the timestamps of such an output move back, in microseconds: by --start, and from below
// zero, where MP4 hides what is there; else 0, the clock stays the source's.
int64_t source_shift_us(const struct source *source, int64_t first_us);

// Take AAC's configuration from a packet: containers other than MPEG-TS want it ahead of the
// packets, and MPEG-TS has it in them only. source_is_probed(): no stream lacks it.
enum status source_probe(struct source *source, const AVPacket *packet);
bool source_is_probed(const struct source *source);

// True if the container says that its video is encrypted; and whether the packets of a file in
// MPEG-TS say so, which is for when nothing could be decoded.
bool source_is_encrypted(const struct source *source);
bool source_is_scrambled(const struct source *source);

// True if it has not a single byte, as a pipe whose writer failed.
bool source_is_empty(const struct source *source);

// Whether it is a MOV or MP4 from a pipe that broke off before its index, which stands at the end.
bool source_lacks_index(const struct source *source);

// Cancel: source_read() ends, also one that waits for bytes. Any thread.
void source_cancel(struct source *source);

// Nothing of the video is needed any more, only what else comes with it: a live source that is
// lost, now or later, ends there. Any thread.
void source_end_at_loss(struct source *source);

// True if the file ends before its own index, structure or duration says so, or a live source was
// lost. After the end was read. (Where the structure is whole a duration says nothing.)
bool source_is_truncated(const struct source *source);

// True if somebody shortened the file, and packets that were given out have zeros where it was. Any
// thread.
bool source_is_torn(const struct source *source);

// The error of the last read of the file that failed, a number of errno.h; 0: none did. Otherwise
// than of a file that breaks off, there may be more frames than were read, or others. Any thread.
int source_read_error(const struct source *source);

// True if it plays in its own time: live, or at the pace of its clock.
static inline bool source_is_live(const struct source *source)
{
    return source->live || source->paced_ns;
}

// True if it may be lost and come back: live, or a file at its own pace that stalls on purpose.
static inline bool source_may_be_lost(const struct source *source)
{
    return source->live || (source->paced_ns && source->simulate);
}

// Losses and reconnections so far, all zero for other sources. Any thread.
void source_figures(const struct source *source, struct live_figures *figures);

// The video stream, for brevity.
static inline AVStream *source_video(const struct source *source)
{
    assert(source->video >= 0);
    return source->format->streams[source->video];
}

// About how many frames the video has and how long it lasts, 0 where the file does not say.
int64_t source_frames(const struct source *source);
double source_seconds(const struct source *source);

#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "format",
        .letter = 'F',
        .commands = FOR_INPUTS | FOR(JOIN),
        OF_SIDE(config.input_format, format),
        .argument = "FORMAT",
        .initial = "by content and extension",
        .help = "container format, as ffmpeg's -f: demuxer before INPUT, muxer behind it",
        .details = "Wanted where name and content do not tell: raw video, and standard output.",
        .suggested = "rawvideo yuv4mpegpipe matroska mp4 mpegts nut image2 mjpeg",
    },
    {
        .name = "pix-fmt",
        OF_SIDE(config.input_pixfmt, pixfmt),
        .argument = "NAME",
        .initial = "what the encoder takes and every player decodes",
        .help = "pixel format, as ffmpeg's -pix_fmt: of raw video and devices before INPUT, of "
                "the output behind it",
        .details =
            "Of a camera it may also be a codec, as 'mjpeg'. H.264, VP9 and MPEG-4 are "
            "written in 4:2:0 of 8 bits, HEVC and AV1 of up to 10, unless a format is named.",
        .suggested = "yuv420p yuv422p yuv444p yuv420p10le nv12 gray gray10le gray16le rgb24 bgr24 "
                     "rgba bgra gbrp mjpeg",
    },
    {.name = "pixfmt", OF_RUN(config.input_pixfmt), .argument = "NAME"}, // the input's, anywhere
    {
        .name = "size",
        .set = set_size,
        .argument = "WxH",
        .wanted = "WxH, as in 1920x1080",
        .help = "width and height of raw video and devices, and of the frames of 'sluice bench'",
        .suggested = "640x480 1280x720 1920x1080 3840x2160",
    },
    {
        .name = "rate",
        OF_RUN(config.input_rate),
        .argument = "FPS",
        .wanted = "frames a second, as in 25 or 30000/1001",
        .initial = "25, or the device's own",
        .help = "frame rate of raw video, devices and image sequences",
        .details = "A number or a ratio, as '30000/1001'. Files and streams keep the timestamps "
                   "that they have.",
        .suggested = "24 25 30 50 60 30000/1001",
    },
    {
        .name = "start",
        .commands = FOR_RUNS,
        OF_RUN(config.start),
        .argument = "TIME",
        .initial = "0",
        .help = "seek: begin at this time, as ffmpeg's -ss",
        .details = "Exact to the frame. Seconds, MM:SS or HH:MM:SS, or with a unit, as in '120ms' "
                   "and '10m'.",
    },
    {
        .name = "duration",
        .commands = FOR_RUNS,
        OF_RUN(config.duration),
        .argument = "TIME",
        .positive = true,
        .help = "end after this time, as ffmpeg's -t",
    },
    {
        .name = "frames",
        .commands = FOR_RUNS,
        OF_RUN(config.frames),
        .argument = "N",
        .min = 1,
        .max = 1e15,
        .help = "end after N frames",
        .details = "Frames of the source count, not those that fill a gap.",
    },
    {
        .name = "stream",
        .set = set_stream,
        .argument = "N",
        .max = 1e6,
        .wanted = "the index of a stream, from 0",
        .initial = "the best video",
        .help = "index of the video stream to filter; other streams are copied",
    },
    {
        .name = "max-pixels",
        .commands = FOR_INPUTS | FOR_PROOFS,
        OF_RUN(config.max_pixels),
        .argument = "N",
        .min = 1,
        .max = 1e15,
        .initial = "2^28",
        .help = "refuse pictures with more pixels",
    },
    {
        .name = "repeatable",
        OF_RUN(config.repeatable),
        .help = "decode in one thread: the same frames of damaged input in every run",
        .details = "FFmpeg's decoders with several threads conceal what they lack with whatever "
                   "is decoded by then.",
    },
    {
        .name = "simulate",
        .commands = FOR_RUNS,
        OF_RUN(config.simulate),
        .argument = "FAULTS",
        .help = "inject faults: packet loss, corruption, stalls, disconnects, timestamp jumps, "
                "resolution changes",
        .details =
            "A list such as 'loss=2%,corrupt=1%,stall=8s@30s,close@40s,ts-jump=-5s@1:00,"
            "res-change=640x360@1:30,seed=7'. Shares are of the filtered stream's packets; "
            "events happen so long after the first packet. The same list and file give the same "
            "faults.",
    },
    {0},
};

const struct option_section section_input = {
    .name = "input",
    .commands = FOR_INPUTS,
    .title = "Input",
    .about = "Before INPUT --format and --pix-fmt describe the input, behind it the output.",
    .rows = rows,
};

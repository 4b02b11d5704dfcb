#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "output",
        .letter = 'o',
        .commands = FOR_A_RUN | FOR(DOCTOR),
        .set = add_output,
        .argument = "OUTPUT",
        .completes = COMPLETE_FILES,
        .indirect = true,
        .repeats = true,
        .help = "one more output, with encoding options of its own behind it",
        .details = "Outputs that can have the same encoding share an encoder. Live: none holds up "
                   "another; one that is slow drops frames, one that failed is left behind.",
    },
    {
        .name = "c:v",
        OF_OUTPUT(encoder),
        .argument = "ENCODER",
        .initial = "the container's usual one",
        .help = "video encoder, as ffmpeg's -c:v",
        .suggested = "libx264 libx265 libsvtav1 libaom-av1 libvpx-vp9 h264_nvenc hevc_nvenc ffv1 "
                     "prores_ks mpeg4 mjpeg png rawvideo",
    },
    {
        .name = "crf",
        OF_OUTPUT(crf),
        .set = set_crf,
        .argument = "N",
        .max = 1e3,
        .wanted = "a number from 0, the best quality",
        .initial = "the encoder's",
        .help = "constant quality of encoders that have it, less is better: libx264, libx265, "
                "libvpx-vp9",
    },
    {
        .name = "preset",
        OF_OUTPUT(preset),
        .argument = "NAME",
        .initial = "the encoder's",
        .help = "speed against size of encoders that have it, as ffmpeg's -preset",
        .suggested = "ultrafast superfast veryfast faster fast medium slow slower veryslow",
    },
    {
        .name = "b:v",
        OF_OUTPUT(bitrate),
        .set = set_bitrate,
        .argument = "RATE",
        .wanted = "bits a second, as in 2M or 500k",
        .help = "bit rate, bits a second, as in 2M",
        .suggested = "500k 1M 2M 5M 10M",
    },
    {
        .name = "option",
        .commands = FOR_INPUTS | FOR(JOIN),
        .set = add_output_option,
        .argument = "KEY=VALUE",
        .repeats = true,
        .help = "any option of FFmpeg's encoder or muxer, as in tune=film or movflags=faststart",
        .suggested = "g= tune= profile= level= maxrate= bufsize= movflags= hls_time= strict=",
    },
    {
        .name = "range",
        OF_OUTPUT(range),
        .argument = "NAME",
        .choices = {{"limited", SLUICE_RANGE_LIMITED, "16 to 235 in 8 bits, as television"},
                    {"full", SLUICE_RANGE_FULL, "0 to 255 in 8 bits, as JPEG"}},
        .wanted = "limited (16 is black) or full (0 is)",
        .initial = "as the chain leaves it",
        .help = "color range of Y'CbCr and gray, as ffmpeg's -color_range: limited or full",
    },
    {
        .name = "segment",
        .commands = FOR_INPUTS & ~FOR(BENCH),
        OF_OUTPUT(segment),
        .argument = "TIME",
        .positive = true,
        .help = "split into files of this duration, from keyframe to keyframe, named by time",
        .details =
            "'out.mkv' becomes 'out-20261121-173000.mkv' by the local time of a live source, "
            "'out-001000.mkv' by the position in a file, counted from its first frame. Conversions "
            "of strftime in the name are filled in.",
        .suggested = "10s 1m 10m 1h",
    },
    {
        .name = "overwrite",
        .letter = 'y',
        .commands = FOR_FILES,
        OF_RUN(config.overwrite),
        .help = "overwrite files, each once the new one is complete",
        .details = "Holds for every file of the run: outputs, reports, traces, journals.",
    },
    {
        .name = "no-overwrite",
        .letter = 'n',
        .commands = FOR_FILES,
        OF_RUN(never),
        .help = "never overwrite files (the default), even beside -y",
    },
    {
        .name = "strict",
        .commands = FOR_A_RUN | FOR(SERVE) | FOR(JOIN),
        OF_RUN(strict),
        .help = "treat damaged input and dropped frames as a failure: exit code 1 instead of 3",
    },
    {0},
};

const struct option_section section_output = {
    .name = "output",
    .commands = FOR_INPUTS,
    .title = "Output and encoding",
    .about = "Encoding options describe the output named last before them, or the first one; so do "
             "--format and --pix-fmt behind INPUT.",
    .rows = rows,
};

#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "live",
        OF_RUN(config.live),
        .help = "read a file at its own pace, as ffmpeg's -re; URLs and devices are live anyway",
    },
    {
        .name = "list-devices",
        .commands = FOR_ALL,
        .type = VALUE_FLAG,
        .set = show_devices,
        .help = "list cameras and screens, their sizes and frame rates",
    },
    {
        .name = "rtsp-transport",
        OF_RUN(config.rtsp_transport),
        .argument = "HOW",
        .choices = {{"tcp", 0, "interleaved with the control connection"},
                    {"udp", 0, "packets that may be lost"}},
        .initial = "tcp, then udp",
        .help = "transport of RTSP: tcp or udp",
    },
    {
        .name = "playlist-hosts",
        OF_RUN(config.playlist_hosts),
        .argument = "HOSTS",
        .initial = "none",
        .help = "hosts that an HLS playlist may fetch from besides its own: a.net,*.b.net or any",
        .suggested = "any",
    },
    {
        .name = "tls-verify",
        OF_RUN(config.tls_verify),
        .help = "insist on a valid certificate of https, rtsps and rtmps servers",
    },
    {
        .name = "ca-file",
        OF_RUN(config.ca_file),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .initial = "those that the system trusts",
        .help = "certificate authorities (PEM) that have to sign it; implies --tls-verify",
    },
    {
        .name = "open-timeout",
        OF_RUN(config.open_timeout),
        .argument = "TIME",
        .positive = true,
        .initial = "10 s",
        .help = "timeout of opening a source",
    },
    {
        .name = "stall-timeout",
        OF_RUN(config.stall_timeout),
        .argument = "TIME",
        .positive = true,
        .initial = "5 s, of playlists 30 s",
        .help = "timeout of a source without a picture, which then counts as lost",
    },
    {
        .name = "reconnect",
        .set = set_reconnect,
        .argument = "N",
        .min = 1,
        .max = 1e6,
        .choices = {{"forever", 0, "as long as the run lasts"}, {"no", 0, "a loss ends the run"}},
        .wanted = "forever, no, or a whole number, 1 .. 1000000",
        .initial = "forever",
        .help = "reconnection attempts: forever, no, or N",
        .details = "The first is made at once, the second 0.25 s later; delays double up to 10 s. "
                   "Where the option is given, a source that is absent at the start is waited for, "
                   "too, and so is a server that an output is published to; else that fails at "
                   "once, so that a misspelt URL shows.",
    },
    {
        .name = "max-latency",
        OF_RUN(config.max_latency),
        .argument = "TIME",
        .positive = true,
        .initial = "2 s, of files and playlists none",
        .help = "drop frames that are older, as in 120ms",
        .details = "Before they are filtered or encoded; the summary counts them.",
    },
    {
        .name = "gap",
        .commands = FOR_RUNS,
        OF_RUN(config.gap),
        .argument = "HOW",
        .choices = {{"skip", SLUICE_GAP_SKIP, "no frames: timestamps leap over the gap"},
                    {"freeze", SLUICE_GAP_FREEZE, "the last picture, again and again"},
                    {"black", SLUICE_GAP_BLACK, "black pictures"}},
        .initial = "skip",
        .help = "frames while the source is lost: skip, freeze or black",
    },
    {0},
};

const struct option_section section_live = {
    .name = "live",
    .commands = FOR_INPUTS,
    .title = "Live input",
    .about = "Cameras, screens and streams: rtsp, rtmp, srt, udp, rtp, tcp, http without an end, "
             "/dev/video0, x11grab::0. TIME is seconds, or with a unit, as in 120ms.",
    .rows = rows,
};

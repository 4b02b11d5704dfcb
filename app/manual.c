// The commands, and texts that the help and the manual page share.
#include <string.h>

#include "app/app.h"
#include "app/option.h"

const struct command_row commands[] = {
    [COMMAND_FILTER] = {.arguments = "INPUT OUTPUT [OPTION...]",
                        .help = "filter a video",
                        .run = filter_command},
    [COMMAND_STAGES] = {.name = "stages",
                        .arguments = "[NAME|all]",
                        .help = "stages of filter chains",
                        .details = "A line each, or one or all of them in full.",
                        .topical = true,
                        .run = stages_command},
    [COMMAND_PLAN] = {.name = "plan",
                      .arguments = "[INPUT [OUTPUT]] [-f CHAIN]",
                      .help = "passes that a chain comes to",
                      .details = "With halos, memory and conversions. Without INPUT the plan is "
                                 "for --size and --pix-fmt, or 8-bit 4:2:0 of 1920x1080. Nothing "
                                 "is written.",
                      .run = plan_command},
    [COMMAND_DOCTOR] = {.name = "doctor",
                        .arguments = "[INPUT [OUTPUT]]",
                        .help = "what would run where, and why",
                        .details = "Shows what this machine has: processor, GPUs, decoders, "
                                   "encoders; and what a run with these names would use.",
                        .run = doctor_command},
    [COMMAND_BENCH] = {.name = "bench",
                       .arguments = "[INPUT] [-f CHAIN]",
                       .no_output = true,
                       .help = "how fast this machine filters",
                       .details = "With INPUT also how fast it decodes, filters and encodes that "
                                  "file. 'sluice help benchmark' lists its options.",
                       .run = bench_command},
    [COMMAND_SERVE] =
        {.name = "serve",
         .arguments = "[INPUT] [-f CHAIN]",
         .help = "show and tune it in a browser",
         .details = "Opens a page with the pictures of INPUT before and after the chain, which is "
                    "changed there; prints the page's address on standard output. A file begins "
                    "again at its end. Without INPUT, and later, visitors choose one: an upload, a "
                    "file of --media DIR, a camera, an address. 'sluice help page' lists the "
                    "options.",
         .run = serve_command},
    [COMMAND_CTL] =
        {.name = "ctl",
         .arguments = "SOCKET COMMAND...",
         .help = "ask or change a running job",
         .details = "Speaks with a run that has --control SOCKET. 'get' shows the chain; 'set "
                    "STAGE.OPTION=VALUE, ...' changes values from "
                    "one frame on; 'chain CHAIN' replaces the chain; 'stats' shows counters; "
                    "'snapshot FILE' writes the next picture (-y replaces a file); 'quit' ends "
                    "the run with a complete output. Answers are JSON, a line each.",
         .topical = true,
         .wordy = true,
         .run = ctl_command},
    [COMMAND_JOIN] =
        {.name = "join",
         .arguments = "OUTPUT [PART...]",
         .help = "put the parts of --shard together",
         .details = "Checks that the parts are one whole, and writes it without encoding again: "
                    "the video of the parts, everything else of the source. Refuses, and names, a "
                    "part that is missing, altered, of another source or chain. OUTPUT.manifest "
                    "says what it was made of. Without PART: those beside OUTPUT.",
         .topical = true,
         .wordy = true,
         .run = join_command},
    [COMMAND_AUDIT] =
        {.name = "audit",
         .arguments = "OUTPUT [--samples N]",
         .help = "compute frames again and compare",
         .details = "Holds an output against OUTPUT.manifest: its packets are those that were "
                    "written, its source is the one that it was made of, and frames drawn at "
                    "random, computed again from the source on this machine's CPU, are equal to "
                    "the bit. Exit code 1, and a sentence that names the frame or packet, where "
                    "one is not.",
         .topical = true,
         .run = audit_command},
    [COMMAND_FARM] =
        {.name = "farm",
         .arguments = "COMMAND...",
         .help = "many machines, by Slurm",
         .details = "'submit INPUT OUTPUT --parts N [OPTION...] [-- OPTION-OF-SBATCH...]' gives "
                    "the parts of one output to Slurm, an array of jobs, and behind them a job "
                    "that joins them and one that audits the output. 'status OUTPUT' shows how it "
                    "stands: exit code 0 if all is there, 1 if something failed or is missing, 7 "
                    "if it is under way. 'resume OUTPUT' looks at all that is there, and submits "
                    "what is missing or not what it should be. 'print INPUT OUTPUT --parts N --as "
                    "slurm|kubernetes|xargs' prints what would be run. 'sluice help farm' lists "
                    "the options, docs/farm.md says what tasks may rely on.",
         .topical = true,
         .run = farm_command},
    [COMMAND_BISECT] =
        {.name = "bisect",
         .arguments = "A B",
         .help = "where two outputs begin to differ",
         .details =
             "Compares the manifests of two outputs of one source, and names the first frame "
             "that differs. It is computed again by both chains, stage by stage, for the "
             "first stage and sample in which they differ, and whether one of the outputs "
             "is not what its own chain gives. Exit code 0: they are the same; 1: they "
             "differ.",
         .topical = true,
         .wordy = true,
         .run = bisect_command},
    [COMMAND_HELP] = {.name = "help",
                      .arguments = "[TOPIC]",
                      .help = "section, option, stage or all",
                      .details = "'sluice help all' shows everything.",
                      .topical = true,
                      .run = help_command},
    {0},
};

const struct command_row *command_find(const char *name)
{
    for (const struct command_row *row = commands; row->help; row++)
        if (row->name && !strcmp(row->name, name))
            return row;
    return NULL;
}

const char manual_about[] =
    "Every frame of INPUT goes through CHAIN; all but the video is copied to OUTPUT.";

const char stages_about[] =
    "A chain is a list of stages, separated by commas, which every frame goes through. Values "
    "follow "
    "a stage's name behind '=', separated by colons: in the order of its options, or by name. A "
    "stage without values uses its defaults.\n"
    "Values are in full-range 8-bit code values, 0 black and 255 white, whatever the video's depth "
    "and range; 9 to 16-bit video keeps its depth. An 8-bit result is within one code value of the "
    "formula, in which x is a sample and y the result. Edges and thresholds of Y'CbCr are taken of "
    "its luma and give gray; on RGB they work on each of R, G and B.\n"
    "Quotes protect commas and colons in the names of files: convolve='a, b.txt'.";

const struct manual_row manual_operands[] = {
    {"INPUT", "file, image sequence ('in%04d.png', '*.png'), URL (rtsp://...), device "
              "(/dev/video0, x11grab::0), or - for standard input"},
    {"OUTPUT", "file, image sequence, playlist (live.m3u8), -, URL to publish to (rtsp, rtmp, "
               "srt, udp, rtp, tcp), display:, mjpeg:ADDRESS (for browsers), null: (discard), or "
               "hash:FILE (a checksum per frame)"},
    {"CHAIN", "stages and their values, as in 'gray,gaussian=1.4,sobel'; by default "
              "gray,gaussian=1.4,sobel,threshold=20:240; null: none"},
    {"@FILE", "the text in a file, env:NAME of a variable: for names with passwords"},
    {0},
};

const struct manual_row manual_exit_codes[] = {
    {"0", "complete", "complete"},
    {"1", "failed for another reason, or 3 with --strict", "failed"},
    {"2", "usage: an option, stage or value is wrong", "usage"},
    {"3", "finished, but the input was damaged or frames were dropped", "damaged input"},
    {"4", "the input cannot be read or decoded", "input"},
    {"5",
     "the output cannot be encoded or written, a report cannot be written, or an address or socket "
     "of the run cannot be opened",
     "output"},
    {"6", "the GPU that was required failed or is not there", "device"},
    {"7", "of 'sluice farm status': parts are still to come", "not all there yet"},
    {"129, 130, 143", "stopped by SIGHUP, SIGINT, SIGTERM; the output is complete up to there",
     "stopped by a signal"},
    {0},
};

const struct manual_row manual_environment[] = {
    {"NO_COLOR", "if it is set and not empty, messages have no colours"},
    {"DISPLAY", "the X11 screen that --list-devices looks at and display: opens its window on"},
    {"NOTIFY_SOCKET", "the socket of systemd, which is told when the first frame is out; with "
                      "WATCHDOG_USEC also that frames move"},
    {"SLUICE_CPU",
     "the instruction set of the CPU backend (base, v2, v3, v4, vnni; on aarch64 base, "
     "neon) instead of the best that the processor has"},
    {"SLUICE_TRANSFORMS",
     "who makes the Fourier transforms of large kernels on the CPU (fftw, libavutil, or none) "
     "instead of the first of them that is installed"},
    {"SLUICE_SANDBOX",
     "auto, on or off, where --sandbox is not given: off for debuggers and sanitizers that "
     "look into the process"},
    {0},
};

const struct manual_row manual_examples[] = {
    {"sluice in.mp4 edges.mp4", "the default chain: an edge video"},
    {"sluice in.mkv soft.mkv -f 'brightness=12,gaussian=2.5:border=mirror'", "a chain"},
    {"sluice in.mp4 small.mp4 --crf 30 -o master.mkv -c:v ffv1", "two outputs"},
    {"sluice -F rawvideo --size 64x48 --pix-fmt gray - out.mkv", "raw video from a pipe"},
    {"sluice in.mp4 - -F rawvideo --pix-fmt rgb24", "raw video into a pipe"},
    {"sluice rtsp://camera/1 edges.mkv --gap freeze --max-latency 120ms", "a camera"},
    {"sluice serve in.mp4 -f gray,gaussian=1.4,sobel", "a page to tune the chain on"},
    {0},
};

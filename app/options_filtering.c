#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "filter",
        .letter = 'f',
        OF_RUN(config.chain),
        .argument = "CHAIN",
        .indirect = true,
        .completes = COMPLETE_CHAIN,
        .initial = "gray,gaussian=1.4,sobel,threshold=20:240",
        .help = "filter chain: stages with their values, as in 'gray,gaussian=1.4,sobel'",
        .details = "Stages are separated by commas. Values follow behind '=', separated by colons, "
                   "in the order of the stage's options or by name: 'gaussian=2.5:border=mirror'. "
                   "Quotes protect commas and colons in the names of files. 'null' leaves pictures "
                   "as they are. 'sluice stages' lists the stages, 'sluice help NAME' shows one.",
    },
    {
        .name = "backend",
        .commands = FOR_INPUTS | FOR(AUDIT) | FOR(BISECT),
        OF_RUN(config.backend),
        .argument = "NAME",
        .choices = {{"auto", SLUICE_BACKEND_AUTO,
                     "the GPU where there is one that pays, else "
                     "the CPU"},
                    {"cuda", SLUICE_BACKEND_CUDA, "an NVIDIA GPU; without one the run fails"},
                    {"cpu", SLUICE_BACKEND_CPU, "all cores, with their vector instructions"},
                    {"scalar", SLUICE_BACKEND_SCALAR,
                     "the reference: plain loops, slow and exact"}},
        .initial = "auto",
        .help = "what filters: auto, cuda, cpu or scalar (the reference)",
        .details = "All of them give the same frames to the bit. With auto the CPU has the first "
                   "frames of a file, until the GPU is ready.",
    },
    {
        .name = "hwdec",
        OF_RUN(config.hwdec),
        .argument = "WHEN",
        .choices = {{"auto", SLUICE_HWDEC_AUTO, "where the GPU decodes the codec exactly"},
                    {"require", SLUICE_HWDEC_REQUIRE, "the GPU, or the run fails"},
                    {"off", SLUICE_HWDEC_OFF, "the CPU decodes"}},
        .initial = "auto",
        .help = "hardware decoding (NVDEC) on the GPU: auto, require or off",
        .details = "With auto the GPU decodes H.264, HEVC, VP8 and VP9; older codecs, whose "
                   "decoders round as they like, stay on the CPU.",
    },
    {
        .name = "device",
        OF_RUN(config.device),
        .argument = "N",
        .initial = "0",
        .help = "which GPU; several, as in 0,1 or all, take frames in turn",
        .details = "With '--backend auto' a GPU that is named is required.",
        .suggested = "0 all",
    },
    {
        .name = "threads",
        .commands = FOR_INPUTS | FOR(AUDIT) | FOR(BISECT),
        OF_RUN(config.threads),
        .argument = "N",
        .min = 1,
        .max = 1024,
        .initial = "one per core",
        .help = "threads of the CPU backend",
    },
    {
        .name = "ring",
        OF_RUN(config.ring),
        .argument = "N",
        .min = 1,
        .max = 64,
        .initial = "as many as the backend keeps busy",
        .help = "frames in flight, 1 to 64",
        .details = "More of them hide uneven frame times and take more memory.",
    },
    {
        .name = "verify",
        OF_RUN(config.verify),
        .argument = "N",
        .implied = "1",
        .min = 1,
        .max = 1e9,
        .help = "recompute every Nth frame by the reference, and fail on a difference",
    },
    {0},
};

const struct option_section section_filtering = {
    .name = "filtering",
    .commands = FOR_INPUTS,
    .title = "Filtering",
    .rows = rows,
};

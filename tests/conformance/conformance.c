// Every operation and random plans on a backend, against the scalar reference, to the bit.
//
//   conformance [--backend cpu|cuda] [--devices N] [--threads N] [--large] [--ladder]
//               [--on-device | --abroad] [--only GLOB] [--not GLOB] [--format NAME] [--every N] [--random N]
//               [--chain CHAIN] [--seed N]
//
// A case is named by chain, format and seed (case.h): every chain of chains.c on every format of
// formats.c, then random ones. --only and --not choose among the chains by a pattern of the shell
// and may be repeated, --format one format, --every each Nth of what is left; --random says how
// many random ones follow (1500, or none where some were chosen), --seed where their seeds begin.
// One case is replayed by its --chain, --format and --seed, a random one by --seed alone. Two
// executors are always busy at once, each with all its slots, so that parameters of one cannot
// reach the other unseen. A third of a GPU's cases have their targets in its memory, or in place of
// the source, and use each slot twice without waiting between; --on-device: all have; --abroad: none
// has, and sources are taken as from another GPU's memory. --devices makes N backends take frames in
// turn, of GPUs the first N.
// The steps of the tutorial follow (tutorial.h) unless cases or devices were chosen; --ladder is
// these alone, and what leaves them out says so. The last line is "N passed, N failed"; where no case
// is chosen the exit status is 2.
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/filter/multi_gpu.h"
#include "tests/conformance/case.h"
#include "tests/conformance/chains.h"
#include "tests/conformance/formats.h"
#include "tests/conformance/tutorial.h"

enum { MAX_GLOBS = 16, RANDOM_CASES = 1500 };

struct globs {
    const char *glob[MAX_GLOBS];
    int count;
};

struct settings {
    const char *backend;
    int threads, devices;
    bool large, on_device, abroad, tutorial_alone, chosen; // chosen: not all cases
    struct globs only, not ;
    const char *format, *chain; // NULL: all
    int every, random;          // random: below 0: as usual
    unsigned seed;
    bool seeded;
};

struct run {
    const struct settings *settings;
    struct backend *backend;
    struct test_case *busy; // the case before, whose frames are under way
    int passed, failed, seen;
};

// ---- cases ----

static void finish_busy(struct run *run)
{
    if (run->busy)
        ++*(case_finish(run->busy, run->backend) ? &run->passed : &run->failed);
    run->busy = NULL;
}

static void try_case(struct run *run, const struct case_name *name)
{
    struct test_case *next = case_submit(name, run->backend);
    finish_busy(run);
    run->busy = next;
}

static bool matches(const struct globs *globs, const char *chain)
{
    for (int k = 0; k < globs->count; k++)
        if (!fnmatch(globs->glob[k], chain, 0))
            return true;
    return false;
}

static bool is_wanted(struct run *run, const char *chain, const char *format)
{
    const struct settings *settings = run->settings;
    if ((settings->only.count && !matches(&settings->only, chain)) ||
        matches(&settings->not, chain) || (settings->format && strcmp(settings->format, format)))
        return false;
    return run->seen++ % settings->every == 0;
}

static void try_fixed(struct run *run)
{
    for (int f = 0; f < FORMATS; f++)
        for (const char *const *chain = fixed_chains; *chain; chain++) {
            const struct case_name name = {*chain,
                                           test_format(f).name,
                                           0,
                                           run->settings->large,
                                           run->settings->on_device,
                                           run->settings->abroad};
            if (is_wanted(run, name.chain, name.format))
                try_case(run, &name);
        }
}

static void try_random(struct run *run)
{
    const struct settings *settings = run->settings;
    int count = settings->random >= 0 ? settings->random : settings->chosen ? 0 : RANDOM_CASES;
    for (int k = 0; k < count; k++)
        try_case(run, &(struct case_name){.seed = settings->seed + (unsigned)k,
                                          .large = settings->large,
                                          .on_device = settings->on_device,
                                          .abroad = settings->abroad});
}

static void try_all(struct run *run)
{
    const struct settings *settings = run->settings;
    bool one = settings->chain || (settings->seeded && settings->random < 0);
    if (one)
        try_case(run, &(struct case_name){settings->chain,
                                          settings->chain ? settings->format : NULL, settings->seed,
                                          settings->large, settings->on_device, settings->abroad});
    if (!one)
        try_fixed(run);
    if (!one)
        try_random(run);
    finish_busy(run);
}

// ---- backends ----

static void print_message(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

static enum status create_backend(const struct settings *settings, int device,
                                  const struct log *log, struct backend **backend, char *reason,
                                  size_t size)
{
    return strcmp(settings->backend, "cuda")
               ? backend_cpu_create(settings->threads, log, backend)
               : backend_cuda_create(device, log, backend, reason, size);
}

// One, or several as one.
static enum status create_backends(const struct settings *settings, const struct log *log,
                                   struct backend **backend, char *reason, size_t size)
{
    struct backend *part[MAX_GPUS] = {NULL};
    int count = settings->devices < MAX_GPUS ? settings->devices : MAX_GPUS;
    if (count < 2)
        return create_backend(settings, 0, log, backend, reason, size);
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        status = create_backend(settings, k, log, &part[k], reason, size);
    if (!status)
        status = multi_gpu_create(part, count, backend);
    for (int k = 0; k < count; k++)
        backend_destroy(&part[k]);
    return status;
}

static int run_all(const struct settings *settings)
{
    struct log log = {print_message, NULL};
    struct run run = {.settings = settings};
    char reason[256] = "";
    if (create_backends(settings, &log, &run.backend, reason, sizeof reason)) {
        printf("conformance %s: skipped, %s\n0 passed, 0 failed\n", settings->backend, reason);
        return 0;
    }
    if (settings->on_device && !run.backend->has_device_memory) {
        printf("conformance %s: skipped, it has no device memory\n0 passed, 0 failed\n",
               settings->backend);
        backend_destroy(&run.backend);
        return 0;
    }
    printf("conformance %s (%s) against scalar\n", run.backend->name, run.backend->description);
    if (!settings->tutorial_alone)
        try_all(&run);
    const struct tutorial_settings tutorial = {settings->large, settings->threads, &log};
    if (!settings->chosen)
        tutorial_run(&tutorial, run.backend, &run.passed, &run.failed);
    else
        puts("Cases were chosen, so the steps of the tutorial are left out: --ladder is these.");
    backend_destroy(&run.backend);
    bool none = run.passed + run.failed == 0;
    if (none)
        puts("No case is of those that were chosen.");
    printf("%d passed, %d failed\n", run.passed, run.failed);
    return none ? 2 : run.failed > 0;
}

// ---- the command line ----

static void add_glob(struct globs *globs, const char *glob)
{
    if (globs->count == MAX_GLOBS) {
        fprintf(stderr, "conformance: up to %d patterns\n", MAX_GLOBS);
        exit(2);
    }
    globs->glob[globs->count++] = glob;
}

static void take_option(struct settings *settings, int option, const char *value)
{
    settings->chosen = settings->chosen || !strchr("btlL", option);
    switch (option) {
    case 'b':
        settings->backend = value;
        break;
    case 't':
        settings->threads = atoi(value);
        break;
    case 'd':
        settings->devices = atoi(value);
        break;
    case 'l':
        settings->large = true;
        break;
    case 'D':
        settings->on_device = true;
        break;
    case 'A':
        settings->abroad = true;
        break;
    case 'L':
        settings->tutorial_alone = true;
        break;
    case 'o':
        add_glob(&settings->only, value);
        break;
    case 'n':
        add_glob(&settings->not, value);
        break;
    case 'f':
        settings->format = value;
        break;
    case 'e':
        settings->every = atoi(value) > 0 ? atoi(value) : 1;
        break;
    case 'r':
        settings->random = atoi(value);
        break;
    case 'c':
        settings->chain = value;
        break;
    case 's':
        settings->seed = (unsigned)strtoul(value, NULL, 10);
        settings->seeded = true;
        break;
    default:
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},
        {"devices", required_argument, NULL, 'd'},
        {"large", no_argument, NULL, 'l'},
        {"on-device", no_argument, NULL, 'D'},
        {"ladder", no_argument, NULL, 'L'},
        {"abroad", no_argument, NULL, 'A'},
        {"only", required_argument, NULL, 'o'},
        {"not", required_argument, NULL, 'n'},
        {"format", required_argument, NULL, 'f'},
        {"every", required_argument, NULL, 'e'},
        {"random", required_argument, NULL, 'r'},
        {"chain", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    struct settings settings = {.backend = "cpu", .threads = 3, .every = 1, .random = -1};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        take_option(&settings, option, optarg);
    if (settings.chain && !settings.format)
        settings.format = test_format(0).name;
    return run_all(&settings);
}

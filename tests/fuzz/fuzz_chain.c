// Attacked: the text of a chain, and in a second line options that are set afterwards.
//
// Must hold: a refusal has a sentence and a place within the text; what is taken is printed as a
// text that is taken and printed alike; chains lower to programs on several formats, and programs
// group to plans for several backends, without a report by sanitizers and within bounded time.
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "stages/chain.h"
#include "tests/conformance/formats.h"
#include "tests/fuzz/fuzz.h"

static void check_error(const struct chain_error *error, const char *text)
{
    char described[4096], tight[40];
    FUZZ_REQUIRE(*error->message);
    FUZZ_REQUIRE(error->position >= 0 && error->length >= 0);
    FUZZ_REQUIRE((size_t)error->position + (size_t)error->length <= strlen(text));
    chain_error_describe(error, text, described, sizeof described);
    chain_error_describe(error, text, tight, sizeof tight);
    FUZZ_REQUIRE(strlen(tight) < sizeof tight);
}

// A chain's text reads as itself, and so does a copy's.
static void check_text(const struct chain *chain)
{
    struct chain again, copy;
    struct chain_error error = {.message = ""};
    char *text = chain_text(chain);
    FUZZ_REQUIRE(text);
    enum status status = chain_parse(text, &fuzz_reader, &again, &error);
    if (status)
        fprintf(stderr, "'%s' is refused: %s\n", text, error.message);
    FUZZ_REQUIRE(!status);
    FUZZ_REQUIRE(!chain_copy(chain, &copy));
    char *second = chain_text(&again), *third = chain_text(&copy);
    FUZZ_REQUIRE(second && third && !strcmp(text, second) && !strcmp(text, third));
    FUZZ_REQUIRE(chain_writes_alike(chain, &copy, &error));
    chain_free(&again);
    chain_free(&copy);
    free(text);
    free(second);
    free(third);
}

static FILE *nowhere;

static void check_plan(const struct program *program, struct plan_limits limits)
{
    struct plan *plan;
    FUZZ_REQUIRE(!plan_create(program, limits, &plan));
    plan_print(plan, 33, 17, nowhere);
    plan_destroy(&plan);
}

static void check_program(const struct chain *chain, int number, struct plan_limits limits)
{
    struct program program;
    struct format format = test_format(number).format;
    FUZZ_REQUIRE(!program_init(&program, &format));
    if (!chain_lower(chain, &program) && !program_finish(&program, NULL))
        check_plan(&program, limits);
    program_free(&program);
}

// One format and backend an input, and all where inputs are replayed.
static void check_programs(const struct chain *chain, const uint8_t *data, size_t size)
{
    static const struct plan_limits limits[] = {{.stencils = 1}, {.stencils = 3, .radius = 16}};
    static const int formats[] = {0, 4, 9, 14, 18};
    enum {
        LIMITS = sizeof limits / sizeof *limits,
        FORMATS_HERE = sizeof formats / sizeof *formats
    };
    size_t share = fuzz_share(data, size, LIMITS * FORMATS_HERE);
    if (chain_load(chain, 1 << 16, &(struct log){0}))
        return;
    for (size_t k = 0; k < LIMITS * FORMATS_HERE; k++)
        if (k == share || fuzz_replays)
            check_program(chain, formats[k / LIMITS], limits[k % LIMITS]);
}

static void check_set(struct chain *chain, const char *options)
{
    struct chain_error error = {.message = ""};
    char *before = chain_text(chain);
    enum status status = chain_set(chain, options, &error);
    if (status) {
        char *after = chain_text(chain);
        FUZZ_REQUIRE(before && after && !strcmp(before, after));
        check_error(&error, options);
        free(after);
    } else {
        check_text(chain);
    }
    free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain chain;
    struct chain_error error = {.message = ""};
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    FUZZ_REQUIRE(nowhere);
    int descriptor = fuzz_next_descriptor();
    char *text = fuzz_text(data, size), *rest = text, *line = fuzz_line(&rest);
    if (chain_parse(line, &fuzz_reader, &chain, &error)) {
        check_error(&error, line);
    } else {
        check_text(&chain);
        check_programs(&chain, data, size);
        if (*rest)
            check_set(&chain, fuzz_line(&rest));
        chain_free(&chain);
    }
    free(text);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}

// Chains, borders, filter design and plans.
#include "tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/parser.h"
#include "stages/design/convolution.h"
#include "plan/plan.h"
#include "base/secrets.h"
#include "stages/design/separable.h"

static const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};

// ---- chain text ----

static void chains_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int position, length;
        const char *says; // part of the message
    } wrong[] = {
        {"gausian=1.4", 0, 7, "did you mean 'gaussian'"},
        {"gray,sobell", 5, 6, "did you mean 'sobel'"},
        {"xyz", 0, 3, "the stages are: brightness"},
        {"brightness=300", 11, 3, "-255 .. 255"},
        {"brightness=abc", 11, 3, "takes a number"},
        {"brightness=1e", 11, 2, "takes a number"},
        {"brightness=nan", 11, 3, "takes a number"},
        {"brightness", 0, 10, "needs a value"},
        {"brightness=", 11, 0, "missing"},
        {"brightness=1:2", 13, 1, "one more"},
        {"brightness=offset=1:offset=2", 20, 8, "given twice"},
        {"gaussian=1.4:radius=2.5", 20, 3, "whole number"},
        {"gaussian=1.4:raduis=2", 13, 6, "did you mean 'radius'"},
        {"gaussian=sigma=1.4:2", 19, 1, "come before"},
        {"gray=lume", 5, 4, "luma|mean"},
        {"gray,,sobel", 5, 0, "name is missing"},
        {"gray,", 5, 0, "name is missing"},
        {"sobel=border=clamp", 13, 5, "replicate|zero|reflect|mirror|wrap"},
        {"gray,gaussian='1.4,sobel", 14, 10, "does not end"},
        {"gaussian='1.4x'", 10, 4, "takes a number"},
        {"convolve", 0, 8, "convolve=kernel, rows of numbers"},
        {"gray,convolve=1 2/3:2", 14, 5, "row 2 has 1 number"},
        {"convolve='1,2:3'", 9, 7, "nor a file"},
        {"convolve=\"0 0\":1", 9, 5, "only zeros"},
        {"gray,match=logo.png", 11, 8, "no pictures can be read"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct chain chain;
        struct chain_error error;
        assert_int_equal(chain_parse(wrong[k].text, NULL, &chain, &error), STATUS_USAGE);
        if (error.position != wrong[k].position || error.length != wrong[k].length ||
            !strstr(error.message, wrong[k].says))
            fail_msg("'%s': at %d + %d: %s", wrong[k].text, error.position, error.length,
                     error.message);
    }
}

static void chains_that_are(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int links;
        double value; // the first link's first
    } right[] = {
        {"", 0, 0},
        {"   ", 0, 0},
        {"gray", 1, 0},
        {"gray=mean", 1, 1},
        {"gray=mode=mean", 1, 1},
        {" gaussian = 1.4 : radius = 3 , sobel ", 2, 1.4},
        {"gaussian=border=wrap:sigma=2", 1, 2},
        {"brightness=-255,brightness=255", 2, -255},
        {"brightness=+1e1", 1, 10},
        {"brightness='-1.5'", 1, -1.5},
        {"brightness=offset=\"7\",gray='mean'", 2, 7},
    };
    for (size_t k = 0; k < sizeof right / sizeof *right; k++) {
        struct chain chain;
        struct chain_error error;
        if (chain_parse(right[k].text, NULL, &chain, &error))
            fail_msg("'%s': %s", right[k].text, error.message);
        assert_int_equal(chain.links, right[k].links);
        if (chain.links)
            assert_true(member_value(chain.link[0].stage->option, chain.link[0].options) ==
                        right[k].value);
        chain_free(&chain);
    }
}

static void errors_are_marked_in_the_text(void **state)
{
    (void)state;
    struct chain chain;
    struct chain_error error;
    char text[512];
    assert_int_equal(chain_parse("gray,gausian=1", NULL, &chain, &error), STATUS_USAGE);
    chain_error_describe(&error, "gray,gausian=1", text, sizeof text);
    assert_non_null(strstr(text, "\n  gray,gausian=1\n       ^^^^^^^"));
}

static bool writes_alike(const char *text, const char *like)
{
    struct chain a, b;
    struct chain_error error;
    assert_int_equal(chain_parse(text, NULL, &a, &error), STATUS_OK);
    assert_int_equal(chain_parse(like, NULL, &b, &error), STATUS_OK);
    bool alike = chain_writes_alike(&a, &b, &error);
    chain_free(&a);
    chain_free(&b);
    return alike;
}

static void files_of_a_chain_stay_or_go(void **state)
{
    (void)state;
    struct chain chain;
    struct chain_error error;
    struct chain_file list[2];
    assert_int_equal(chain_parse("tee=a,gray,stats,tee='b:c',sobel", NULL, &chain, &error),
                     STATUS_OK);
    assert_int_equal(chain_files(&chain, WRITES_RECORDS, list, 2), 1);
    assert_null(list[0].name);
    assert_int_equal(chain_files(&chain, WRITES_PICTURES, list, 1), 2);
    assert_int_equal(chain_files(&chain, WRITES_PICTURES, list, 2), 2);
    assert_string_equal(list[0].name, "a");
    assert_string_equal(list[1].name, "b:c");
    chain_mute(&chain);
    char *text = chain_text(&chain);
    assert_string_equal(text, "gray,stats,sobel");
    free(text);
    chain_free(&chain);
    assert_true(writes_alike("tap=a", "tee=a")); // its former name
    assert_true(writes_alike("gray,tee=a,sobel,stats=b", "tee=a,stats=b,invert"));
    assert_false(writes_alike("stats=b,tee=a", "tee=a,stats=b"));
    assert_true(writes_alike("tee=a", "tee=a,stats"));
    assert_true(writes_alike("wavelet=2,stats=a", "stats=a,stats"));
    assert_false(writes_alike("tee=a", "tee=a,stats=b"));
    assert_false(writes_alike("stats", "stats=a"));
    assert_false(writes_alike("gray", "gray,tee=a"));
}

static void chains_are_cut_behind_a_link(void **state)
{
    (void)state;
    static const struct {
        int links;
        const char *left;
    } rows[] = {{-1, "gray,invert,sobel"},
                {3, "gray,invert,sobel"},
                {9, "gray,invert,sobel"},
                {2, "gray,invert"},
                {1, "gray"},
                {0, ""}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct chain chain;
        struct chain_error error;
        assert_int_equal(chain_parse("gray,invert,sobel", NULL, &chain, &error), STATUS_OK);
        chain_truncate(&chain, rows[k].links);
        char *text = chain_text(&chain);
        assert_string_equal(text, rows[k].left);
        free(text);
        chain_free(&chain);
    }
}

static void check_option(const struct stage_option *option)
{
    double initial = stage_option_initial(option);
    double min = option->type == OPTION_CHOICE ? 0 : option->min;
    double max = option->type == OPTION_CHOICE ? stage_option_choices(option) - 1 : option->max;
    if (option->type == OPTION_TEXT) {
        assert_true(option->unit && (option->resolve || option->writes || option->patterns));
        return;
    }
    assert_true(min < max);
    assert_true(isnan(initial) || (initial >= min && initial <= max));
    if (option->derived && option->type == OPTION_INT) // -1 says that it was not given
        assert_true(option->min >= 0);
}

static void tables_are_sound(void **state)
{
    (void)state;
    for (int k = 0; stages[k]; k++) {
        assert_ptr_equal(stage_find(stages[k]->name, strlen(stages[k]->name)), stages[k]);
        assert_true(stages[k]->summary && stages[k]->formula && stages[k]->lower);
        for (const struct stage_option *option = stages[k]->option; option->name; option++) {
            assert_true(option->help && !(option->required && option->derived));
            assert_true(option->offset < stages[k]->size);
            check_option(option);
        }
    }
}

// ---- borders ----

static void borders_reach_any_distance(void **state)
{
    (void)state;
    static const struct {
        enum border border;
        int index[13]; // of -5 .. 7 in a row of 3
    } rows[] = {
        {BORDER_REPLICATE, {0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2}},
        {BORDER_ZERO, {-1, -1, -1, -1, -1, 0, 1, 2, -1, -1, -1, -1, -1}},
        {BORDER_REFLECT, {1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1}},
        {BORDER_MIRROR, {1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1}},
        {BORDER_WRAP, {1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int i = -5; i <= 7; i++)
            assert_int_equal(border_index(rows[k].border, i, 3), rows[k].index[i + 5]);
}

// ---- filter design ----

static double ideal[4096];

// The truncated, normalised Gaussian, zero from radius + 1 on.
static void ideal_weights(double sigma, int radius, double *weight)
{
    double sum = 0;
    memset(weight, 0, sizeof ideal);
    for (int i = -radius; i <= radius; i++)
        sum += exp(-(double)i * i / (2 * sigma * sigma));
    for (int i = 0; i <= radius; i++)
        weight[i] = exp(-(double)i * i / (2 * sigma * sigma)) / sum;
}

// The response to a row of zeros with one sample of a million: the filter's effect, exact enough.
static double effect_at(const struct op_separable *f, int i, int impulse)
{
    int d = 1 << f->decimate_x, m = i >> f->decimate_x, phase = i & (d - 1);
    double sum = 0;
    for (int side = 0; side < 2; side++)
        for (int k = -f->radius_x; k <= f->radius_x; k++) {
            int from = abs(impulse - (m + side + k) * d);
            double tent = from < d ? (d - from) / ((double)d * d) : 0;
            sum +=
                (side ? phase : d - phase) / (double)d * ldexp(f->tap_x[abs(k)], -f->bits) * tent;
        }
    return sum;
}

// The contract of stages/design/separable.h: no picture can differ by more than 1 code value. The
// worst picture is white where the effect is too large and black where it is too small.
static void gaussians_stay_within_one_code(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    for (double sigma = 0.1; sigma <= 250; sigma *= sigma > 30 ? 1.5 : 1.15) {
        int radii[] = {-1, 1, (int)ceil(sigma), (int)(2 * sigma) + 1, 5000};
        for (int r = 0; r < 5; r++) {
            struct program program;
            assert_int_equal(program_init(&program, &gray), STATUS_OK);
            program_gaussian(&program, 0, sigma, radii[r], BORDER_REPLICATE, 0);
            int radius = radii[r] < 0 ? gaussian_radius(sigma) : radii[r];
            radius = radius < 1700 ? radius : 1700;
            if (program.ops) {
                const struct op_separable *f = &program.op[0].separable;
                int64_t sum = f->tap_x[0];
                for (int k = 1; k <= f->radius_x; k++)
                    sum += 2 * (int64_t)f->tap_x[k];
                assert_int_equal(sum, INT64_C(1) << f->bits);
                int d = 1 << f->decimate_x, reach = radius + 3 * d;
                double worst = 0;
                ideal_weights(sigma, radius, ideal);
                for (int i = 0; i<d; i += d> 4 ? d / 4 : 1) {
                    double half = 0;
                    for (int k = -reach; k <= reach; k++)
                        half += 127.5 * fabs(effect_at(f, i, i + k) - ideal[abs(k)]);
                    worst = half > worst ? half : worst;
                }
                double rounding = 0.5 + ldexp(0.5, -f->fraction);
                if (2 * worst + rounding > 1)
                    fail_msg("sigma %g radius %d: error %g", sigma, radii[r], 2 * worst + rounding);
            } else {
                ideal_weights(sigma, radius, ideal);
                assert_true(127.5 * 2 * (1 - ideal[0]) < 0.25);
            }
            program_free(&program);
        }
    }
}

// ---- convolutions ----

enum { WIDTH = 23, HEIGHT = 17 };

// Lines whose products sum to `weight` within `tolerance`, the larger pair first.
static void expect_lines(const double *weight, double tolerance)
{
    double memory_x[2][WIDTH], memory_y[2][HEIGHT], size[2] = {0};
    double *x[2] = {memory_x[0], memory_x[1]}, *y[2] = {memory_y[0], memory_y[1]};
    convolution_lines(weight, WIDTH, HEIGHT, x, y);
    for (int j = 0; j < HEIGHT; j++)
        for (int i = 0; i < WIDTH; i++) {
            double sum = y[0][j] * x[0][i] + y[1][j] * x[1][i];
            assert_true(fabs(sum - weight[j * WIDTH + i]) <= tolerance);
        }
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < HEIGHT; j++)
            size[r] += y[r][j] * y[r][j];
    assert_true(size[0] >= size[1]);
}

static void lines_are_the_best_of_a_kernel(void **state)
{
    (void)state;
    double weight[HEIGHT * WIDTH], small = 1e-3;
    for (int rank = 1; rank <= 3; rank++) {
        for (int k = 0; k < HEIGHT * WIDTH; k++) {
            double i = k % WIDTH, j = k / WIDTH;
            weight[k] = sin(j + 1) * cos(0.3 * i);
            weight[k] += rank > 1 ? 7 * (j - 8) * (i + 1) : 0;
            weight[k] += rank > 2 ? small * cos(2 * j) * sin(5 * i + 1) : 0;
        }
        // Two pairs leave no more than the third was, by its Frobenius norm.
        expect_lines(weight, rank < 3 ? 1e-9 : small * sqrt(HEIGHT * WIDTH));
    }
    memset(weight, 0, sizeof weight);
    weight[5 * WIDTH + 3] = 1;
    expect_lines(weight, 0);
}

// The operation that a chain of one convolution comes to, and how far its weights are from
// `wanted`.
static void expect_weights(const char *text, const struct format *format, int rank,
                           const double *wanted)
{
    struct chain chain;
    struct chain_error error;
    struct program program;
    assert_int_equal(chain_parse(text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(&program, format), STATUS_OK);
    assert_int_equal(chain_lower(&chain, &program), STATUS_OK);
    const struct op_convolve *f = &program.op[0].convolve;
    double above = 0, below = 0;
    assert_int_equal(f->rank, rank);
    assert_true(op_convolve_max(f, format->depth) < INT64_C(1) << 52);
    for (int k = 0; k < f->width * f->height; k++) {
        double weight = rank ? 0 : f->weight[k];
        for (int r = 0; r < rank; r++)
            weight += (double)f->line_y[r][k / f->width] * f->line_x[r][k % f->width];
        weight = ldexp(weight, -f->bits) - wanted[k];
        above += fmax(weight, 0);
        below += fmax(-weight, 0);
    }
    assert_true(255 * fmax(above, below) <= 0.47);
    chain_free(&chain);
    program_free(&program);
}

static void convolutions_stay_within_one_code(void **state)
{
    (void)state;
    static const char even[] = "convolve=1 2 3 4/5 6 7 9:0.3";
    double wanted[81], turned[8] = {9, 7, 6, 5, 4, 3, 2, 1};
    for (int depth = 8; depth <= 16; depth += 4) {
        struct format gray = format_planar(MODEL_GRAY, depth, 0, 0, false, &full);
        for (int k = 0; k < 8; k++)
            wanted[k] = 0.3 * turned[k];
        expect_weights(even, &gray, 0, wanted);
        for (int k = 0; k < 81; k++)
            wanted[k] = 1.0 / 81;
        expect_weights("sepconvolve=1 1 1 1 1 1 1 1 1", &gray, 1, wanted);
        for (int k = 0; k < 81; k++)
            wanted[k] = exp(-0.1 * (k % 9)) * sin(k / 9 + 1.0);
        char text[4096] = "convolve=";
        for (int k = 80; k >= 0; k--)
            sprintf(text + strlen(text), "%.17g%s", wanted[k], !k ? "" : k % 9 ? " " : "/");
        strcat(text, ":1");
        expect_weights(text, &gray, 1, wanted);
    }
}

// A transform of zeros and ones errs by next to nothing, one of the largest weights by more than
// what rounding forgives.
static void transforms_err_by_what_weights_ask(void **state)
{
    (void)state;
    static int32_t weight[31 * 31];
    struct op_convolve op = {.weight = weight, .width = 31, .height = 31};
    struct transform_size sides = {.times = 4, .most = 1024};
    assert_true(op_convolve_transform_error(&op, sides, 16) == 0);
    double before = 0;
    for (int32_t size = 1; size < 1 << 30; size *= 8) {
        for (int k = 0; k < 31 * 31; k++)
            weight[k] = k % 2 ? size : -size;
        double error = op_convolve_transform_error(&op, sides, 8);
        assert_true(error > 7.9 * before);
        before = error;
    }
    assert_true(before > 0.5);
    struct transform_size small = {4, 64};
    assert_true(op_convolve_transform_error(&op, small, 8) < before);
    for (int side = 1; side <= 511; side++)
        for (sides.most = 64; sides.most <= 4096; sides.most *= 8)
            assert_true(op_convolve_transform_side(side, sides) >= 2 * side);
}

// ---- plans ----

static void plan_of(const char *text, const struct format *format, struct plan_limits limits,
                    struct program *program, struct plan **plan)
{
    struct chain chain;
    struct chain_error error;
    assert_int_equal(chain_parse(text, NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(program, format), STATUS_OK);
    assert_int_equal(chain_lower(&chain, program), STATUS_OK);
    assert_int_equal(program_finish(program, NULL), STATUS_OK);
    assert_int_equal(plan_create(program, limits, plan), STATUS_OK);
    chain_free(&chain);
}

static void the_default_chain_is_one_pass_of_luma(void **state)
{
    (void)state;
    struct format limited = {.range = RANGE_LIMITED, .kr = 0.2126, .kb = 0.0722};
    struct format yuv = format_planar(MODEL_YUV, 8, 1, 1, false, &limited);
    struct program program;
    struct plan *plan;
    plan_of(CHAIN_DEFAULT, &yuv, (struct plan_limits){16, 40}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].steps, 4); // range, gaussian, sobel, threshold
    assert_int_equal(plan->reads, 1);         // luma only
    assert_int_equal(plan->buffers, 0);
    plan_destroy(&plan);
    program_free(&program);
}

static void untouched_planes_are_referenced(void **state)
{
    (void)state;
    struct format yuv = format_planar(MODEL_YUV, 8, 1, 1, true, &full);
    struct program program;
    struct plan *plan;
    plan_of("brightness=3", &yuv, (struct plan_limits){16, 40}, &program, &plan);
    assert_int_equal(plan->picture[0].plane[0].origin, PLANE_COMPUTED);
    for (int p = 1; p < 4; p++) {
        assert_int_equal(plan->picture[0].plane[p].origin, PLANE_REFERENCE);
        assert_int_equal(plan->picture[0].plane[p].source, p);
    }
    assert_false(program_is_identity(&program));
    plan_destroy(&plan);
    program_free(&program);
}

static void limits_cut_passes_and_buffers_are_shared(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    plan_of("sobel,sobel,sobel,sobel,sobel", &gray, (struct plan_limits){1, 32}, &program, &plan);
    assert_int_equal(plan->passes, 5);
    assert_int_equal(plan->buffers, 2); // back and forth
    plan_destroy(&plan);
    program_free(&program);
}

static void tees_are_written_by_the_pass_that_makes_them_and_read_there(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    plan_of("sobel,tee=a,tee=b,invert", &gray, (struct plan_limits){16, 40}, &program, &plan);
    assert_int_equal(program_pictures(&program), 3);
    assert_int_equal(plan->passes, 2);
    assert_int_equal(plan->buffers, 0);
    assert_int_equal(plan->pass[0].targets, 2);
    for (int n = 1; n < 3; n++) {
        struct operand target = plan->pass[0].target[n - 1];
        assert_int_equal(target.place, PLACE_OUTPUT);
        assert_int_equal(target.index, n * FORMAT_COMPONENTS);
    }
    assert_int_equal(plan->pass[1].source[0].place, PLACE_OUTPUT);
    assert_int_equal(plan->pass[1].source[0].index, FORMAT_COMPONENTS);
    assert_int_equal(plan->pass[1].target[0].index, 0);
    plan_destroy(&plan);
    program_free(&program);
}

// Many pictures of one plane: a pass writes four, the next ones copy.
static void planes_go_to_any_number_of_pictures(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    bool written[MAX_PICTURES] = {false};
    plan_of("sobel,tee=a,tee=b,tee=c,tee=d,tee=e,tee=f,tee=g,tee=h,tee=i", &gray,
            (struct plan_limits){16, 40}, &program, &plan);
    for (int k = 0; k < plan->passes; k++) {
        assert_int_equal(plan->pass[k].steps, k == 0);
        for (int t = 0; t < plan->pass[k].targets; t++) {
            int n = plan->pass[k].target[t].index / FORMAT_COMPONENTS;
            assert_false(written[n]);
            written[n] = true;
        }
    }
    for (int n = 0; n < 10; n++)
        assert_true(written[n]);
    plan_destroy(&plan);
    program_free(&program);
}

static bool is_plain_operand(const struct program *program, struct operand operand, int depth)
{
    return operand.place == PLACE_BUFFER ||
           (operand.place == PLACE_INPUT &&
            component_is_plain(&program->input.component[operand.index], depth)) ||
           (operand.place == PLACE_OUTPUT &&
            component_is_plain(&program_format(program, operand.index / FORMAT_COMPONENTS)
                                    ->component[operand.index % FORMAT_COMPONENTS],
                               depth));
}

// Statistics of an RGB picture whose samples lie one beside the other, with their results used in
// place of what they looked at.
static void whole_pictures_are_passes_between_plain_samples(void **state)
{
    (void)state;
    struct format rgb = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    int wholes = 0, made[3] = {0};
    rgb.planes = 1;
    for (int c = 0; c < 3; c++)
        rgb.component[c] = (struct component){.offset = c, .step = 3, .bytes = 1};
    struct chain chain;
    struct chain_error error;
    assert_int_equal(chain_parse("stats,stats=a", NULL, &chain, &error), STATUS_OK);
    assert_int_equal(program_init(&program, &rgb), STATUS_OK);
    assert_int_equal(chain_lower(&chain, &program), STATUS_OK);
    assert_int_equal(program.analyses, 6);
    for (int c = 0; c < 3; c++)
        program.picture.plane[c] = program.op[program.analysis[c]].result;
    assert_int_equal(program_finish(&program, NULL), STATUS_OK);
    assert_int_equal(plan_create(&program, (struct plan_limits){16, 40}, &plan), STATUS_OK);
    for (int k = 0; k < plan->passes; k++) {
        const struct plan_pass *pass = &plan->pass[k];
        if (!pass->full_frame)
            continue;
        wholes++;
        assert_int_equal(pass->steps, 0);
        assert_true(pass->targets <= 1 && !pass->mix);
        assert_true(is_plain_operand(&program, pass->source[0], 8));
        assert_true(!pass->targets || is_plain_operand(&program, pass->target[0], 8));
        assert_int_equal(pass->full_frame->record, pass->analysis / 3);
        made[pass->analysis % 3]++;
    }
    assert_int_equal(wholes, 6);
    for (int c = 0; c < 3; c++)
        assert_int_equal(made[c], 2);
    plan_destroy(&plan);
    program_free(&program);
    chain_free(&chain);
}

static void pointwise_runs_fold_into_one_table(void **state)
{
    (void)state;
    struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    plan_of("brightness=10,contrast=2,gamma=1.2,threshold=5:200", &gray,
            (struct plan_limits){1, 32}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].steps, 1);
    assert_int_equal(plan->pass[0].step[0].folded_count, 4);
    plan_destroy(&plan);
    program_free(&program);
}

static void chains_that_do_nothing_are_the_identity(void **state)
{
    (void)state;
    static const char *const chains[] = {"",        "null",         "brightness=0", "contrast=1",
                                         "gamma=1", "gaussian=0.1", "null,null"};
    struct format yuv = format_planar(MODEL_YUV, 8, 1, 1, false, &full);
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        struct program program;
        struct plan *plan;
        plan_of(chains[k], &yuv, (struct plan_limits){16, 40}, &program, &plan);
        assert_true(program_is_identity(&program));
        assert_int_equal(plan->passes, 0);
        plan_destroy(&plan);
        program_free(&program);
    }
}

// Numbers and texts by their bytes in the options.
static bool same_value(const struct stage_option *option, const void *a, const void *b)
{
    const char *one = (const char *)a + option->offset, *other = (const char *)b + option->offset;
    if (option->type != OPTION_TEXT)
        return !memcmp(one, other, option->type == OPTION_REAL ? sizeof(double) : sizeof(int));
    const char *text = *(char *const *)(const void *)one;
    const char *like = *(char *const *)(const void *)other;
    return !text == !like && (!text || !strcmp(text, like));
}

static void chains_change_and_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *chain, *change, *after; // after NULL: refused
    } changes[] = {
        {"gray,gaussian=1.4", "gaussian.sigma=2.5", "gray,gaussian=sigma=2.5"},
        {"gaussian=1,gaussian=2", "gaussian#2.sigma=3, gaussian.border=zero",
         "gaussian=sigma=1:border=zero,gaussian=sigma=3"},
        {"threshold=20:240", "threshold.t1=1,threshold.t2=999", NULL},
        {"threshold=20:240", "threshold.t1=30", "threshold=t1=30:t2=240"}, // not 3e+01
        {"threshold=20:240", "threshold.t1=250", NULL},
        {"threshold=20:240", "threshold.t1=250,threshold.t2=255", "threshold=t1=250"},
        {"gaussian=1.4", "gaussian.sigma=-1", NULL},
        {"gaussian=1.4", "gaussian.sigma", NULL},
        {"gaussian=1.4", "sobel.norm=l2", NULL},
        {"gaussian=1.4", "gaussian#2.sigma=1", NULL},
        {"gaussian=1.4", "gaussian#x.sigma=1", NULL},
        {"gaussian=1.4", "gaussian.nosuch=1", NULL},
        {"gaussian=1.4", "", NULL},
        {"convolve=kernel='1,2;1/0 +0.5e1 0':bias=2", "convolve.scale=0.001",
         "convolve=kernel='1 2 1/0 5 0':scale=0.001:bias=2"},
        {"convolve=1 2 1", "convolve.kernel='3,4', convolve.bias=1",
         "convolve=kernel='3 4':bias=1"},
        {"convolve=1 2 1", "convolve.kernel=0", NULL},
        {"convolve=1 2 1", "convolve.kernel='1", NULL},
        {"sepconvolve=0.1 0.2:1/2/3", "sepconvolve.border=wrap",
         "sepconvolve=row='0.1 0.2':column='1 2 3':border=wrap"},
        {"brightness=0.1", "brightness.offset=0.30000000000000004",
         "brightness=offset=0.30000000000000004"},
    };
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        struct chain chain, again;
        struct chain_error error;
        assert_int_equal(chain_parse(changes[k].chain, NULL, &chain, &error), STATUS_OK);
        enum status status = chain_set(&chain, changes[k].change, &error);
        char *text = chain_text(&chain);
        assert_int_equal(status, changes[k].after ? STATUS_OK : STATUS_USAGE);
        if (changes[k].after)
            assert_string_equal(text, changes[k].after);
        else
            assert_true(*error.message);
        assert_int_equal(chain_parse(text, NULL, &again, &error), STATUS_OK);
        assert_int_equal(again.links, chain.links);
        for (int n = 0; n < chain.links; n++) {
            const struct stage_option *option = chain.link[n].stage->option;
            for (; option->name; option++)
                assert_true(same_value(option, again.link[n].options, chain.link[n].options));
        }
        chain_free(&chain);
        chain_free(&again);
        free(text);
    }
}

// ---- secrets ----

static void secrets_leave_texts(void **state)
{
    (void)state;
    static const struct {
        enum secrets_in in;
        const char *text, *copy, *blank;
    } rows[] = {
        {SECRETS_IN_CHAIN, "tee=srt://h?passphrase=X1,grai", "tee=srt://h?passphrase=***,grai",
         "tee=srt://h?passphrase=**,grai"},
        {SECRETS_IN_CHAIN, "tee='srt://h?passphrase=a,b',grai", "tee='srt://h?passphrase=***',grai",
         "tee='srt://h?passphrase=***',grai"},
        {SECRETS_IN_CHAIN, "tee=rtmp://u:a/b@h/x,grai", "tee=rtmp://u:***@h/x,grai",
         "tee=rtmp://u:***@h/x,grai"},
        {SECRETS_IN_CHAIN, "tee=rtmp://u:p,w@h/x,grai", "tee=rtmp://u:***@h/x,grai",
         "tee=rtmp://u:***@h/x,grai"},
        {SECRETS_IN_CHAIN, "tee=rtmp://h/x,stats=a@b", "tee=rtmp://h/x,stats=a@b",
         "tee=rtmp://h/x,stats=a@b"},
        {SECRETS_IN_CHAIN, "tee='rtmp://u:p w@h',tee=\"rtsp://to/ken@i\"",
         "tee='rtmp://u:***@h',tee=\"rtsp://***@i\"",
         "tee='rtmp://u:***@h',tee=\"rtsp://******@i\""},
        {SECRETS_IN_CHAIN, "tee='rtmp://u:p'\"'\"'w@h',gray", "tee='rtmp://u:***@h',gray",
         "tee='rtmp://u:*******@h',gray"},
        {SECRETS_IN_CHAIN, "tee=rtmp://u:'p w'@h,gray", "tee=rtmp://u:***@h,gray",
         "tee=rtmp://u:*****@h,gray"},
        {SECRETS_IN_SENTENCE, "'rtsp://u:p@h/x' is not rtsp://t@h:1",
         "'rtsp://u:***@h/x' is not rtsp://***@h:1", "'rtsp://u:*@h/x' is not rtsp://*@h:1"},
        {SECRETS_IN_SENTENCE, "no grai in tee=srt://h?passphrase=**,grai",
         "no grai in tee=srt://h?passphrase=**,grai", "no grai in tee=srt://h?passphrase=**,grai"},
        {SECRETS_IN_SENTENCE, "no address: a@b, http://h/@u", "no address: a@b, http://h/@u",
         "no address: a@b, http://h/@u"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char *copy = secrets_dup(rows[k].text, rows[k].in), *again = secrets_dup(copy, rows[k].in);
        char *blank = strdup(rows[k].text);
        secrets_blank(blank, rows[k].in);
        assert_string_equal(copy, rows[k].copy);
        assert_string_equal(again, copy);
        assert_string_equal(blank, rows[k].blank);
        free(copy), free(again), free(blank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_leave_texts),
        cmocka_unit_test(chains_change_and_read_back),
        cmocka_unit_test(chains_that_are_none),
        cmocka_unit_test(chains_that_are),
        cmocka_unit_test(errors_are_marked_in_the_text),
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(borders_reach_any_distance),
        cmocka_unit_test(gaussians_stay_within_one_code),
        cmocka_unit_test(lines_are_the_best_of_a_kernel),
        cmocka_unit_test(convolutions_stay_within_one_code),
        cmocka_unit_test(transforms_err_by_what_weights_ask),
        cmocka_unit_test(the_default_chain_is_one_pass_of_luma),
        cmocka_unit_test(untouched_planes_are_referenced),
        cmocka_unit_test(limits_cut_passes_and_buffers_are_shared),
        cmocka_unit_test(pointwise_runs_fold_into_one_table),
        cmocka_unit_test(tees_are_written_by_the_pass_that_makes_them_and_read_there),
        cmocka_unit_test(planes_go_to_any_number_of_pictures),
        cmocka_unit_test(whole_pictures_are_passes_between_plain_samples),
        cmocka_unit_test(files_of_a_chain_stay_or_go),
        cmocka_unit_test(chains_are_cut_behind_a_link),
        cmocka_unit_test(chains_that_do_nothing_are_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

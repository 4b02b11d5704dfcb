// Plans: the passes that operations come to, and what they read and write.
#include "tests/unit.h"

#include <string.h>

#include "plan/plan.h"
#include "stages/chain/parser.h"

static const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};

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
    plan_of(CHAIN_DEFAULT, &yuv, (struct plan_limits){.stencils = 16, .radius = 40}, &program,
            &plan);
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
    plan_of("brightness=3", &yuv, (struct plan_limits){.stencils = 16, .radius = 40}, &program,
            &plan);
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
    plan_of("sobel,sobel,sobel,sobel,sobel", &gray,
            (struct plan_limits){.stencils = 1, .radius = 32}, &program, &plan);
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
    plan_of("sobel,tee=a,tee=b,invert", &gray, (struct plan_limits){.stencils = 16, .radius = 40},
            &program, &plan);
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
            (struct plan_limits){.stencils = 16, .radius = 40}, &program, &plan);
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
    assert_int_equal(
        plan_create(&program, (struct plan_limits){.stencils = 16, .radius = 40}, &plan),
        STATUS_OK);
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
            (struct plan_limits){.stencils = 1, .radius = 32}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].steps, 1);
    assert_int_equal(plan->pass[0].step[0].folded_count, 4);
    plan_destroy(&plan);
    program_free(&program);
}

static void sources_of_a_mix_go_through_tables(void **state)
{
    (void)state;
    struct format rgb = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    struct program program;
    struct plan *plan;
    plan_of("brightness=30,gamma=2,gray=mean,sobel", &rgb,
            (struct plan_limits){.stencils = 2, .radius = 64}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    for (int s = 0; s < 3; s++) {
        assert_int_equal(plan->pass[0].source[s].place, PLACE_INPUT);
        assert_int_equal(plan->pass[0].before[s].folded_count, 2);
    }
    assert_int_equal(plan->buffers, 0);
    plan_destroy(&plan);
    program_free(&program);
    // Planes that somebody else has, too, are made once.
    plan_of("brightness=30,tee=a,gray=mean", &rgb,
            (struct plan_limits){.stencils = 2, .radius = 64}, &program, &plan);
    assert_int_equal(plan->passes, 4);
    assert_null(plan->pass[3].before[0].table);
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
        plan_of(chains[k], &yuv, (struct plan_limits){.stencils = 16, .radius = 40}, &program,
                &plan);
        assert_true(program_is_identity(&program));
        assert_int_equal(plan->passes, 0);
        plan_destroy(&plan);
        program_free(&program);
    }
}

// Pixels of 8 bits of the components 0 .. count - 1 in this order, side by side.
static struct format packed(const int *order, int count)
{
    struct format format = format_planar(MODEL_RGB, 8, 0, 0, count > 3, &full);
    format.planes = 1;
    for (int k = 0; k < count; k++)
        format.component[order[k]] = (struct component){.offset = k, .step = count, .bytes = 1};
    return format;
}

static void components_of_one_table_are_one_pass(void **state)
{
    (void)state;
    struct format bgr = packed((const int[]){2, 1, 0}, 3);
    struct program program;
    struct plan *plan;
    plan_of("invert,brightness=3", &bgr, (struct plan_limits){.stencils = 16, .radius = 40},
            &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].together, 3);
    assert_int_equal(plan_pass_columns(&plan->pass[0], 100), 300);
    assert_int_equal(plan_pass_bytes(plan, &plan->pass[0], 100, 10), 2 * 3000);
    const struct component *from = plan_component(plan, plan->pass[0].source[0]);
    const struct component *to = plan_component(plan, plan->pass[0].target[0]);
    assert_int_equal(from->offset, 0);
    assert_int_equal(to->offset, 0);
    assert_true(component_is_plain(from, 8) && component_is_plain(to, 8));
    assert_true(plan_is_in_place(plan));
    plan_destroy(&plan);
    program_free(&program);
}

static void alpha_and_fillers_are_spared(void **state)
{
    (void)state;
    struct format rgba = packed((const int[]){0, 1, 2, 3}, 4);
    struct format xbgr = packed((const int[]){3, 2, 1, 0}, 4);
    struct program program;
    struct plan *plan;
    xbgr.alpha = false;
    xbgr.filler = true;
    plan_of("invert", &rgba, (struct plan_limits){.stencils = 16, .radius = 40}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].together, 4);
    assert_int_equal(plan->pass[0].kept, 8);
    assert_int_equal(plan->pass[0].filled, 0);
    assert_true(plan_is_in_place(plan));
    plan_destroy(&plan);
    program_free(&program);
    plan_of("invert", &xbgr, (struct plan_limits){.stencils = 16, .radius = 40}, &program, &plan);
    assert_int_equal(plan->passes, 1);
    assert_int_equal(plan->pass[0].together, 4);
    assert_int_equal(plan->pass[0].kept, 0);
    assert_int_equal(plan->pass[0].filled, 1);
    plan_destroy(&plan);
    program_free(&program);
}

// Passes of a chain on pixels none of which have become one.
static int single_passes(const char *chain, const struct format *format)
{
    struct program program;
    struct plan *plan;
    plan_of(chain, format, (struct plan_limits){.stencils = 16, .radius = 40}, &program, &plan);
    int passes = plan->passes;
    for (int k = 0; k < passes; k++)
        assert_int_equal(plan->pass[k].together, 1);
    plan_destroy(&plan);
    program_free(&program);
    return passes;
}

static bool joins_all(const struct plan_step *stencil)
{
    return !stencil->transform;
}

static void components_of_the_same_stencils_are_one_pass(void **state)
{
    (void)state;
    const struct plan_limits limits = {.stencils = 16, .radius = 40, .joins = joins_all};
    struct format bgra = packed((const int[]){2, 1, 0, 3}, 4);
    static const char *const chains[] = {
        "gaussian=1.4,sobel,threshold=20:240", "box=3", "sharpen", "convolve='1 2 3/4 5 6/7 8 9'",
        "convolve='1 2 1/2 4 2/1 2 1'",
    };
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        struct program program;
        struct plan *plan;
        plan_of(chains[k], &bgra, limits, &program, &plan);
        assert_int_equal(plan->passes, 1);
        assert_int_equal(plan->pass[0].together, 4);
        assert_int_equal(plan->pass[0].kept, 8);
        assert_false(plan_is_in_place(plan));
        plan_destroy(&plan);
        program_free(&program);
    }
}

static void what_differs_among_components_stays_apart(void **state)
{
    (void)state;
    struct format rgb = packed((const int[]){0, 1, 2}, 3);
    struct format gap = packed((const int[]){0, 1, 2}, 3);
    for (int c = 0; c < 3; c++)
        gap.component[c].step = 4;
    struct format planar = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    struct format ayuv = packed((const int[]){3, 0, 1, 2}, 4),
                  vyu = packed((const int[]){2, 0, 1}, 3);
    ayuv.model = vyu.model = MODEL_YUV;
    ayuv.range = vyu.range = RANGE_LIMITED;
    assert_int_equal(single_passes("invert", &ayuv), 4);      // luma has another table than chroma
    assert_int_equal(single_passes("brightness=3", &vyu), 3); // what is spared comes every fourth
    assert_int_equal(single_passes("invert", &gap), 3);
    assert_int_equal(single_passes("invert", &planar), 3);
    assert_int_equal(single_passes("gaussian=1.4", &rgb), 3);              // reads neighbours
    assert_int_equal(single_passes("invert,tee=a,gaussian=1.4", &rgb), 6); // a buffer, too
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_chain_is_one_pass_of_luma),
        cmocka_unit_test(untouched_planes_are_referenced),
        cmocka_unit_test(limits_cut_passes_and_buffers_are_shared),
        cmocka_unit_test(pointwise_runs_fold_into_one_table),
        cmocka_unit_test(tees_are_written_by_the_pass_that_makes_them_and_read_there),
        cmocka_unit_test(planes_go_to_any_number_of_pictures),
        cmocka_unit_test(whole_pictures_are_passes_between_plain_samples),
        cmocka_unit_test(sources_of_a_mix_go_through_tables),
        cmocka_unit_test(chains_that_do_nothing_are_the_identity),
        cmocka_unit_test(components_of_one_table_are_one_pass),
        cmocka_unit_test(alpha_and_fillers_are_spared),
        cmocka_unit_test(components_of_the_same_stencils_are_one_pass),
        cmocka_unit_test(what_differs_among_components_stays_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

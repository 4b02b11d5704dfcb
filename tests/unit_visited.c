// What a visitor of the page may ask for: texts of the present chain, numbers, and nothing else.
#include <stdlib.h>
#include <string.h>

#include "page/visited.h"
#include "tests/unit.h"

#define TEE "tee=output='rtmp://user:sesame@server/x'"
#define SHOWN "tee=output='rtmp://user:***@server/x'"

static struct chains chains_of(const char *text)
{
    struct chains chains = {0};
    assert_true(chains_note(&chains, text));
    return chains;
}

static void assert_admitted(const struct chains *chains, const char *text, const char *wanted)
{
    char why[1024], *admitted;
    enum status status = visited_chain(chains, text, &admitted, why, sizeof why);
    assert_int_equal(status, wanted ? STATUS_OK : STATUS_USAGE);
    if (wanted)
        assert_string_equal(admitted, wanted);
    else
        assert_null(admitted);
    free(admitted);
}

static void a_text_shown_without_its_secret_has_it_again(void **state)
{
    (void)state;
    struct chains chains = chains_of("gray," TEE);
    assert_admitted(&chains, SHOWN ",gray", TEE ",gray");
    assert_admitted(&chains, "invert,gray," TEE, "invert,gray," TEE);
    assert_admitted(&chains, "tee=rtmp://user:***@server/y", NULL);
    assert_admitted(&chains, "tee=rtmp://user:@server/x", NULL);
    assert_admitted(&chains, "stats='rtmp://user:***@server/x'", NULL);
    chains_finish(&chains);
}

static void a_filter_of_ffmpeg_is_what_it_means(void **state)
{
    (void)state;
    struct chains chains = chains_of("gray," TEE);
    assert_admitted(&chains, "format=gray,avgblur=3", "gray,box=radius=3");
    assert_admitted(&chains, "tee_cuda=x.mkv", NULL);
    assert_admitted(&chains, "tee_cuda='rtmp://user:***@server/x'", TEE);
    assert_admitted(&chains, "convolve_cuda=/etc/passwd", NULL);
    assert_admitted(&chains, "convolution=/etc/passwd", NULL);
    chains_finish(&chains);
}

static void options_are_admitted_one_by_one(void **state)
{
    char why[1024], *admitted;
    (void)state;
    struct chains chains = chains_of("wavelet=1:3:5," TEE);
    assert_admitted(&chains, "wavelet=3:7", "wavelet='3':'7'");
    assert_int_equal(visited_options(&chains, "wavelet.scales='2':'4'", &admitted, why, sizeof why),
                     0);
    assert_string_equal(admitted, "wavelet.scales='2':'4'");
    free(admitted);
    assert_int_equal(visited_options(&chains, SHOWN, &admitted, why, sizeof why), STATUS_USAGE);
    assert_int_equal(visited_options(&chains, "tee.output='rtmp://user:***@server/x'", &admitted,
                                     why, sizeof why),
                     STATUS_USAGE);
    chains_finish(&chains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_shown_without_its_secret_has_it_again),
        cmocka_unit_test(a_filter_of_ffmpeg_is_what_it_means),
        cmocka_unit_test(options_are_admitted_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

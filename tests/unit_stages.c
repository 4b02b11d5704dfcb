// Chain texts: read, refused, changed, printed, and without secrets; the tables of stages.
#include "tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "stages/chain/parser.h"

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
        {SECRETS_IN_SENTENCE, "rtsp://user:p'w@h/x is not 'rtsp://u:p\"w@h': rtsp://a'b@h",
         "rtsp://user:***@h/x is not 'rtsp://u:***@h': rtsp://***@h",
         "rtsp://user:***@h/x is not 'rtsp://u:***@h': rtsp://***@h"},
        // What looks like another address within a secret, and is the rest of it.
        {SECRETS_IN_NAME, "srt://h?passphrase=a://b&x=1", "srt://h?passphrase=***",
         "srt://h?passphrase=*********"},
        {SECRETS_IN_NAME, "srt://h?streamid=publish:cam:user://p&x=1", "srt://h?streamid=***",
         "srt://h?streamid=************************"},
        {SECRETS_IN_NAME, "rtsp://user://p@h", "rtsp://user:***@h", "rtsp://user:***@h"},
        {SECRETS_IN_CHAIN, "tee=srt://t@h:9,@a", "tee=srt://***@a", "tee=srt://******@a"},
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
    // A quote in a secret still encloses what follows, when it is an asterisk.
    char quoted[] = "a=rtmp://h/0123456789abcdef'srt://h?passphrase=a,b'";
    secrets_blank(quoted, SECRETS_IN_CHAIN);
    assert_string_equal(quoted, "a=rtmp://h/*****************srt://h?passphrase=***'");
}

static void keep_sentence(void *said, enum log_level level, const char *sentence)
{
    (void)level;
    snprintf(said, 2048, "%s", sentence);
}

static void secrets_leave_sentences_that_are_cut(void **state)
{
    (void)state;
    char said[2048] = "", password[1000];
    const struct log log = {keep_sentence, said};
    memset(password, 'p', sizeof password - 1);
    password[sizeof password - 1] = 0;
    for (int before = 0; before < 60; before++) { // the '@' is there, or is cut off
        log_print(&log, LOG_ERROR, "%*s rtsp://u:%s@h does not answer", before, "", password);
        assert_non_null(strstr(said, " rtsp://"));
        assert_null(strstr(said, "pp"));
    }
    assert_null(strstr(said, "answer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_leave_texts),
        cmocka_unit_test(secrets_leave_sentences_that_are_cut),
        cmocka_unit_test(chains_change_and_read_back),
        cmocka_unit_test(chains_that_are_none),
        cmocka_unit_test(chains_that_are),
        cmocka_unit_test(errors_are_marked_in_the_text),
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(files_of_a_chain_stay_or_go),
        cmocka_unit_test(chains_are_cut_behind_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

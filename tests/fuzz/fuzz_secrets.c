// Attacked: the one place that leaves secrets out of texts (base/secrets.h): bytes choose an address
// with a secret in it, letters of the secret, and what stands around.
//
// Must hold: the secret is in no copy, whole or cut, in nothing blanked, and in no sentence of the log,
// wherever that is cut; blanking moves nothing and overwrites what a copy replaces.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/secrets.h"
#include "tests/fuzz/fuzz.h"

// In the middle of each secret.
#define MARK "QzMARKzQ"
#define BEGINNING "QzM"

enum {
    MAX_LETTERS = 24,
    LONG = 1100
}; // of a secret around its mark; more than a sentence of the log

// The places of secrets.
struct place {
    const char *before, *after;
    const char *letters; // that a secret may have there
    int in_quotes;       // in a chain it has to be quoted
};

// A password that holds "://", unescaped, is not told from an address within the address.
#define PLAIN "abcXYZ019-._~!$+;%"
static const struct place places[] = {
    {"rtsp://user:", "@cam/1", PLAIN "/,@()&", 0},
    {"rtsp://user:", "@cam:554/1?x=1", PLAIN "/,@()&", 0},
    {"rtmps://user:", "@h/live/x", PLAIN "/,@()&", 0},
    {"http://user:", "@h/a.m3u8", PLAIN ",:@()&", 0},
    {"srt://t", "@h:9", PLAIN "()&", 0},
    {"srt://h:9?mode=caller&passphrase=", "&x=1", PLAIN "@/()?#=", 0},
    {"srt://h:9?passphrase=", "", PLAIN "@/()?#=,", 1},
    {"srt://h?streamid=publish:cam:user:", "&x=1", PLAIN "@/()?#=", 0},
    {"https://h/p?access_token=", "&y=2#z", PLAIN "@/()?#=", 0},
    {"http://h/p?x=1&X-Amz-Signature=", "", PLAIN "@/()?#=", 0},
    {"rtmp://h/live?Key=", "", PLAIN "@/()?#=", 0},
    {"rtmp://a.example/live2/0123456789abcdef", "", PLAIN, 0},
    {"rtmp://a.example/app/0123456789abcdef", "?x=1", PLAIN, 0},
};

static char *append(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    return to + length;
}

static char *append_letters(char *to, const char *letters, struct fuzz_bytes *bytes)
{
    for (int left = fuzz_below(bytes, MAX_LETTERS); left > 0; left--)
        *to++ = letters[fuzz_below(bytes, (int)strlen(letters))];
    return to;
}

// An address with its secret, between what is left of the bytes; the caller frees it.
static char *make_text(const struct place *place, enum secrets_in in, struct fuzz_bytes *bytes)
{
    int padding = fuzz_byte(bytes) & 1 ? fuzz_below(bytes, LONG) : 0;
    bool quoted = place->in_quotes && in == SECRETS_IN_CHAIN;
    char secret[2 * MAX_LETTERS + sizeof MARK],
        *end = append_letters(secret, place->letters, bytes);
    end = append_letters(append(end, MARK, strlen(MARK)), place->letters, bytes);
    size_t length = (size_t)(end - secret), first = bytes->left / 2;
    char *text = calloc(bytes->left + (size_t)padding + length + 128, 1), *to = text;
    FUZZ_REQUIRE(text);
    to = append(to, (const char *)bytes->at, first);
    memset(to, 'x', (size_t)padding);
    to = append(to + padding, quoted ? "tee='" : " ", quoted ? 5 : 1);
    to = append(to, place->before, strlen(place->before));
    to = append(to, secret, length);
    to = append(to, place->after, strlen(place->after));
    if (in != SECRETS_IN_NAME) { // where the address is the end
        *to++ = quoted ? '\'' : in == SECRETS_IN_CHAIN ? ',' : ' ';
        append(to, (const char *)bytes->at + first, bytes->left - first);
    }
    for (char *c = text; c < to; c++)
        *c = *c ? *c : '0';
    // A quote that is open encloses the address, and closes within it.
    if (in == SECRETS_IN_CHAIN)
        for (size_t k = 0; k < first; k++)
            text[k] = strchr("'\"", text[k]) ? '`' : text[k];
    return text;
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    return count;
}

// True if fewer marks are shown than there are; else both texts are printed.
static bool hides(const char *shown, const char *text, const char *what)
{
    bool fewer = count_of(shown, what) < count_of(text, what);
    if (!fewer)
        fprintf(stderr, "[%s]\nis shown as\n[%s]\n", text, shown);
    return fewer;
}

static void check_copies(const char *text, enum secrets_in in)
{
    char *copy = secrets_dup(text, in), *blank = strdup(text);
    size_t length = strlen(text);
    char *cut = malloc(length + 1);
    FUZZ_REQUIRE(copy && blank && cut);
    FUZZ_REQUIRE(hides(copy, text, MARK));
    secrets_blank(blank, in);
    FUZZ_REQUIRE(hides(blank, text, MARK) && strlen(blank) == length);
    for (size_t k = 0; k < length; k++)
        FUZZ_REQUIRE(blank[k] == text[k] || blank[k] == '*');
    secrets_copy(text, in, cut, length / 2 + 1);
    FUZZ_REQUIRE(strlen(cut) <= length / 2 && !strncmp(cut, copy, strlen(cut)));
    free(copy), free(blank), free(cut);
}

static void keep(void *said, enum log_level level, const char *sentence)
{
    (void)level;
    snprintf(said, LONG, "%s", sentence);
}

// A sentence of the log may be cut in the middle of the secret, ahead of what tells that it is one.
static void check_log(const char *text)
{
    char said[LONG] = "";
    const struct log log = {.print = keep, .opaque = said};
    log_print(&log, LOG_ERROR, "%s", text);
    FUZZ_REQUIRE(hides(said, text, BEGINNING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum secrets_in all[] = {SECRETS_IN_NAME, SECRETS_IN_CHAIN, SECRETS_IN_SENTENCE};
    struct fuzz_bytes bytes = {data, size};
    const struct place *place = &places[fuzz_below(&bytes, sizeof places / sizeof *places)];
    enum secrets_in in = all[fuzz_below(&bytes, 3)];
    char *text = make_text(place, in, &bytes);
    check_copies(text, in);
    if (in == SECRETS_IN_SENTENCE)
        check_log(text);
    free(text);
    return 0;
}

#include "page/visited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "pipeline/input/picture.h"
#include "stages/stage.h"

// ---- values of the present chain ----

// The chain that a visitor's may take texts over from.
struct present {
    struct chain_guard guard;
    const struct chain *chain;
    bool by_shown; // also of texts as the page shows them, without their secrets
    char *taken;   // a text of the chain's, as it is
};

// True if `text` is what `value` is shown as.
static bool is_shown_as(const char *value, const char *text)
{
    char *in_chain = secrets_dup(value, SECRETS_IN_CHAIN);
    char *in_name = secrets_dup(value, SECRETS_IN_NAME);
    bool same = (in_chain && !strcmp(in_chain, text)) || (in_name && !strcmp(in_name, text));
    free(in_chain);
    free(in_name);
    return same;
}

// Take over one value, of `length` bytes, if `text` means it.
static bool take_value(struct present *present, const char *value, size_t length, const char **text)
{
    char *one = strndup(value, length);
    bool same = one && !strcmp(one, *text);
    bool shown = one && !same && present->by_shown && is_shown_as(one, *text);
    if (shown) {
        free(present->taken);
        *text = present->taken = one;
        return true;
    }
    free(one);
    return same;
}

// True if the present chain has this text at this option.
static bool take_text(struct present *present, const struct chain_link *link, int index,
                      const char **text)
{
    const struct stage_option *option = &link->stage->option[index];
    const char *value = link->given[index];
    if (!value)
        value = *(char *const *)((const char *)link->options + option->offset);
    while (value && *value) {
        size_t length = option->many ? strcspn(value, "\n") : strlen(value);
        if (take_value(present, value, length, text))
            return true;
        value += length + (value[length] != 0);
    }
    return false;
}

// Rows of weights and the like. What begins so and is none of them is no file that matters.
static bool is_numbers(const char *text)
{
    return !text[strspn(text, "0123456789.+-eE/ \t")];
}

// Texts that are numbers, and what the present chain has.
static bool admits(const struct chain_guard *guard, const struct stage *stage,
                   const struct stage_option *option, const char **text, char *why, size_t size)
{
    struct present *present = (struct present *)guard;
    bool file = option->writes != WRITES_NOTHING || option->patterns;
    if (!file && is_numbers(*text))
        return true;
    for (int k = 0; k < present->chain->links; k++) {
        const struct chain_link *link = &present->chain->link[k];
        if (link->stage == stage && take_text(present, link, (int)(option - stage->option), text))
            return true;
    }
    snprintf(why, size,
             "the page may not name files, and '%.100s' of %s may be one; name it where sluice is "
             "started",
             *text, stage->name);
    return false;
}

// ---- what visitors ask for ----

// Takes the chain; *admitted is its text.
static enum status end(struct present *present, enum status status, struct chain *chain,
                       const struct chain_error *error, const char *text, char **admitted,
                       char *why, size_t size)
{
    *admitted = status ? NULL : chain_text(chain);
    if (!status && !*admitted)
        status = STATUS_MEMORY;
    if (status == STATUS_USAGE)
        chain_error_describe(error, text, why, size);
    else if (status)
        snprintf(why, size, "%s", sluice_status_name((enum sluice_status)status));
    chain_free(chain);
    free(present->taken);
    return status;
}

enum status visited_chain(const struct chains *chains, const char *text, char **admitted, char *why,
                          size_t size)
{
    struct present present = {{admits}, &chains->chain, .by_shown = true};
    const struct chain_source source = {.reader = &picture_reader,
                                        .guard = &present.guard,
                                        .others = &chains->chain,
                                        .count = chains->text != NULL};
    struct chain_error error = {.length = (int)strlen(text)};
    struct chain chain = {0};
    enum status status = chain_parse_from(text, &source, &chain, &error);
    return end(&present, status, &chain, &error, text, admitted, why, size);
}

enum status visited_options(const struct chains *chains, const char *text, char **admitted,
                            char *why, size_t size)
{
    struct present present = {{admits}, &chains->chain};
    struct chain_error error = {.length = (int)strlen(text)};
    struct chain chain = {0};
    enum status status = chain_copy(&chains->chain, &chain);
    chain.reader = &picture_reader; // an empty chain's, too
    if (!status)
        status = chain_set_guarded(&chain, &present.guard, text, &error);
    status = end(&present, status, &chain, &error, text, admitted, why, size);
    free(*admitted);
    *admitted = status ? NULL : strdup(text);
    return status || *admitted ? status : STATUS_MEMORY;
}

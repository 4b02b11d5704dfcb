#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "stages/chain/parser.h"

// The option of a stage that names a file to be written; NULL: there is none.
static const struct stage_option *written_option(const struct stage *stage)
{
    for (int n = 0; n < stage_options(stage); n++)
        if (stage->option[n].writes)
            return &stage->option[n];
    return NULL;
}

bool link_writes(const struct chain_link *link, enum option_writes writes)
{
    const struct stage_option *option = written_option(link->stage);
    return option && option->writes == writes;
}

int chain_files(const struct chain *chain, enum option_writes writes, struct chain_file *list,
                int max)
{
    assert(list || !max);
    int count = 0;
    for (int k = 0; k < chain->links; k++) {
        const struct chain_link *link = &chain->link[k];
        const struct stage_option *option = written_option(link->stage);
        if (!link_writes(link, writes))
            continue;
        if (count < max)
            list[count] =
                (struct chain_file){link->stage, option, *member_text(option, link->options)};
        count++;
    }
    return count;
}

enum status chain_redirect(struct chain *chain, int index, const char *name)
{
    for (int k = 0; k < chain->links; k++) {
        const struct chain_link *link = &chain->link[k];
        if (!link_writes(link, WRITES_RECORDS) || index--)
            continue;
        char **text = member_text(written_option(link->stage), link->options);
        char *copy = *text ? strdup(name) : NULL;
        if (*text && !copy)
            return STATUS_MEMORY;
        free(*text);
        *text = copy;
        return STATUS_OK;
    }
    return STATUS_OK;
}

void chain_mute(struct chain *chain)
{
    int kept = 0;
    for (int k = 0; k < chain->links; k++) {
        struct chain_link *link = &chain->link[k];
        const struct stage_option *option = written_option(link->stage);
        if (option && option->writes == WRITES_PICTURES) {
            link_finish(link);
            continue;
        }
        if (option) {
            char **text = member_text(option, link->options);
            free(*text);
            *text = NULL;
        }
        chain->link[kept++] = *link;
    }
    chain->links = kept;
}

// The next stage from number *k on that writes a file, with its name.
static const struct stage *next_writer(const struct chain *chain, int *k, const char **name)
{
    for (; *k < chain->links; ++*k) {
        const struct chain_link *link = &chain->link[*k];
        const struct stage_option *option = written_option(link->stage);
        if (!option)
            continue;
        *name = *member_text(option, link->options);
        if (!*name) // records without a file may come and go
            continue;
        ++*k;
        return link->stage;
    }
    return NULL;
}

// True if `shown` is the name without its secrets.
static bool is_shown_as(const char *name, const char *shown)
{
    char *made = secrets_dup(name, SECRETS_IN_NAME);
    bool same = made && !strcmp(made, shown);
    free(made);
    return same;
}

// True if two names are one, where one of them may have been shown without its secrets.
static bool is_same_file(const char *a, const char *b)
{
    return !strcmp(a, b) || is_shown_as(a, b) || is_shown_as(b, a);
}

bool chain_writes_alike(const struct chain *chain, const struct chain *like,
                        struct chain_error *error)
{
    const struct stage *a, *b;
    const char *name = "", *other = "";
    int k = 0, n = 0;
    do {
        a = next_writer(chain, &k, &name);
        b = next_writer(like, &n, &other);
    } while (a && a == b && is_same_file(name, other));
    if (!a && !b)
        return true;
    const struct stage *named = a ? a : b;
    const char *file = a ? name : other;
    char public_name[256];
    secrets_copy(file, SECRETS_IN_NAME, public_name, sizeof public_name);
    *error = (struct chain_error){0};
    snprintf(error->message, sizeof error->message,
             "%s=%s cannot be %s while a job runs, as it writes a file; begin another job",
             named->name, public_name,
             a == b ? "changed"
             : a    ? "added"
                    : "left out");
    return false;
}

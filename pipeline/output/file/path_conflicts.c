#include "pipeline/output/file/path_conflicts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/url.h"

struct names {
    char **name;
    int count;
};

struct path_conflicts {
    struct names written, read;
};

// True if the chain has a pattern from this file.
static bool is_pattern(const struct chain *chain, const char *name)
{
    for (int k = 0; k < chain->links; k++) {
        const struct pattern_set *set = chain_patterns(&chain->link[k]);
        for (int t = 0; set && t < set->count; t++)
            if (urls_collide(set->pattern[t].name, name))
                return true;
    }
    return false;
}

// True if the chain has a text from this file.
static bool is_text(const struct chain *chain, const char *name)
{
    for (int k = 0; k < chain->links; k++)
        for (int n = 0; n < STAGE_OPTIONS; n++)
            if (chain->link[k].given[n] && urls_collide(chain->link[k].given[n], name))
                return true;
    return false;
}

// The kind of input that a chain reads from this file; NULL: none.
static const char *reading(const struct chain *chain, const char *name)
{
    return is_pattern(chain, name) ? "template" : is_text(chain, name) ? "kernel" : NULL;
}

static enum status add_name(struct names *names, const char *name)
{
    char **list = realloc(names->name, (size_t)(names->count + 1) * sizeof *list);
    if (!list)
        return STATUS_MEMORY;
    names->name = list;
    list[names->count] = strdup(name);
    return list[names->count] ? names->count++, STATUS_OK : STATUS_MEMORY;
}

static void free_names(struct names *names)
{
    for (int k = 0; k < names->count; k++)
        free(names->name[k]);
    free(names->name);
}

static bool is_input(const struct path_conflicts *conflicts, const char *name)
{
    for (int k = 0; k < conflicts->read.count; k++)
        if (strcmp(name, "-") && urls_collide(conflicts->read.name[k], name))
            return true;
    return false;
}

static bool is_claimed(const struct path_conflicts *conflicts, const char *name)
{
    const struct names *written = &conflicts->written;
    for (int k = 0; k < written->count; k++)
        if (urls_are_same(name, written->name[k]) || urls_collide(written->name[k], name))
            return true;
    return false;
}

static enum status refuse(const struct log *log, const char *read, const char *name)
{
    char shown[4300];
    url_without_secrets(name, shown, sizeof shown);
    return read ? log_fail(log, STATUS_USAGE,
                           "%s and output are the same file, %s; name another output", read, shown)
                : log_fail(log, STATUS_USAGE, "%s is named twice as an output", shown);
}

enum status path_conflicts_create(struct path_conflicts **conflicts)
{
    *conflicts = calloc(1, sizeof **conflicts);
    return *conflicts ? STATUS_OK : STATUS_MEMORY;
}

void path_conflicts_destroy(struct path_conflicts **conflicts)
{
    if (!*conflicts)
        return;
    free_names(&(*conflicts)->written);
    free_names(&(*conflicts)->read);
    free(*conflicts);
    *conflicts = NULL;
}

enum status path_conflicts_add_input(struct path_conflicts *conflicts, const char *name)
{
    return add_name(&conflicts->read, strcmp(name, "-") ? name : "/dev/stdin");
}

enum status path_conflicts_add_output(struct path_conflicts *conflicts, const struct chain *chain,
                                      const char *name, const struct log *log)
{
    assert(name);
    const char *read = is_input(conflicts, name) ? "input" : reading(chain, name);
    if (read || is_claimed(conflicts, name))
        return refuse(log, read, name);
    return add_name(&conflicts->written, name);
}

enum status path_conflicts_check_chain(const struct path_conflicts *conflicts,
                                       const struct chain *chain, const struct log *log)
{
    char shown[4300];
    for (int k = 0; k < conflicts->written.count; k++) {
        const char *name = conflicts->written.name[k], *read = reading(chain, name);
        url_without_secrets(name, shown, sizeof shown);
        if (read)
            return log_fail(log, STATUS_USAGE,
                            "%s and output are the same file, %s; name another one", read, shown);
    }
    return STATUS_OK;
}

enum status path_conflicts_check_file(const struct path_conflicts *conflicts, const char *name,
                                      const struct log *log)
{
    bool input = is_input(conflicts, name);
    return input || is_claimed(conflicts, name) ? refuse(log, input ? "input" : NULL, name)
                                                : STATUS_OK;
}

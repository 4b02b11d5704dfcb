// `--journal FILE`: which chain filtered from when on, a line of JSON each. `--replay FILE` does
// the same again.
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"

void journal_changed(void *settings_, int64_t pts_us, const char *chain)
{
    assert(settings_ && chain);
    struct settings *settings = settings_;
    if (!settings->journal_file)
        return;
    char *shown = sluice_public_chain(chain);
    json_t *line =
        json_pack("{s:I, s:s}", "pts_us", (json_int_t)pts_us, "chain", shown ? shown : "");
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (text) {
        text[size++] = '\n'; // in the place of the end
        sluice_file_write(settings->journal_file, text, size);
    }
    if (!shown || !text || sluice_file_publish(settings->journal_file))
        settings->journal_failed = true;
    settings->journal_begun = true;
    free(text);
    json_decref(line);
    free(shown);
}

bool journal_open(struct settings *settings)
{
    if (!settings->journal)
        return true;
    if (sluice_file_create(&settings->config, settings->journal, &settings->journal_file))
        return false;
    // Names of files are in it: nobody else reads it.
    sluice_file_hide(settings->journal_file);
    return true;
}

bool journal_close(struct settings *settings)
{
    if (!settings->journal_begun)
        sluice_file_discard(&settings->journal_file);
    return !settings->journal_file ||
           (!sluice_file_commit(&settings->journal_file) && !settings->journal_failed);
}

// ---- reading one ----

static bool add_change(struct settings *settings, const json_t *line)
{
    json_int_t pts_us;
    const char *chain;
    int count = settings->change_count;
    if (json_unpack((json_t *)line, "{s:I, s:s}", "pts_us", &pts_us, "chain", &chain))
        return false;
    struct sluice_change *list =
        realloc(settings->changes, (size_t)(count + 2) * sizeof *settings->changes);
    if (!list)
        return false;
    settings->changes = list;
    list[count] = (struct sluice_change){.pts_us = pts_us, .chain = strdup(chain)};
    list[count + 1] = (struct sluice_change){0};
    settings->change_count++;
    return list[count].chain;
}

static bool read_lines(struct settings *settings, FILE *file, int *number)
{
    char *line = NULL;
    size_t room = 0;
    bool fine = true;
    while (fine && getline(&line, &room, file) >= 0) {
        json_t *change = json_loads(line, 0, NULL);
        ++*number;
        fine = change && add_change(settings, change);
        json_decref(change);
    }
    free(line);
    return fine && *number > 0 && !ferror(file);
}

// True if an address in it has lost its secrets: a journal is written without.
static bool lacks_secrets(const char *chain)
{
    const char *address = strstr(chain, "://");
    return address && strstr(address, "***");
}

bool journal_read(struct settings *settings)
{
    if (!settings->replay)
        return true;
    FILE *file = fopen(settings->replay, "r");
    int number = 0;
    bool fine = file && read_lines(settings, file, &number);
    if (!file)
        fprintf(stderr, "sluice: %s is no journal: %s\n", settings->replay, strerror(errno));
    else if (!fine)
        fprintf(stderr,
                "sluice: %s is no journal: line %d is not {\"pts_us\": ..., \"chain\": "
                "...}\n",
                settings->replay, number);
    if (file)
        fclose(file);
    settings->config.changes = settings->changes;
    if (fine && !settings->config.chain && lacks_secrets(settings->changes[0].chain)) {
        fprintf(stderr,
                "sluice: the journal %s has an address without its password; give the chain that "
                "it begins with, by -f\n",
                settings->replay);
        return false;
    }
    if (fine && !settings->config.chain) // the files that its chains write are opened at the start
        settings->config.chain = settings->changes[0].chain;
    return fine;
}

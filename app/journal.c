// `--journal FILE`: which chain filtered from when on, a line of JSON each. `--replay FILE` does
// the same again.
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "control/buffer.h"

void journal_changed(void *settings_, int64_t pts_us, const char *chain)
{
    assert(settings_ && chain);
    struct settings *settings = settings_;
    if (!settings->journal_file || settings->journal_failed)
        return;
    char *shown = sluice_public_chain(chain);
    json_t *line =
        json_pack("{s:I, s:s}", "pts_us", (json_int_t)pts_us, "chain", shown ? shown : "");
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (shown && text) {
        text[size++] = '\n'; // in the place of the end
        sluice_file_write(settings->journal_file, text, size);
    }
    if (!shown || !text)
        fprintf(stderr, "sluice: out of memory for %s\n", settings->journal);
    if (!shown || !text || sluice_file_publish(settings->journal_file))
        settings->journal_failed = true;
    settings->journal_begun |= !settings->journal_failed;
    free(text);
    json_decref(line);
    free(shown);
}

static bool open_as(struct settings *settings, const struct sluice_config *config)
{
    if (!settings->journal)
        return true;
    if (sluice_file_create(config, settings->journal, &settings->journal_file))
        return false;
    // Names of files are in it: nobody else reads it.
    sluice_file_hide(settings->journal_file);
    return true;
}

bool journal_open(struct settings *settings)
{
    return open_as(settings, &settings->config);
}

// The first try found the journal's name to be none of the run's other files; now there is a file of it,
// which the next try's check would refuse to replace.
static void release_name(struct settings *settings)
{
    const char **to = settings->reserved_outputs;
    for (const char *const *from = settings->reserved_outputs; *from; from++)
        if (*from != settings->journal)
            *to++ = *from;
    *to = NULL;
}

bool journal_begin_again(struct settings *settings)
{
    struct sluice_config config = settings->config;
    config.overwrite = true; // what is there is the first try's
    bool closed = journal_close(settings);
    settings->journal_begun = false;
    release_name(settings);
    return closed && open_as(settings, &config);
}

bool journal_close(struct settings *settings)
{
    if (!settings->journal_begun)
        sluice_file_discard(&settings->journal_file);
    bool whole = !settings->journal_file || !sluice_file_commit(&settings->journal_file);
    return whole && !settings->journal_failed;
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

// Limits of a journal that is read: a chain with the largest kernel makes a line of 5 MiB, and a slider
// that moves for a day 864,000 lines. A device or a pipe without an end goes beyond them.
enum { MAX_LINE = 64 << 20, MAX_CHANGES = 1000000 };

// Read the next line, its end left out; `line` is empty, and *there false, where the file has ended.
// `why` gets a sentence where it is longer than MAX_LINE, or there is no memory for it.
static bool read_line(FILE *file, struct buffer *line, bool *there, const char **why)
{
    int byte;
    line->size = 0;
    while ((byte = getc_unlocked(file)) != EOF && byte != '\n' && !*why) {
        char letter = (char)byte;
        if (line->size == MAX_LINE)
            *why = "is longer than 64 MiB";
        else if (!buffer_add(line, &letter, 1))
            *why = "cannot be read: there is no memory";
    }
    *there = byte != EOF || line->size;
    return !*why;
}

// False with what is wrong with line *number, in `why`.
static bool read_lines(struct settings *settings, FILE *file, int *number, const char **why)
{
    struct buffer line = {0};
    bool there = true;
    *why = NULL;
    while (there && read_line(file, &line, &there, why) && there) {
        json_t *change = json_loadb(line.data ? line.data : "", line.size, 0, NULL);
        // A line that a power cut has torn may have any of its bytes, but no end.
        bool torn = !change && feof(file) && *number > 1;
        if (torn)
            fprintf(stderr,
                    "sluice: line %d of %s has no end, as after a power cut, and is left out\n",
                    *number, settings->replay);
        else if (*number > MAX_CHANGES)
            *why = "is one more than the 1000000 that a journal may have";
        else if (!change || !add_change(settings, change))
            *why = "is not {\"pts_us\": ..., \"chain\": ...}";
        json_decref(change);
        there = !*why && !torn;
        *number += there;
    }
    buffer_free(&line);
    if (!*why && (*number == 1 || ferror(file)))
        *why = "is not {\"pts_us\": ..., \"chain\": ...}";
    return !*why;
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
    int number = 1;
    const char *why;
    bool fine = file && read_lines(settings, file, &number, &why);
    if (!file)
        fprintf(stderr, "sluice: %s is no journal: %s\n", settings->replay, strerror(errno));
    else if (!fine)
        fprintf(stderr, "sluice: %s is no journal: line %d %s\n", settings->replay, number, why);
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

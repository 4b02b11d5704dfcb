#include "control/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

json_t *text_json(const char *text)
{
    json_t *json = text ? json_string(text) : json_null();
    char *ascii = json ? NULL : strdup(text);
    for (char *at = ascii; at && *at; at++)
        if (*at & 0x80)
            *at = '?';
    if (ascii)
        json = json_string(ascii);
    free(ascii);
    return json;
}

const char *(*verbs_explain)(const char *why);

json_t *verb_refusal(const char *why)
{
    char both[1536];
    const char *more = verbs_explain ? verbs_explain(why) : NULL;
    int length = (int)strcspn(why, "\n"); // a chain with the place marked may follow
    if (more)
        snprintf(both, sizeof both, "%.*s; %s%s", length, why, more, why + length);
    return json_pack("{s:b, s:o}", "ok", 0, "error", text_json(more ? both : why));
}

json_t *chain_json(struct sluice_job *job)
{
    char *chain = sluice_job_chain(job), *shown = chain ? sluice_public_chain(chain) : NULL;
    json_t *answer = json_pack("{s:b, s:o}", "ok", 1, "chain", text_json(shown ? shown : ""));
    free(chain);
    free(shown);
    return answer;
}

static json_t *refuse(enum sluice_status status, const char *why)
{
    return verb_refusal(*why ? why : sluice_status_name(status));
}

// ---- the verbs ----

static json_t *get(struct sluice_job *job, const char *rest)
{
    (void)rest;
    return chain_json(job);
}

static json_t *set(struct sluice_job *job, const char *rest)
{
    char why[1024];
    enum sluice_status status = sluice_job_set(job, rest, why, sizeof why);
    return status ? refuse(status, why) : chain_json(job);
}

static json_t *chain(struct sluice_job *job, const char *rest)
{
    char why[1024];
    enum sluice_status status = sluice_job_set_chain(job, rest, why, sizeof why);
    return status ? refuse(status, why) : chain_json(job);
}

static json_t *stats(struct sluice_job *job, const char *rest)
{
    (void)rest;
    return stats_json(job);
}

static json_t *snapshot(struct sluice_job *job, const char *rest)
{
    char why[1024];
    bool overwrite = !strcmp(rest, "-y") || !strncmp(rest, "-y ", 3);
    rest += overwrite ? 2 : 0;
    rest += strspn(rest, " ");
    if (!*rest)
        return verb_refusal("the file to write is missing here: snapshot -y FILE");
    enum sluice_status status = sluice_job_snapshot(job, rest, overwrite, why, sizeof why);
    return status ? refuse(status, why) : json_pack("{s:b}", "ok", 1);
}

static json_t *quit(struct sluice_job *job, const char *rest)
{
    (void)rest;
    sluice_job_stop(job);
    return json_pack("{s:b}", "ok", 1);
}

const struct verb verbs[] = {
    {"get", "", "the chain, without the secrets of its addresses", get},
    {"set", "STAGE.OPTION=VALUE", "other options from the next frame on, all at once", set},
    {"chain", "CHAIN", "another chain from the next frame on", chain},
    {"stats", "", "how it goes", stats},
    {"snapshot", "FILE", "write the next picture into an image file; -y FILE replaces one",
     snapshot},
    {"quit", "", "stop, as SIGINT does", quit},
    {NULL},
};

// ---- the table ----

// "the commands are get, set STAGE.OPTION=VALUE, ... and quit"
static json_t *refuse_verb(void)
{
    char text[512] = "the commands are ";
    size_t size = strlen(text);
    for (const struct verb *verb = verbs; verb->name; verb++) {
        const char *before = verb == verbs ? "" : verb[1].name ? ", " : " and ";
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s%s%s", before, verb->name,
                                 *verb->arguments ? " " : "", verb->arguments);
        assert(size < sizeof text);
    }
    return verb_refusal(text);
}

// Refuse a verb that takes arguments and has none, as `chain` alone is no wish for a chain without stages; or the
// other way round.
static json_t *refuse_arguments(const struct verb *verb)
{
    char text[128];
    if (*verb->arguments)
        snprintf(text, sizeof text, "%s takes an argument: %s %s", verb->name, verb->name,
                 verb->arguments);
    else
        snprintf(text, sizeof text, "%s takes no arguments", verb->name);
    return verb_refusal(text);
}

json_t *verb_answer(struct sluice_job *job, char *line)
{
    assert(job && line);
    char *rest = line + strcspn(line, " \t");
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " \t");
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (!strcmp(line, verb->name))
            return !*rest == !*verb->arguments ? verb->answer(job, rest) : refuse_arguments(verb);
    return refuse_verb();
}

void verbs_write(FILE *to)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        fprintf(to, "%s%s", verb == verbs ? "" : " ", verb->name);
}

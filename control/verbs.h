// Verbs: what a running job may be asked, by the control socket and by the control page, and the
// answers as JSON. One table, from which the words of completions come, too.
//
// An answer is an object with "ok", and with "error", a sentence, where that is false. It is the
// caller's; NULL without memory. Any thread, while the job exists.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "sluice/sluice.h"

struct verb {
    const char *name;      // NULL ends the table
    const char *arguments; // "" for none
    const char *help;      // one sentence without a full stop
    json_t *(*answer)(struct sluice_job *job, const char *rest);
};
extern const struct verb verbs[];

// Answer a line, "set gaussian.sigma=2"; cuts it in two. A verb that there is not is refused with a
// list of those that there are.
json_t *verb_answer(struct sluice_job *job, char *line);

// Write the names of all verbs, separated by spaces.
void verbs_write(FILE *to);

// A text as JSON has it: of one that is no UTF-8, as names of files may be, the bytes that are no
// ASCII are question marks. NULL is null.
json_t *text_json(const char *text);

// (optional) What is to be added to a refusal; NULL: nothing. Set ahead of every thread.
extern const char *(*verbs_explain)(const char *why);

// {"ok":false,"error":why}
json_t *verb_refusal(const char *why);

// {"ok":true,"chain":...}, without secrets.
json_t *chain_json(struct sluice_job *job);

// {"ok":true} and figures, by the names of the closing summary.
json_t *stats_json(const struct sluice_job *job);

// All stages and their options: [{"name","alias","summary","formula","source","options":[{"name",
// "type","help","unit","required","many","file","initial","min","max","choices","derived"}]}].
// Members that a stage or an option has not are left out.
json_t *stages_json(void);

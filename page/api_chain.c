// Stages and the chain: /api/stages, /api/chain, /api/options, /api/undo, /api/redo.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/verbs.h"
#include "page/api.h"
#include "page/visited.h"

static void answer_stages(void *page, const struct http_call *call, struct http_answer *answer)
{
    (void)page, (void)call;
    api_say(answer, 200, json_pack("{s:b, s:o}", "ok", 1, "stages", stages_json()));
}

// ---- the chain ----

static void say_chain_locked(struct page *page, struct http_answer *answer)
{
    api_say(answer, 200, chains_json(&page->chains));
}

static void answer_chain(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    (void)call;
    monitor_lock(&page->lock);
    page_catch_up_locked(page);
    say_chain_locked(page, answer);
    monitor_unlock(&page->lock);
}

// A change of the chain: `text` is the new one, or options; NULL for undo and redo.
typedef enum status change_chain(struct chains *chains, struct sluice_job *job, const char *text,
                                 char *why, size_t size);

static enum status undo(struct chains *chains, struct sluice_job *job, const char *text, char *why,
                        size_t size)
{
    (void)text;
    return chains_undo(chains, job, why, size);
}

static enum status redo(struct chains *chains, struct sluice_job *job, const char *text, char *why,
                        size_t size)
{
    (void)text;
    return chains_redo(chains, job, why, size);
}

static unsigned code_of(enum status status)
{
    return status == STATUS_EOF ? 409 : status == STATUS_MEMORY ? 503 : 422;
}

// The check of what a visitor asks for, visited.h; NULL: nothing is asked for.
typedef enum status check_visited(const struct chains *chains, const char *text, char **admitted,
                                  char *why, size_t size);

static void change(struct page *page, check_visited *check, change_chain *how, const char *text,
                   struct http_answer *answer)
{
    char why[1024] = "", *admitted = NULL;
    monitor_lock(&page->lock);
    page_catch_up_locked(page);
    enum status status = check ? check(&page->chains, text, &admitted, why, sizeof why) : STATUS_OK;
    if (!status)
        status = how(&page->chains, page->job, admitted, why, sizeof why);
    if (!status) {
        page->asked |= !page->job;
        page_show_chain_locked(page);
        say_chain_locked(page, answer);
    }
    monitor_unlock(&page->lock);
    free(admitted);
    if (status)
        http_say_error(answer, code_of(status),
                       *why ? why : sluice_status_name((enum sluice_status)status));
}

static void answer_put(void *page, const struct http_call *call, struct http_answer *answer)
{
    json_t *body = api_body(call, (const char *const[]){"chain", NULL}, answer);
    const char *text = body ? api_text(body, "chain", answer) : NULL;
    if (text)
        change(page, visited_chain, chains_put, text, answer);
    json_decref(body);
}

static void answer_undo(void *page, const struct http_call *call, struct http_answer *answer)
{
    (void)call;
    change(page, NULL, undo, NULL, answer);
}

static void answer_redo(void *page, const struct http_call *call, struct http_answer *answer)
{
    (void)call;
    change(page, NULL, redo, NULL, answer);
}

// ---- options ----

// True if a name can only be "stage.option" or "stage#2.option".
static bool is_option(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t stage = strspn(name, letters);
    const char *at = name + stage;
    size_t number = *at == '#' ? strspn(at + 1, "0123456789") : 0;
    if (*at == '#' && !number)
        return false;
    at += number ? number + 1 : 0;
    return stage && *at == '.' && at[1] && !at[1 + strspn(at + 1, letters)];
}

// A number in as few digits as say it exactly.
static void print_real(FILE *to, double value)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, to);
}

// A value as chains have it, texts in quotes; false for what is none.
static bool print_value(FILE *to, const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        print_real(to, json_real_value(value));
    else if (text && *text && !strchr(text, '\''))
        fprintf(to, "'%s'", text);
    else if (text && *text && !strchr(text, '"'))
        fprintf(to, "\"%s\"", text);
    else
        return false;
    return true;
}

// A value, or those of an option that takes many: 'a':'b'.
static bool print_values(FILE *to, const json_t *value)
{
    size_t at;
    const json_t *one;
    if (!json_is_array(value))
        return print_value(to, value);
    json_array_foreach(value, at, one)
    {
        fputs(at ? ":" : "", to);
        if (!print_value(to, one))
            return false;
    }
    return json_array_size(value) > 0;
}

// Print "gaussian.sigma=2,threshold.t1=30"; false, and answered, for what cannot be printed.
static bool print_options(FILE *to, json_t *body, struct http_answer *answer)
{
    const char *name, *before = "";
    json_t *value;
    json_object_foreach(body, name, value)
    {
        if (!is_option(name)) {
            api_refuse(answer, 400,
                       "'%.100s' is no option; one is called \"gaussian.sigma\", or "
                       "\"gaussian#2.sigma\" of the second stage of that name",
                       name);
            return false;
        }
        fprintf(to, "%s%s=", before, name);
        before = ",";
        if (!print_values(to, value)) {
            api_refuse(answer, 400,
                       "the value of '%.100s' is neither a number nor a text, nor a list of them",
                       name);
            return false;
        }
    }
    if (!*before)
        api_refuse(answer, 400, "no option is given; one is {\"gaussian.sigma\":2}");
    return *before;
}

static void answer_options(void *page, const struct http_call *call, struct http_answer *answer)
{
    char *text = NULL;
    size_t size = 0;
    json_t *body = api_body(call, NULL, answer);
    if (!body)
        return;
    FILE *to = open_memstream(&text, &size);
    bool printed = to && print_options(to, body, answer);
    if (to)
        fclose(to);
    if (printed && text)
        change(page, visited_options, chains_set, text, answer);
    free(text);
    json_decref(body);
}

const struct http_page chain_pages[] = {
    {"GET", "/api/stages", answer_stages},
    {"GET", "/api/chain", answer_chain},
    {"PUT", "/api/chain", answer_put, .body_max = BODY_MAX},
    {"PATCH", "/api/options", answer_options, .body_max = BODY_MAX},
    {"POST", "/api/undo", answer_undo, .body_max = SMALL_BODY_MAX},
    {"POST", "/api/redo", answer_redo, .body_max = SMALL_BODY_MAX},
    {NULL},
};

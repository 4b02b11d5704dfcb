#define _GNU_SOURCE
#include "page/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/files.h"

static const struct http_page *const tables[] = {chain_pages, figure_pages, view_pages, input_pages,
                                                 record_pages};
enum { TABLES = sizeof tables / sizeof *tables };

static size_t length_of(const struct http_page *table)
{
    size_t length = 0;
    while (table[length].path)
        length++;
    return length;
}

static size_t count_files(void)
{
    size_t count = 0;
    while (web_files[count].path)
        count++;
    return count;
}

struct http_page *api_pages(size_t upload_max)
{
    size_t total = count_files() + 1, at = 0;
    for (int k = 0; k < TABLES; k++)
        total += length_of(tables[k]);
    struct http_page *pages = calloc(total, sizeof *pages);
    for (int k = 0; pages && k < TABLES; k++) {
        memcpy(pages + at, tables[k], length_of(tables[k]) * sizeof *pages);
        at += length_of(tables[k]);
    }
    for (size_t k = 0; k < at; k++)
        if (pages[k].receive)
            pages[k].body_max = upload_max;
    for (const struct web_file *file = web_files; pages && file->path; file++)
        pages[at++] = (struct http_page){"GET", file->path, answer_file, .open = true};
    return pages;
}

void api_say(struct http_answer *answer, unsigned code, json_t *json)
{
    char *text = json ? json_dumps(json, API_JSON) : NULL;
    json_decref(json);
    *answer = (struct http_answer){
        .code = code, .type = "application/json", .text = text, .size = text ? strlen(text) : 0};
}

void api_refuse(struct http_answer *answer, unsigned code, const char *format, ...)
{
    char sentence[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    http_say_error(answer, code, sentence);
}

// ---- bodies ----

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

static const char *stray_member(json_t *body, const char *const *names)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        if (!is_among(name, names))
            return name;
    }
    return NULL;
}

json_t *api_body(const struct http_call *call, const char *const *names, struct http_answer *answer)
{
    json_error_t error;
    json_t *body = json_loadb(call->body, call->body_size, JSON_REJECT_DUPLICATES, &error);
    const char *stray = body && json_is_object(body) && names ? stray_member(body, names) : NULL;
    if (json_is_object(body) && !stray)
        return body;
    if (!body)
        api_refuse(answer, 400, "the body is no JSON: %s", error.text);
    else if (!stray)
        api_refuse(answer, 400, "the body is no JSON object");
    else
        api_refuse(answer, 400, "the request knows no '%.100s'", stray);
    json_decref(body);
    return NULL;
}

const char *api_text(const json_t *body, const char *name, struct http_answer *answer)
{
    const char *text = json_string_value(json_object_get(body, name));
    if (!text)
        api_refuse(answer, 400, "the body needs \"%s\", a text", name);
    return text;
}

// ---- queries ----

bool api_query_int(const struct http_call *call, const char *name, int min, int max, int *value,
                   struct http_answer *answer)
{
    const char *text = http_query(call, name);
    if (!text)
        return true;
    char *end;
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    long number = strtol(text, &end, 10);
    if (digits && !*end && number >= min && number <= max) {
        *value = (int)number;
        return true;
    }
    api_refuse(answer, 400, "'%.40s' is no %s, which is a whole number from %d to %d", text, name,
               min, max);
    return false;
}

int api_word(const char *what, const char *text, const char *const *words,
             struct http_answer *answer)
{
    char list[256] = "";
    for (int k = 0; words[k]; k++) {
        if (!text || !strcmp(text, words[k]))
            return k;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", words[k]);
    }
    api_refuse(answer, 400, "there is no %s '%.40s'; there are %s", what, text, list);
    return -1;
}

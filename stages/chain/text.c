#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "stages/chain/parser.h"

// The shortest digits that read as this number, 20 rather than 2e+01.
static void print_number(double value, char *to, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(to, size, "%.*g", digits, value);
        bool shorter = fabs(value) < 1e15 && strstr(to, "e+");
        if (!shorter && strtod(to, NULL) == value)
            return;
    }
}

// In quotes that the text does not hold itself; where it holds both, piece by piece.
static void print_text(struct span text, FILE *to)
{
    do {
        char quote = *text.begin == '\'' ? '"' : '\'';
        const char *at = text.begin;
        while (at < text.end && (*at == '\'') == (quote == '"'))
            at++;
        fprintf(to, "%c%.*s%c", quote, (int)(at - text.begin), text.begin, quote);
        text.begin = at;
    } while (text.begin < text.end);
}

// The texts of an option that is `many`.
static void print_texts(const char *list, FILE *to)
{
    for (const char *separator = ""; *list; separator = ":") {
        size_t length = strcspn(list, "\n");
        fputs(separator, to);
        print_text((struct span){list, list + length}, to);
        list += length + (list[length] == '\n');
    }
}

static void print_choice(const struct stage_option *option, double value, FILE *to)
{
    struct span choices = span_of(option->choices);
    struct span choice = span_cut(&choices, '|');
    for (int k = 0; k < (int)value; k++)
        choice = span_cut(&choices, '|');
    fprintf(to, "%.*s", span_length(choice), choice.begin);
}

static void print_value(const struct stage_option *option, void *options, FILE *to)
{
    char number[64];
    if (!option->many)
        fprintf(to, "%s=", option->name);
    if (option->many) {
        print_texts(*member_text(option, options), to);
    } else if (option->type == OPTION_TEXT) {
        print_text(span_of(*member_text(option, options)), to);
    } else if (option->type == OPTION_CHOICE) {
        print_choice(option, member_value(option, options), to);
    } else {
        print_number(member_value(option, options), number, sizeof number);
        fputs(number, to);
    }
}

// True if an option has to be in the text.
static bool says(const struct stage_option *option, void *options)
{
    if (option->type == OPTION_TEXT)
        return *member_text(option, options);
    double value = member_value(option, options);
    return !isnan(value) && value != stage_option_initial(option);
}

static void print_link(const struct chain_link *link, FILE *to)
{
    char separator = '=';
    fputs(link->stage->name, to);
    for (int n = 0; n < stage_options(link->stage); n++) {
        const struct stage_option *option = &link->stage->option[n];
        if (!says(option, link->options))
            continue;
        fputc(separator, to);
        print_value(option, link->options, to);
        separator = ':';
    }
}

char *chain_text(const struct chain *chain)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (int k = 0; k < chain->links; k++) {
        fputs(k ? "," : "", to);
        print_link(&chain->link[k], to);
    }
    bool whole = !ferror(to);
    if (!fclose(to) && whole)
        return text;
    free(text);
    return NULL;
}

void chain_print_aliases(const struct chain *chain, FILE *to)
{
    for (int k = 0; k < chain->links; k++)
        if (chain->link[k].alias)
            fprintf(to, "ffmpeg's %s\n", chain->link[k].alias);
}

void chain_error_log(const struct chain_error *error, const char *text, const struct log *log)
{
    char described[1024];
    chain_error_describe(error, text, described, sizeof described);
    log_print(log, LOG_ERROR, "%s", described);
}

void chain_error_describe(const struct chain_error *error, const char *text, char *buffer,
                          size_t size)
{
    char marks[256], *shown = strdup(text);
    int length = error->length > 0 ? error->length : 1;
    if (length > (int)sizeof marks - 1)
        length = (int)sizeof marks - 1;
    memset(marks, '^', (size_t)length);
    marks[length] = 0;
    if (shown)
        secrets_blank(shown, SECRETS_IN_CHAIN);
    snprintf(buffer, size, "%s\n  %s\n  %*s%s", error->message, shown ? shown : "", error->position,
             "", marks);
    free(shown);
}

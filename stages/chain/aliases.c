#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/aliases.h"

// ---- names ----

// Cut "_cuda" and the like off a name. Returns what was cut off; its `begin` is NULL if nothing was.
static struct span cut_device(struct span *name)
{
    static const char *const devices[] = {"_cuda", "_npp", "_opencl", "_vulkan", "_vaapi", "_qsv"};
    for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
        size_t length = strlen(devices[k]);
        struct span end = {name->end - length, name->end};
        if (span_length(*name) > (int)length && span_is(end, devices[k])) {
            name->end = end.begin;
            return end;
        }
    }
    return (struct span){0};
}

static const struct alias *find(struct span name)
{
    for (const struct alias *alias = aliases; alias->name; alias++)
        if (span_is(name, alias->name))
            return alias;
    return NULL;
}

static const struct stage *find_stage(struct span name)
{
    return stage_find(name.begin, (size_t)span_length(name));
}

bool alias_is(struct span name)
{
    return find(name) || (cut_device(&name).begin && (find(name) || find_stage(name)));
}

bool alias_gray_behind(struct span stage, bool gray)
{
    bool may_draw = span_is(stage, "match") || span_is(stage, "wavelet"); // in colours
    return span_is(stage, "gray") || (gray && !may_draw);
}

// ---- options ----

// True if one of the names in `names`, "luma_radius|lr", is `key`.
static bool is_among(struct span names, struct span key)
{
    while (names.begin) {
        struct span name = span_cut(&names, '|');
        if (span_length(name) == span_length(key) &&
            !memcmp(name.begin, key.begin, (size_t)span_length(key)))
            return true;
    }
    return false;
}

// The number of the option that `key` names; -1: there is none.
static int find_option(const struct alias *alias, struct span key)
{
    struct span options = span_of(alias->options);
    for (int index = 0; options.begin; index++)
        if (is_among(span_cut(&options, ':'), key))
            return index;
    return -1;
}

static int count_options(const struct alias *alias)
{
    int count = *alias->options ? 1 : 0;
    for (const char *at = alias->options; *at; at++)
        count += *at == ':';
    return count;
}

static enum status read_options(struct alias_call *call, const struct alias *alias,
                                struct span arguments)
{
    assert(count_options(alias) <= ALIAS_OPTIONS);
    for (int position = 0; arguments.begin; position++) {
        struct span argument = span_cut(&arguments, ':'), value = argument;
        struct span key = span_trimmed(span_cut(&value, '='));
        int index = position;
        if (value.begin)
            index = find_option(alias, key);
        else if (position >= count_options(alias))
            index = -1;
        if (index < 0)
            return parser_refuse(call->parser, span_trimmed(argument),
                                 "this option of ffmpeg's %s means nothing here; known are: %s",
                                 alias->name, *alias->options ? alias->options : "none");
        call->value[index] = span_bare(span_trimmed(value.begin ? value : argument));
    }
    return STATUS_OK;
}

enum status alias_number(struct alias_call *call, int index, double initial, double *value)
{
    struct span span = call->value[index];
    char digits[64], *end;
    *value = initial;
    if (!span.begin)
        return STATUS_OK;
    snprintf(digits, sizeof digits, "%.*s", span_length(span), span.begin);
    *value = strtod(digits, &end);
    if (end != digits && !*end && isfinite(*value))
        return STATUS_OK;
    return parser_refuse(call->parser, span,
                         "'%.*s' is no number; expressions of ffmpeg's %s "
                         "are not read",
                         span_length(span), parser_shown(call->parser, span), call->name);
}

// ---- translation ----

enum status alias_differs(struct alias_call *call)
{
    const struct alias *alias = find(span_of(call->name));
    return parser_refuse(call->parser, call->filter, "%s", alias->instead);
}

static enum status translate_alias(struct alias_call *call, const struct alias *alias,
                                   struct span arguments)
{
    call->name = alias->name;
    if (!alias->translate)
        return alias_differs(call);
    enum status status = read_options(call, alias, arguments);
    return status ? status : alias->translate(call);
}

// A filter of a device that is not CUDA: ffmpeg's own arithmetic. `alias` NULL: `base` is a stage. What
// is written instead is accepted, or it is said why not.
static enum status refuse_device(struct alias_call *call, struct span base,
                                 const struct alias *alias, struct span arguments)
{
    enum status status = alias ? translate_alias(call, alias, arguments) : STATUS_OK;
    return status
               ? status
               : parser_refuse(call->parser, call->filter,
                               "names of filters say no device here, and ffmpeg's are other "
                               "arithmetic on each; write %.*s, and --backend says where it runs",
                               span_length(base), base.begin);
}

// CUDA is where stages run anyway.
static enum status translate_stage(struct alias_call *call, struct span base, struct span arguments)
{
    call->gray = alias_gray_behind(base, call->gray);
    fprintf(call->to, "%.*s%s%.*s", span_length(base), base.begin, arguments.begin ? "=" : "",
            arguments.begin ? span_length(arguments) : 0, arguments.begin);
    return STATUS_OK;
}

static enum status translate(struct alias_call *call, struct span name, struct span arguments)
{
    struct span base = name, device = {0};
    const struct alias *alias = find(name);
    if (!alias) {
        device = cut_device(&base);
        alias = find(base);
    }
    if (device.begin && !span_is(device, "_cuda"))
        return refuse_device(call, base, find_stage(base) ? NULL : alias, arguments);
    return device.begin && find_stage(base) ? translate_stage(call, base, arguments)
                                            : translate_alias(call, alias, arguments);
}

enum status alias_translate(struct parser *parser, struct span filter, char **text)
{
    size_t size = 0;
    struct span arguments = filter, name = span_trimmed(span_cut(&arguments, '='));
    struct alias_call call = {.parser = parser, .filter = filter, .gray = parser->gray};
    *text = NULL;
    call.to = open_memstream(text, &size);
    if (!call.to)
        return parser_out_of_memory(parser);
    enum status status = translate(&call, name, arguments);
    if (fclose(call.to) && !status)
        status = parser_out_of_memory(parser);
    if (status) {
        free(*text);
        *text = NULL;
    }
    parser->gray = call.gray;
    return status;
}

// Values of options: texts become what the rows' members hold.
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "app/hints.h"
#include "app/option.h"

// `wanted` (optional): instead of all that the row says.
static int refuse_value(const struct option_row *row, const char *value, const char *wanted)
{
    char shown[4300], usual[128];
    sluice_public_name(value, shown, sizeof shown);
    option_wanted(row, usual, sizeof usual);
    fprintf(stderr, "sluice: %s%s is '%s'; it takes %s\n", option_has_one_dash(row) ? "-" : "--",
            row->name, shown, wanted ? wanted : usual);
    return EXIT_USAGE;
}

void option_wanted(const struct option_row *row, char *to, size_t size)
{
    bool number = row->type == VALUE_INT || row->type == VALUE_INT64;
    assert(size > 0);
    *to = 0;
    if (row->wanted)
        snprintf(to, size, "%s", row->wanted);
    else if (row->type == VALUE_SECONDS)
        snprintf(to, size, "seconds, MM:SS, HH:MM:SS or as in 120ms, 10m");
    else if (number)
        snprintf(to, size, "a whole number, %.15g .. %g", row->min, row->max);
    for (int k = 0; !row->wanted && row->choices[k].name; k++) {
        size_t length = strlen(to);
        const char *between = !k ? "" : row->choices[k + 1].name ? ", " : " or ";
        snprintf(to + length, size - length, "%s%s", between, row->choices[k].name);
    }
}

static bool parse_whole(const char *text, double low, double high, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= low && *value <= high && *value == floor(*value);
}

// Seconds ("5", "5s"), milliseconds ("120ms"), minutes ("10m"), hours ("1h"), MM:SS or HH:MM:SS,
// each with a fraction of its last part. Parts behind a colon are below 60.
static bool parse_time(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    *seconds = 0;
    for (int parts = 0; parts < 3; parts++) {
        char *end;
        double part = strtod(text, &end);
        if (end == text || !(part >= 0) || part > 1e9 || (parts && part >= 60) ||
            (*end == ':' && part != floor(part)))
            return false;
        *seconds = *seconds * 60 + part;
        if (!*end)
            return true;
        for (size_t k = 0; !parts && k < sizeof units / sizeof *units; k++)
            if (!strcmp(end, units[k].name)) {
                *seconds *= units[k].seconds;
                return true;
            }
        if (*end != ':')
            return false;
        text = end + 1;
    }
    return false;
}

// ---- storing ----

// The output that options count for: the one named last, or the first.
static struct sluice_output *current_output(struct settings *settings)
{
    return settings->output_count > 1 ? &settings->outputs[settings->output_count - 2]
                                      : &settings->config.output;
}

static void *member_of(const struct option_row *row, struct settings *settings)
{
    if (row->scope == SCOPE_RUN)
        return (char *)settings + row->offset;
    if (row->scope == SCOPE_SIDE && !settings->config.input)
        return (char *)settings + row->input_offset;
    return (char *)current_output(settings) + row->offset;
}

static const struct choice *find_choice(const struct option_row *row, const char *text)
{
    for (const struct choice *choice = row->choices; choice->name; choice++)
        if (!strcmp(choice->name, text))
            return choice;
    return NULL;
}

static int store_number(const struct option_row *row, void *member, const char *text)
{
    double value;
    assert(row->min < row->max);
    if (!parse_whole(text, row->min, row->max, &value))
        return refuse_value(row, text, NULL);
    if (row->type == VALUE_INT)
        *(int *)member = (int)value;
    else
        *(int64_t *)member = (int64_t)value;
    return -1;
}

static int store_seconds(const struct option_row *row, void *member, const char *text)
{
    double *seconds = member;
    if (!parse_time(text, seconds))
        return refuse_value(row, text, NULL);
    return row->positive && *seconds <= 0 ? refuse_value(row, text, "more than 0") : -1;
}

static int store_choice(const struct option_row *row, void *member, const char *text)
{
    const struct choice *choice = find_choice(row, text);
    if (!choice)
        return refuse_value(row, text, NULL);
    if (row->type == VALUE_CHOICE)
        *(unsigned *)member = choice->value;
    else
        *(const char **)member = text;
    return -1;
}

int option_set(const struct option_row *row, struct settings *settings, const char *text)
{
    assert(row->type == VALUE_FLAG || text || row->implied);
    text = text ? text : row->implied;
    if (row->indirect && !(text = argument_text(settings, text)))
        return EXIT_USAGE;
    if (row->completes == COMPLETE_CHAIN && hint_at_format(text))
        return EXIT_USAGE;
    if (row->set)
        return row->set(settings, row, text);
    void *member = member_of(row, settings);
    if (row->choices[0].name)
        return store_choice(row, member, text);
    switch (row->type) {
    case VALUE_FLAG:
        *(bool *)member = true;
        return -1;
    case VALUE_INT:
    case VALUE_INT64:
        return store_number(row, member, text);
    case VALUE_SECONDS:
        return store_seconds(row, member, text);
    case VALUE_RATE:
        return sluice_parse_rate(text, member) ? refuse_value(row, text, NULL) : -1;
    default:
        *(const char **)member = text;
        return -1;
    }
}

// ---- options with setters of their own ----

int set_bitrate(struct settings *settings, const struct option_row *row, const char *text)
{
    int64_t *bitrate = member_of(row, settings);
    return sluice_parse_bitrate(text, bitrate) ? refuse_value(row, text, NULL) : -1;
}

int set_bytes(struct settings *settings, const struct option_row *row, const char *text)
{
    int64_t *bytes = member_of(row, settings);
    return sluice_parse_bitrate(text, bytes) || *bytes <= 0 ? refuse_value(row, text, NULL) : -1;
}

// Bytes of a unit of memory, as K, GB or MiB: letters count by 1024, as memory is sold.
static double memory_unit(const char *unit)
{
    static const char letters[] = "KMGT";
    double bytes = 1;
    const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
    bool ends = letter && (!unit[1] || !strcmp(unit + 1, "iB") || !strcmp(unit + 1, "B"));
    if (!*unit || !strcmp(unit, "B"))
        return 1;
    for (const char *at = letters; ends && at <= letter; at++)
        bytes *= 1024;
    return ends ? bytes : 0;
}

int set_memory(struct settings *settings, const struct option_row *row, const char *text)
{
    char *end;
    double value = strtod(text, &end), unit = memory_unit(end), bytes = value * unit;
    if (end == text || !isdigit((unsigned char)*text) || !(bytes >= 1 && bytes <= 1e15))
        return refuse_value(row, text, NULL);
    *(int64_t *)member_of(row, settings) = (int64_t)bytes;
    return -1;
}

int set_crf(struct settings *settings, const struct option_row *row, const char *text)
{
    char *end;
    double value = strtod(text, &end), *crf = member_of(row, settings);
    if (end == text || *end || !(value >= row->min && value <= row->max))
        return refuse_value(row, text, NULL);
    *crf = value > 0 ? value : SLUICE_CRF_ZERO;
    return -1;
}

int set_jobs(struct settings *settings, const struct option_row *row, const char *text)
{
    double value = JOBS_AUTO;
    if (!find_choice(row, text) && !parse_whole(text, row->min, row->max, &value))
        return refuse_value(row, text, NULL);
    settings->jobs = (int)value;
    return -1;
}

int set_reconnect(struct settings *settings, const struct option_row *row, const char *text)
{
    struct sluice_config *config = &settings->config;
    double value = 0; // for ever
    if (!find_choice(row, text) && !parse_whole(text, row->min, row->max, &value))
        return refuse_value(row, text, NULL);
    config->await_start = strcmp(text, "no");
    config->reconnects = config->await_start ? (int)value : SLUICE_RECONNECTS_NONE;
    return -1;
}

int set_shard(struct settings *settings, const struct option_row *row, const char *text)
{
    struct sluice_config *config = &settings->config;
    char behind;
    bool read = sscanf(text, "%d/%d%c", &config->part, &config->parts, &behind) == 2;
    return read && config->part >= 1 && config->part <= config->parts
               ? -1
               : refuse_value(row, text, NULL);
}

int set_size(struct settings *settings, const struct option_row *row, const char *text)
{
    struct sluice_config *config = &settings->config;
    return sluice_parse_size(text, &config->input_width, &config->input_height)
               ? refuse_value(row, text, NULL)
               : -1;
}

int set_stream(struct settings *settings, const struct option_row *row, const char *text)
{
    double value;
    if (!parse_whole(text, row->min, row->max, &value))
        return refuse_value(row, text, NULL);
    settings->config.stream = SLUICE_STREAM((int)value);
    return -1;
}

// The value is not shown.
int set_token(struct settings *settings, const struct option_row *row, const char *text)
{
    static const char others[] = "-._~+/=";
    size_t length = strlen(text), fine = 0;
    while (isalnum((unsigned char)text[fine]) || (text[fine] && strchr(others, text[fine])))
        fine++;
    settings->token = text;
    if (length && length <= 200 && fine == length)
        return -1;
    fprintf(stderr, "sluice: --%s takes %s\n", row->name, row->wanted);
    return EXIT_USAGE;
}

int add_allowed(struct settings *settings, const struct option_row *row, const char *text)
{
    struct stat about;
    settings->allowed[settings->allowed_count++] = text;
    if (!stat(text, &about) && S_ISDIR(about.st_mode))
        return -1;
    fprintf(stderr, "sluice: --%s: %s is no folder\n", row->name, text);
    return EXIT_USAGE;
}

int add_output(struct settings *settings, const struct option_row *row, const char *text)
{
    (void)row;
    settings->option_count += settings->output_count > 0; // the end of the list before
    settings->output_count++;
    current_output(settings)->name = text;
    return -1;
}

int add_output_option(struct settings *settings, const struct option_row *row, const char *text)
{
    (void)row;
    struct sluice_output *output = current_output(settings);
    if (!output->options)
        output->options = &settings->options[settings->option_count];
    settings->options[settings->option_count++] = text;
    return -1;
}

int show_devices(struct settings *settings, const struct option_row *row, const char *text)
{
    (void)settings, (void)row, (void)text;
    return list_devices();
}

int show_version(struct settings *settings, const struct option_row *row, const char *text)
{
    (void)settings, (void)row, (void)text;
    printf("%s\n", sluice_version());
    return EXIT_WHOLE;
}

// The options as they were typed, for the command line that the control page shows; and those that
// do not go together.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/option.h"
#include "control/shell.h"

// ---- as typed ----

extern const struct option_section section_filtering, section_input, section_live, section_output,
    section_page;

static bool is_of(const struct option_section *section, const struct option_row *row)
{
    for (const struct option_row *each = section->rows; each->name; each++)
        if (each == row)
            return true;
    return false;
}

// The words that the option belongs to: those of inputs, of outputs, or of filtering all of them;
// NULL: none of them.
static char **words_of(const struct option_row *row, struct settings *settings)
{
    bool side = row->scope == SCOPE_SIDE;
    if (row->completes == COMPLETE_CHAIN || row->secret)
        return NULL;
    if (is_of(&section_output, row) || (side && settings->config.input))
        return &settings->typed_output;
    if (is_of(&section_input, row))
        return &settings->typed_input;
    bool any = is_of(&section_filtering, row) || is_of(&section_live, row);
    return any ? &settings->typed : NULL;
}

void option_note_typed(const struct option_row *row, struct settings *settings, const char *text)
{
    char *typed = NULL, shown[4300], **words = words_of(row, settings);
    size_t size;
    if (is_of(&section_page, row))
        settings->page_option = row->name;
    FILE *to = words ? open_memstream(&typed, &size) : NULL;
    if (!to)
        return;
    fprintf(to, "%s %s%s", *words ? *words : "", option_has_one_dash(row) ? "-" : "--", row->name);
    if (text) {
        sluice_public_name(text, shown, sizeof shown);
        fputc(row->implied ? '=' : ' ', to);
        shell_word(to, shown);
    }
    fclose(to); // without memory it is shown without this option
    if (!typed)
        return;
    free(*words);
    *words = typed;
}

// ---- together ----

static int refuse(const char *sentence)
{
    fprintf(stderr, "sluice: %s\n", sentence);
    return EXIT_USAGE;
}

static int check_serve(const struct settings *settings)
{
    if (settings->config.output.name || settings->output_count)
        return refuse("serve writes no output; 'sluice INPUT OUTPUT --page 8080' shows a run that "
                      "does");
    return -1;
}

// Refuse options of the page, where there is no page.
static int check_no_page(const struct settings *settings)
{
    if (!settings->page_option)
        return -1;
    fprintf(stderr,
            "sluice: --%s is of the control page: 'sluice serve', or 'sluice INPUT OUTPUT --page "
            "8080'\n",
            settings->page_option);
    return EXIT_USAGE;
}

int options_check_page(const struct settings *settings, enum command command)
{
    bool serves = command == COMMAND_SERVE;
    if (!serves && !settings->page_address)
        return check_no_page(settings);
    if (!settings->tls_cert != !settings->tls_key)
        return refuse("--tls-cert and --tls-key stand together: the certificate and its key");
    return serves ? check_serve(settings) : -1;
}

// The command line: what `ps` shows of it, and arguments whose text is kept elsewhere.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/option.h"

// ---- ps ----

// True if the argument is an option, perhaps shortened, whose value behind it is a secret.
static bool names_secret(const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    const struct option_row *row;
    size_t length = strlen(name);
    for (int k = 0; *argument == '-' && length > 1 && (row = option_at(k)); k++)
        if (row->secret && !strncmp(row->name, name, length))
            return true;
    return false;
}

// Every user of the machine reads the command line of every process: secrets go from the memory
// that the system shows of it. The copy is one piece.
char **arguments_take(int argc, char **argv)
{
    assert(argc >= 0 && argv && !argv[argc]);
    size_t list = ((size_t)argc + 1) * sizeof(char *), size = list;
    for (int k = 0; k < argc; k++)
        size += strlen(argv[k]) + 1;
    char **copy = calloc(size, 1);
    char *to = copy ? (char *)copy + list : NULL;
    for (int k = 0; copy && k < argc; k++) {
        copy[k] = to;
        to = stpcpy(to, argv[k]) + 1;
        if (k && names_secret(copy[k - 1]))
            memset(argv[k], '*', strlen(argv[k]));
        sluice_blank_secrets(argv[k]);
    }
    return copy;
}

// ---- texts that are kept elsewhere ----

enum { MAX_TEXT = 1 << 16 };

// The file's text, without the white space at its end; NULL with a sentence. The caller
// frees it.
static char *read_text(const char *file)
{
    char *text = calloc(MAX_TEXT + 1, 1);
    FILE *from = text ? fopen(file, "r") : NULL;
    size_t length = from ? fread(text, 1, MAX_TEXT + 1, from) : 0;
    const char *why = !from || ferror(from) ? strerror(errno)
                      : length > MAX_TEXT   ? "it is larger than 64 KiB"
                                            : NULL;
    if (from)
        fclose(from);
    if (!why) {
        text[length] = 0;
        while (length && strchr(" \t\r\n", text[length - 1]))
            text[--length] = 0;
        why = length ? NULL : "there is nothing in it";
    }
    if (!why)
        return text;
    fprintf(stderr, "sluice: @%s: %s cannot be read: %s\n", file, file, why);
    free(text);
    return NULL;
}

static char *read_variable(const char *name)
{
    const char *value = getenv(name);
    if (value && *value)
        return strdup(value);
    fprintf(stderr, "sluice: env:%s: the environment has no variable %s\n", name, name);
    return NULL;
}

const char *argument_text(struct settings *settings, const char *argument)
{
    assert(argument);
    bool file = *argument == '@', variable = !strncmp(argument, "env:", 4);
    if (!(file || variable) || !access(argument, F_OK))
        return argument;
    char **list = realloc(settings->texts, (size_t)(settings->text_count + 1) * sizeof *list);
    if (!list)
        return NULL;
    settings->texts = list;
    char *text = file ? read_text(argument + 1) : read_variable(argument + 4);
    if (text)
        list[settings->text_count++] = text;
    return text;
}

#include "control/shell.h"

#include <stdbool.h>
#include <string.h>

void shell_quote(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, to);
    fputc('\'', to);
}

// True if a shell takes the text as it is.
static bool is_plain(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-+./:,@%=";
    return *text && !text[strspn(text, letters)];
}

void shell_word(FILE *to, const char *text)
{
    if (is_plain(text))
        fputs(text, to);
    else
        shell_quote(to, text);
}

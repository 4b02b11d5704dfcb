// Words of command lines as sh reads them.
#pragma once

#include <stdio.h>

// Write the text between single quotes.
void shell_quote(FILE *to, const char *text);

// Write the text as one word, in quotes only where it needs them.
void shell_word(FILE *to, const char *text);

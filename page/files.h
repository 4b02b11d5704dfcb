// The files of web/, which are part of the program: page/embed/embed.c writes the table when it is
// built.
#pragma once

#include <stddef.h>

struct web_file {
    const char *path; // "/app.js"; "/" for index.html; NULL ends the table
    const char *type;
    const char *tag, *packed_tag;        // the content's, with quotes
    const unsigned char *plain, *packed; // packed by gzip
    size_t plain_size, packed_size;
};
extern const struct web_file web_files[];

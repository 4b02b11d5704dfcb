#include "page/files.h"

#include <string.h>

#include "page/api.h"

static const struct web_file *find(const char *path)
{
    const struct web_file *file = web_files;
    while (file->path && strcmp(file->path, path) != 0)
        file++;
    return file;
}

// True if the client unpacks gzip: all browsers do.
static bool unpacks(const struct http_call *call)
{
    const char *accepted = http_header(call, "Accept-Encoding");
    const char *found = accepted ? strstr(accepted, "gzip") : NULL;
    return found && strncmp(found + 4, ";q=0", 4) != 0;
}

void answer_file(void *page, const struct http_call *call, struct http_answer *answer)
{
    const struct web_file *file = find(call->path);
    bool packed = unpacks(call);
    (void)page;
    if (!file->path) {
        http_say_error(answer, 404, "there is no such page");
        return;
    }
    *answer = (struct http_answer){
        .type = file->type,
        .text = (char *)(packed ? file->packed : file->plain),
        .size = packed ? file->packed_size : file->plain_size,
        .borrowed = true,
        .encoding = packed ? "gzip" : NULL,
        .cache = "no-cache",
        .etag = packed ? file->packed_tag : file->tag,
    };
}

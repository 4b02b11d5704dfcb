#include "pipeline/proof/publication.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/output/file/file.h"
#include "pipeline/output/file/folder.h"

enum status publication_add(struct publication *publication, struct file **file)
{
    size_t room = ((size_t)publication->count + 1) * sizeof *publication->file;
    struct file **list = realloc(publication->file, room);
    if (!list)
        return STATUS_MEMORY;
    publication->file = list;
    list[publication->count++] = *file;
    *file = NULL;
    return STATUS_OK;
}

// Do all that may fail.
static enum status prepare(const struct publication *publication)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < publication->count && !status; k++)
        status = file_stage(publication->file[k]);
    for (int k = 0; k < publication->count && !status; k++)
        status =
            file_check(file_name(publication->file[k]), publication->overwrite, publication->log);
    return status;
}

static enum status name_file(struct file **file, const struct log *log)
{
    char *name = strdup(file_name(*file));
    enum status status = name ? file_commit(file) : STATUS_MEMORY;
    if (!status)
        status = folder_sync_of(name, log);
    free(name);
    return status;
}

enum status publication_commit(struct publication *publication)
{
    int last = publication->count - 1, named = 0;
    enum status status = prepare(publication);
    if (!status && publication->overwrite) // the former manifest
        status = folder_remove(file_name(publication->file[last]), publication->log);
    while (!status && named <= last) {
        status = name_file(&publication->file[named], publication->log);
        named += !status;
    }
    if (status && named)
        log_print(publication->log, LOG_ERROR,
                  "only some of the files have their names, and none has a manifest: join again, "
                  "with -y");
    return status;
}

void publication_discard(struct publication *publication)
{
    for (int k = 0; k < publication->count; k++)
        file_discard(&publication->file[k]);
    free(publication->file);
    *publication = (struct publication){0};
}

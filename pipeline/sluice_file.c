// Files that whoever runs a job writes beside it, by the rules of outputs.
#include <stdlib.h>

#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/file/file.h"
#include "sluice/sluice.h"

struct sluice_file {
    struct config_log log_target;
    struct log log;
    struct file *file;
};

static void free_file(struct sluice_file **file)
{
    free(*file);
    *file = NULL;
}

enum sluice_status sluice_file_create(const struct sluice_config *given, const char *name,
                                      struct sluice_file **file)
{
    struct sluice_config config;
    *file = calloc(1, sizeof **file);
    if (!*file)
        return config_memory(given);
    name = url_plain(name, true);
    struct log *log = &(*file)->log;
    enum status status = config_read(given, &config, &(*file)->log_target, log);
    if (!status)
        status = file_check(name, config.overwrite, log);
    if (!status)
        status = file_create(name, config.overwrite, log, NULL, &(*file)->file);
    log_memory(log, status);
    if (status)
        free_file(file);
    return (enum sluice_status)status;
}

void sluice_file_hide(struct sluice_file *file)
{
    file_hide(file->file);
}

void sluice_file_write(struct sluice_file *file, const char *data, size_t size)
{
    enum { PIECE = 1 << 20 };
    for (size_t done = 0; done < size; done += PIECE)
        avio_write(file_io(file->file), (const unsigned char *)data + done,
                   (int)(size - done < PIECE ? size - done : PIECE));
    avio_flush(file_io(file->file));
}

enum sluice_status sluice_file_publish(struct sluice_file *file)
{
    return (enum sluice_status)file_publish(file->file);
}

enum sluice_status sluice_file_commit(struct sluice_file **file)
{
    enum status status = file_commit(&(*file)->file);
    free_file(file);
    return (enum sluice_status)status;
}

void sluice_file_discard(struct sluice_file **file)
{
    if (!*file)
        return;
    file_discard(&(*file)->file);
    free_file(file);
}

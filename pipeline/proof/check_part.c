#include "pipeline/proof/check_part.h"

#include <libavcodec/packet.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>

#include "pipeline/engine/config.h"
#include "pipeline/part/part_folder.h"
#include "pipeline/proof/part_video.h"
#include "sluice/sluice.h"

// Read the video, as a set of one part is read.
static enum status check_video(const char *folder, const struct manifest *manifest,
                               const struct log *log)
{
    struct part_set set = {.folder = (char *[]){(char *)folder},
                           .manifest = (struct manifest *)manifest,
                           .count = 1,
                           .known = 1};
    struct part_video *video = NULL;
    AVPacket *packet = av_packet_alloc();
    enum status status = packet ? part_video_create(&set, log, &video) : STATUS_MEMORY;
    while (!status) {
        status = part_video_read(video, packet);
        av_packet_unref(packet);
    }
    part_video_destroy(&video);
    av_packet_free(&packet);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status check_file(const char *folder, const char *name, const json_t *noted,
                              const struct log *log)
{
    char *path = av_asprintf("%s/%s", folder, name);
    json_t *present = NULL;
    enum status status = path ? manifest_of_file(path, log, &present) : STATUS_MEMORY;
    if (!status && !json_equal(present, noted))
        status = log_fail(log, STATUS_INPUT,
                          "%s has changed since it was made; make that part again, with -y", path);
    json_decref(present);
    av_free(path);
    return status;
}

enum status check_part(const char *folder, const struct manifest *manifest, const struct log *log)
{
    const char *name;
    json_t *noted;
    enum status status = manifest->packets ? check_video(folder, manifest, log) : STATUS_OK;
    json_object_foreach(json_object_get(manifest->end, "files"), name, noted) if (!status) status =
        check_file(folder, name, noted, log);
    return status;
}

enum sluice_status sluice_check_part(const struct sluice_config *given, const char *folder,
                                     bool files)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    struct manifest manifest = {0};
    enum status status = config_read(given, &config, &target, &log);
    if (status)
        return (enum sluice_status)status;
    char *name = part_folder_file(folder, part_file_manifest);
    status = name ? manifest_read(name, &log, &manifest) : STATUS_MEMORY;
    if (!status && files)
        status = check_part(folder, &manifest, &log);
    manifest_free(&manifest);
    free(name);
    return (enum sluice_status)log_memory(&log, status);
}

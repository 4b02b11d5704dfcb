// The sink that hashes: one line a frame, with index, pts, bytes, and MD5 of the samples, planes in
// order without padding. The numbers are those of `ffmpeg -f framemd5` for the same frames.
#include <inttypes.h>
#include <libavutil/avstring.h>
#include <libavutil/md5.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/frame_hash.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/sink.h"

struct hash_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    char *name, *shown;
    bool overwrite;
    struct file *file;
    struct AVMD5 *md5;
    _Atomic int64_t frames, bytes;
    atomic_bool failed;
};

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct hash_sink *self = (struct hash_sink *)sink;
    enum status status =
        file_create(self->name, self->overwrite, self->log, self->stop, &self->file);
    if (status)
        return status;
    avio_printf(file_io(self->file),
                "#MD5 of each frame's samples, planes in order, no padding\n"
                "#time base %d/%d\n#%s %dx%d\n#index, pts, bytes, md5\n",
                video->time_base.num, video->time_base.den,
                av_get_pix_fmt_name(video->first->format), video->first->width,
                video->first->height);
    return STATUS_OK;
}

static void add_samples(void *md5, const uint8_t *samples, size_t size)
{
    av_md5_update(md5, samples, size);
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    struct hash_sink *self = (struct hash_sink *)sink;
    if (!frame)
        return STATUS_OK;
    uint8_t digest[16];
    char text[33];
    av_md5_init(self->md5);
    int64_t bytes = frame_walk(frame, add_samples, self->md5);
    av_md5_final(self->md5, digest);
    for (int k = 0; k < 16; k++)
        snprintf(text + 2 * k, 3, "%02x", digest[k]);
    avio_printf(file_io(self->file), "%" PRId64 ", %" PRId64 ", %" PRId64 ", %s\n",
                (int64_t)self->frames, frame->pts, bytes, text);
    self->frames++;
    self->bytes = file_size(self->file);
    self->failed = file_error(self->file) != 0;
    return self->failed ? log_fail(self->log, STATUS_OUTPUT, "%s could not be written: %s",
                                   self->name, strerror(file_error(self->file)))
                        : STATUS_OK;
}

static enum status finish(struct sink *sink, bool cut)
{
    struct hash_sink *self = (struct hash_sink *)sink;
    (void)cut;
    avio_flush(file_io(self->file));
    self->bytes = file_size(self->file);
    enum status status = file_commit(&self->file);
    self->failed = status_is_failure(status);
    return status;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    const struct hash_sink *self = (const struct hash_sink *)sink;
    if (most < 1)
        return 0;
    *list = (struct sink_output){.name = self->shown,
                                 .container = "hash",
                                 .frames = self->frames,
                                 .bytes = self->bytes,
                                 .failed = self->failed};
    return 1;
}

static void destroy(struct sink **sink)
{
    struct hash_sink *self = (struct hash_sink *)*sink;
    file_discard(&self->file);
    av_free(self->md5);
    free(self->name);
    av_free(self->shown);
    free(self);
    *sink = NULL;
}

static enum status check(const struct sink *sink)
{
    const struct hash_sink *self = (const struct hash_sink *)sink;
    return file_check(self->name, self->overwrite, self->log);
}

enum status sink_hash_create(const char *file, bool overwrite, const struct log *log,
                             const struct stop *stop, struct sink **sink)
{
    *sink = NULL;
    if (!*file)
        return log_fail(log, STATUS_USAGE, "hash: needs a file, as in hash:frames.txt, or hash:-");
    struct hash_sink *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .formats = {.natural = true},
        .container = "hash",
        .check = check,
        .open = open,
        .write = write,
        .finish = finish,
        .outputs = outputs,
        .destroy = destroy,
    };
    self->log = log;
    self->stop = stop;
    self->overwrite = overwrite;
    self->name = strdup(file);
    self->shown = av_asprintf("hash:%s", file);
    self->md5 = av_md5_alloc();
    *sink = &self->base;
    if (self->name && self->shown && self->md5)
        return STATUS_OK;
    destroy(sink);
    return STATUS_MEMORY;
}

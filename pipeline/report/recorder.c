#include "pipeline/report/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/output/file.h"
#include "base/monitor.h"

struct kind {
    enum op_kind op;
    // Record one operation's analysis of one frame.
    enum status (*record)(struct recording *recording, const struct record *record);
};

static const struct kind kinds[] = {
    {OP_STATISTICS, record_statistics}, {OP_WAVELET, record_wavelet}, {OP_MATCH, record_match}};

struct recorder {
    const struct log *log;
    const struct stop *stop;
    bool overwrite, live;
    AVRational time_base;
    struct recording *recording;
    int recordings;
    struct monitor lock;
    // ---- guarded by lock ----
    bool finished;
};

// ---- creation ----

static enum status name_files(const struct recorder *recorder, const struct chain_file *file,
                              struct recording *recording)
{
    const char *beside = file->option->beside;
    recording->stage = file->stage;
    if (!file->name)
        return STATUS_OK;
    recording->name = strdup(file->name);
    if (!recording->name)
        return STATUS_MEMORY;
    enum status status = file_check(recording->name, recorder->overwrite, recorder->log);
    if (status || !beside)
        return status;
    size_t size = strlen(file->name) + strlen(beside) + 1;
    recording->beside_name = malloc(size);
    if (!recording->beside_name)
        return STATUS_MEMORY;
    snprintf(recording->beside_name, size, "%s%s", file->name, beside);
    return file_check(recording->beside_name, recorder->overwrite, recorder->log);
}

static enum status name_recordings(struct recorder *recorder, const struct chain *chain)
{
    struct chain_file *list = calloc((size_t)recorder->recordings, sizeof *list);
    recorder->recording = calloc((size_t)recorder->recordings, sizeof *recorder->recording);
    enum status status = list && recorder->recording ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        chain_files(chain, WRITES_RECORDS, list, recorder->recordings);
    for (int k = 0; k < recorder->recordings && !status; k++)
        status = name_files(recorder, &list[k], &recorder->recording[k]);
    free(list);
    return status;
}

enum status recorder_create(const struct recorder_request *request, struct recorder **recorder)
{
    int recordings = chain_files(request->chain, WRITES_RECORDS, NULL, 0);
    *recorder = NULL;
    if (!recordings)
        return STATUS_OK;
    struct recorder *made = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = request->log;
    made->stop = request->stop;
    made->overwrite = request->overwrite;
    made->recordings = recordings;
    monitor_init(&made->lock);
    *recorder = made;
    enum status status = name_recordings(made, request->chain);
    if (status)
        recorder_destroy(recorder);
    return status;
}

static void destroy_recording(struct recording *recording)
{
    spool_destroy(&recording->spool);
    for (int k = 0; k < recording->figures; k++)
        free(recording->figure[k].sum);
    free(recording->name);
    free(recording->beside_name);
    free(recording->state);
}

void recorder_destroy(struct recorder **recorder)
{
    if (!*recorder)
        return;
    for (int k = 0; k < (*recorder)->recordings && (*recorder)->recording; k++)
        destroy_recording(&(*recorder)->recording[k]);
    free((*recorder)->recording);
    monitor_finish(&(*recorder)->lock);
    free(*recorder);
    *recorder = NULL;
}

// ---- frames ----

enum status recorder_open(struct recorder *recorder, AVRational time_base, bool live)
{
    enum status status = STATUS_OK;
    recorder->time_base = time_base;
    recorder->live = live;
    for (int k = 0; k < recorder->recordings && !status; k++) {
        struct recording *recording = &recorder->recording[k];
        const struct spool_request request = {
            .name = {recording->name, recording->beside_name},
            .overwrite = recorder->overwrite,
            .live = live,
            .log = recorder->log,
            .stop = recorder->stop,
        };
        if (recording->name)
            status = spool_create(&request, &recording->spool);
    }
    return status;
}

static const struct kind *kind_of(const struct op *op)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].op == op->kind)
            return &kinds[k];
    return NULL;
}

static enum status record_analysis(struct recorder *recorder, const struct recorder_frame *frame,
                                   int k)
{
    const struct program *program = frame->program;
    const struct op *op = &program->op[program->analysis[k]];
    const struct kind *kind = kind_of(op);
    if (!kind || op->record < 0 || op->record >= recorder->recordings)
        return STATUS_OK;
    struct recording *recording = &recorder->recording[op->record];
    struct program_plane grid = program->plane[op->source[0]];
    struct record record = {
        .op = op,
        .analysis = frame->analysis[k],
        .width = subsampled(frame->width, grid.shift_x),
        .height = subsampled(frame->height, grid.shift_y),
        .frame = frame->index,
        .pts = frame->pts,
        .seconds = (double)frame->pts * av_q2d(recorder->time_base),
    };
    record.bytes = (int64_t)op_analysis_bytes(op, record.width, record.height);
    recording->frames = frame->index + 1;
    return kind->record(recording, &record);
}

enum status recorder_write(struct recorder *recorder, const struct recorder_frame *frame)
{
    enum status status = STATUS_OK;
    monitor_lock(&recorder->lock);
    for (int k = 0; k < frame->program->analyses && !status && !recorder->finished; k++)
        status = record_analysis(recorder, frame, k);
    for (int k = 0; k < recorder->recordings && !status && !recorder->finished; k++)
        if (recorder->recording[k].spool)
            status = spool_next(recorder->recording[k].spool);
    monitor_unlock(&recorder->lock);
    return status;
}

// ---- the end ----

static void close_all_locked(struct recorder *recorder)
{
    for (int k = 0; k < recorder->recordings && !recorder->finished; k++)
        if (recorder->recording[k].spool)
            spool_close(recorder->recording[k].spool, recorder->recording[k].tail);
    recorder->finished = true;
}

static enum status finish_recording(struct recording *recording, int64_t until_ns)
{
    if (!recording->spool)
        return STATUS_OK;
    enum status status = spool_finish(recording->spool, until_ns);
    recording->bytes = spool_bytes(recording->spool);
    recording->dropped = spool_dropped(recording->spool);
    spool_destroy(&recording->spool);
    return status;
}

enum status recorder_finish(struct recorder *recorder, int64_t until_ns)
{
    enum status status = STATUS_OK;
    monitor_lock(&recorder->lock);
    close_all_locked(recorder);
    for (int k = 0; k < recorder->recordings; k++)
        status = status_join(status, finish_recording(&recorder->recording[k], until_ns));
    monitor_unlock(&recorder->lock);
    return status;
}

void recorder_cancel(struct recorder *recorder)
{
    monitor_lock(&recorder->lock);
    recorder->finished = true;
    for (int k = 0; k < recorder->recordings; k++)
        spool_destroy(&recorder->recording[k].spool);
    monitor_unlock(&recorder->lock);
}

int64_t recorder_memory(const struct recorder *recorder, int64_t analysis_bytes)
{
    int64_t bytes = 0;
    for (int k = 0; k < recorder->recordings; k++)
        if (recorder->recording[k].spool)
            bytes += spool_memory(recorder->live, analysis_bytes);
    return bytes;
}

// ---- figures ----

const struct recording *recorder_recording(const struct recorder *recorder, int index)
{
    bool there = recorder && index >= 0 && index < recorder->recordings;
    return there ? &recorder->recording[index] : NULL;
}

AVIOContext *recording_io(const struct recording *recording, enum recording_file file,
                          const struct record *record)
{
    return recording->spool ? spool_io(recording->spool, (int)file, record->bytes) : NULL;
}

static struct figure *find_figure(struct recording *recording, const char *name)
{
    for (int k = 0; k < recording->figures; k++)
        if (!strcmp(recording->figure[k].name, name))
            return &recording->figure[k];
    if (recording->figures == MAX_FIGURES)
        return NULL;
    struct figure *fresh = &recording->figure[recording->figures++];
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

enum status recording_note(struct recording *recording, const char *name, const double *value,
                           int values)
{
    struct figure *figure = find_figure(recording, name);
    if (!figure)
        return STATUS_OK;
    if (figure->values != values) {
        double *sum = realloc(figure->sum, (size_t)values * sizeof *sum);
        if (!sum)
            return STATUS_MEMORY;
        memset(sum, 0, (size_t)values * sizeof *sum);
        *figure = (struct figure){.sum = sum, .values = values};
        snprintf(figure->name, sizeof figure->name, "%s", name);
    }
    for (int k = 0; k < values; k++)
        figure->sum[k] += value[k];
    figure->frames++;
    return STATUS_OK;
}

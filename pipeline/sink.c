#include "pipeline/sink.h"

#include <libavutil/avstring.h>
#include <string.h>

#include "pipeline/check.h"

static enum status refuse_encoding(const struct sink_request *request, const struct log *log)
{
    const char *option = request->encoder                        ? "-c:v"
                         : request->crf                          ? "--crf"
                         : request->preset                       ? "--preset"
                         : request->bitrate                      ? "-b:v"
                         : request->options && *request->options ? "--option"
                         : request->format                       ? "-F"
                         : request->segment > 0                  ? "--segment"
                                                                 : NULL;
    if (!option)
        return STATUS_OK;
    return fail(log, STATUS_USAGE, "%s is for encoded output; %s encodes nothing", option,
                request->output);
}

static enum status create_one(const struct sink_request *request, const struct log *log,
                              const struct stop *stop, struct sink **sink)
{
    const char *file;
    bool null = !strcmp(request->output, "null:");
    if (!null && !av_strstart(request->output, "hash:", &file))
        return sink_encode_create(request, log, stop, sink);
    enum status status = refuse_encoding(request, log);
    if (status)
        return status;
    return null ? sink_null_create(sink)
                : sink_hash_create(file, request->overwrite, log, stop, sink);
}

enum status sink_create(const struct sink_request *requests, int count, const struct log *log,
                        const struct stop *stop, struct sink **sink)
{
    struct sink *made[OUTPUTS_MOST] = {NULL};
    int picture[OUTPUTS_MOST], sinks = 0;
    enum status status = STATUS_OK;
    *sink = NULL;
    for (int k = 0; k < count && !status; k++) {
        status = create_one(&requests[k], log, stop, &made[sinks]);
        for (int n = 0; n < sinks && made[sinks]; n++)
            if (picture[n] == requests[k].picture && made[n]->encoder && made[sinks]->encoder)
                sink_encode_join(made[n], &made[sinks]);
        picture[sinks] = requests[k].picture;
        sinks += made[sinks] != NULL;
    }
    if (!status && sinks > 1)
        return sink_fan_create(made, picture, sinks, log, stop, sink);
    if (!status)
        *sink = made[0];
    for (int k = 0; k < sinks && status; k++)
        sink_destroy(&made[k]);
    return status;
}

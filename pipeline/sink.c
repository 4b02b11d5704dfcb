#include "pipeline/sink.h"

#include <libavutil/avstring.h>
#include <string.h>

#include "pipeline/check.h"
#include "pipeline/names.h"

static enum status refuse_encoding(const struct sink_request *request, const struct log *log)
{
    const char *option = request->encoder                        ? "-c:v"
                         : request->crf                          ? "--crf"
                         : request->preset                       ? "--preset"
                         : request->bitrate                      ? "-b:v"
                         : request->options && *request->options ? "-o"
                         : request->format                       ? "-F"
                                                                 : NULL;
    if (!option)
        return STATUS_OK;
    return fail(log, STATUS_USAGE, "%s is for encoded output; %s encodes nothing", option,
                request->output);
}

enum status sink_create(const struct sink_request *request, const struct log *log,
                        const struct stop *stop, struct sink **sink)
{
    const char *file;
    *sink = NULL;
    if (name_is_url(request->output)) {
        char shown[1024];
        name_without_secrets(request->output, shown, sizeof shown);
        return fail(log, STATUS_OUTPUT, "%s is an address; sluice writes files and pipes", shown);
    }
    bool null = !strcmp(request->output, "null:");
    if (!null && !av_strstart(request->output, "hash:", &file))
        return sink_file_create(request, log, stop, sink);
    enum status status = refuse_encoding(request, log);
    if (status)
        return status;
    return null ? sink_null_create(sink)
                : sink_hash_create(file, request->overwrite, log, stop, sink);
}

#include "pipeline/proof/proof_source.h"

#include "pipeline/engine/config.h"
#include "pipeline/ffmpeg/url.h"

struct source_request proof_source(const struct sluice_config *config, const struct manifest *made)
{
    const json_t *then = json_object_get(json_object_get(made->end, "made"), "input");
    const json_t *stream = json_object_get(made->identity, "stream");
    const char *name = json_string_value(then);
    if (config->input)
        name = url_plain(config->input, false);
    return (struct source_request){.name = name ? name : "",
                                   .stream = (int)json_integer_value(stream) + 1,
                                   .max_pixels = config_max_pixels(config)};
}

enum status proof_source_check(const struct source_request *source, const struct manifest *made,
                               const char *what, const struct log *log)
{
    json_t *present;
    enum status status = manifest_of_source(source->name, log, &present);
    if (status)
        return status;
    bool same = json_equal(present, json_object_get(made->identity, "source"));
    json_decref(present);
    return same ? STATUS_OK
                : log_fail(log, STATUS_INPUT,
                           "%s is not the source of %s: its bytes are others; --source names that "
                           "one",
                           source->name, what);
}

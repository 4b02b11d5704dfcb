#include "page/preview.h"

#include <stdlib.h>

#include "pipeline/output/http/http.h"

struct preview {
    struct preview_request request;
};

enum status preview_create(const struct preview_request *request, struct preview **preview)
{
    *preview = calloc(1, sizeof **preview);
    if (!*preview)
        return STATUS_MEMORY;
    (*preview)->request = *request;
    return STATUS_OK;
}

void preview_destroy(struct preview **preview)
{
    free(*preview);
    *preview = NULL;
}

void preview_bind_http(struct preview *preview, struct http *http)
{
    (void)preview, (void)http;
}

enum status preview_set_chain(struct preview *preview, const char *text)
{
    (void)preview, (void)text;
    return STATUS_OK;
}

void preview_offer(struct preview *preview, const AVFrame *frame, const struct tap_frame *about)
{
    (void)preview, (void)frame, (void)about;
}

void preview_release(struct preview *preview)
{
    (void)preview;
}

void preview_answer_stream(struct preview *preview, const struct view *view,
                           struct http_answer *answer)
{
    (void)preview, (void)view;
    http_say(answer, 503, "text/plain", "There is no picture yet.\n");
}

enum status preview_picture(struct preview *preview, const struct view *view, char **png,
                            size_t *size)
{
    (void)preview, (void)view;
    *png = NULL;
    *size = 0;
    return STATUS_EOF;
}

void preview_figures(struct preview *preview, struct preview_figures *figures)
{
    (void)preview;
    *figures = (struct preview_figures){.pts_us = AV_NOPTS_VALUE};
}

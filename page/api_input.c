// The input, where visitors may choose it: /api/inputs, /api/input, /api/upload.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page/api.h"
#include "page/inputs.h"

// ---- the list ----

// Cameras that were listed can be chosen.
static void keep_cameras(struct page *page, json_t *cameras)
{
    monitor_lock(&page->lock);
    json_decref(page->cameras);
    page->cameras = json_deep_copy(cameras);
    monitor_unlock(&page->lock);
}

static bool is_listed(struct page *page, const char *name)
{
    size_t at;
    json_t *camera;
    bool listed = false;
    monitor_lock(&page->lock);
    json_array_foreach(page->cameras, at, camera)
    {
        const char *other = json_string_value(json_object_get(camera, "name"));
        listed |= other && !strcmp(other, name);
    }
    monitor_unlock(&page->lock);
    return listed;
}

static void list_inputs(void *page_, const void *task, char **text, size_t *size)
{
    struct page *page = page_;
    (void)task;
    json_t *media = media_json(page->media), *cameras = page->chooses ? cameras_json() : NULL;
    keep_cameras(page, cameras);
    json_t *list =
        json_pack("{s:b, s:o, s:o, s:b, s:I}", "ok", 1, "media", media ? media : json_array(),
                  "cameras", cameras ? cameras : json_array(), "chooses", page->chooses,
                  "upload_max", (json_int_t)page->uploads.max);
    *text = list ? json_dumps(list, API_JSON) : NULL;
    *size = *text ? strlen(*text) : 0;
    json_decref(list);
}

static void answer_inputs(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    (void)call;
    later_answer(page->later, list_inputs, NULL, "application/json", answer);
}

// ---- the choice ----

// A choice came to nothing: an input that is shown meanwhile goes on.
static void tell_refusal(struct page *page, const char *name, const char *why)
{
    monitor_lock(&page->lock);
    if (!page->job)
        page_set_input_locked(page, INPUT_FAILED, name, why);
    monitor_unlock(&page->lock);
    events_log(page->events, "error", why);
}

// Drivers are asked by the worker; what goes wrong there is told with the input.
static void choose_camera(void *page_, const void *name, char **text, size_t *size)
{
    struct page *page = page_;
    char why[1024];
    char *input = input_resolve(INPUT_CAMERA, page->media, name, why, sizeof why);
    (void)text, (void)size;
    if (input)
        page_choose(page, input);
    else
        tell_refusal(page, name, why);
}

// The path of an upload into the private folder.
static char *resolve_upload(struct page *page, const char *name, char *why, size_t size)
{
    char *path = NULL;
    if (page->media)
        return input_resolve(INPUT_MEDIA, page->media, name, why, size);
    if (!page->uploads.folder) {
        snprintf(why, size, "nothing was uploaded yet");
        return NULL;
    }
    int fd = media_open(page->uploads.folder, name, why, size);
    if (fd < 0)
        return NULL;
    close(fd);
    return asprintf(&path, "%s/%s", page->uploads.folder, name) < 0 ? NULL : path;
}

static void say_chosen(struct page *page, struct http_answer *answer)
{
    monitor_lock(&page->lock);
    api_say(answer, 202, page_input_json_locked(page));
    monitor_unlock(&page->lock);
}

static void choose_now(struct page *page, int kind, const char *name, struct http_answer *answer)
{
    static const enum input_kind kinds[] = {INPUT_MEDIA, INPUT_ADDRESS};
    char why[1024] = "there is not enough memory";
    char *input = kind == 2 ? resolve_upload(page, name, why, sizeof why)
                            : input_resolve(kinds[kind], page->media, name, why, sizeof why);
    if (!input) {
        http_say_error(answer, 422, why);
        return;
    }
    page_choose(page, input);
    say_chosen(page, answer);
}

static void choose_later(struct page *page, const char *name, struct http_answer *answer)
{
    if (!is_listed(page, name)) {
        api_refuse(answer, 422, "there is no camera '%.200s' in the list of /api/inputs", name);
        return;
    }
    char *task = strdup(name);
    if (task && later_do(page->later, choose_camera, task))
        say_chosen(page, answer);
    else
        http_say_error(answer, 503, "too much is being worked out already; try again later");
}

static void choose(struct page *page, const json_t *body, struct http_answer *answer)
{
    static const char *const kinds[] = {"media", "address", "upload", "camera", NULL};
    const char *word = api_text(body, "kind", answer);
    const char *name = word ? api_text(body, "name", answer) : NULL;
    int kind = name ? api_word("kind", word, kinds, answer) : -1;
    if (kind == 3)
        choose_later(page, name, answer);
    else if (kind >= 0)
        choose_now(page, kind, name, answer);
}

static bool may_choose(const struct page *page, struct http_answer *answer)
{
    if (!page->chooses)
        http_say_error(answer, 403,
                       "this page shows the input of its run; 'sluice serve' has pages "
                       "that choose");
    return page->chooses;
}

static void answer_choice(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    static const char *const names[] = {"kind", "name", NULL};
    json_t *body = may_choose(page, answer) ? api_body(call, names, answer) : NULL;
    if (body)
        choose(page, body, answer);
    json_decref(body);
}

// ---- uploads ----

// The file that is shown stays, of those in the private folder, also between two passes, and the one that is to be
// shown.
static void keep_inputs_locked(struct page *page)
{
    page->uploads.in_use[0] = page->shown;
    page->uploads.in_use[1] = page->chosen;
}

static struct upload *begin_upload(struct page *page, const char *name)
{
    monitor_lock(&page->lock);
    keep_inputs_locked(page);
    struct upload *upload = upload_begin(&page->uploads, name);
    monitor_unlock(&page->lock);
    return upload;
}

static bool receive_upload(void *page_, const struct http_call *call, void **state,
                           const char *data, size_t size)
{
    struct page *page = page_;
    if (!data) {
        upload_drop((struct upload **)state);
        return false;
    }
    if (!*state && page->chooses)
        *state = begin_upload(page, http_query(call, "name"));
    return *state && upload_take(*state, data, size);
}

static void answer_upload(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    struct upload *upload = call->state;
    const char *name = http_query(call, "name");
    char why[512];
    if (!may_choose(page, answer)) {
        upload_drop(&upload);
        return;
    }
    if (!upload) {
        http_say_error(answer, 400, "the upload has no body");
        return;
    }
    monitor_lock(&page->lock);
    keep_inputs_locked(page);
    unsigned code = upload_finish(&upload, why, sizeof why);
    monitor_unlock(&page->lock);
    if (code)
        http_say_error(answer, code, why);
    else
        api_say(answer, 201,
                json_pack("{s:b, s:s, s:s}", "ok", 1, "kind", page->media ? "media" : "upload",
                          "name", name));
}

const struct http_page input_pages[] = {
    {"GET", "/api/inputs", answer_inputs, .chunked = true},
    {"POST", "/api/input", answer_choice, .body_max = SMALL_BODY_MAX},
    {"POST", "/api/upload", answer_upload, .receive = receive_upload},
    {NULL},
};

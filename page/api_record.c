// Backends beside each other, /api/compare; and recordings, /api/record and /api/recordings/.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/verbs.h"
#include "page/api.h"
#include "page/preview/compare.h"
#include "page/inputs.h"

static void compare(void *page_, const void *task, char **text, size_t *size)
{
    struct page *page = page_;
    (void)task;
    if (compare_run(page->preview, page->config, text, size))
        *text = NULL;
}

static void answer_compare(void *page_, const struct http_call *call, struct http_answer *answer)
{
    struct page *page = page_;
    (void)call;
    if (api_has_picture(page, answer))
        later_answer(page->later, compare, NULL, "application/json", answer);
}

// ---- recordings ----

json_t *page_record_json(struct page *page)
{
    struct record_state state = {.recording = false};
    if (page->record)
        record_state(page->record, &state);
    return json_pack("{s:b, s:b, s:b, s:s, s:I, s:I, s:f, s:o}", "ok", 1, "recording",
                     state.recording, "finishing", state.finishing, "name", state.name, "frames",
                     (json_int_t)state.frames, "dropped", (json_int_t)state.dropped, "seconds",
                     state.seconds, "error", text_json(state.error));
}

// Waits for the picture that is being rendered.
static void stop_recording(void *page_, const void *task, char **text, size_t *size)
{
    struct page *page = page_;
    (void)task;
    record_stop(page->record);
    json_t *json = page_record_json(page);
    *text = json ? json_dumps(json, API_JSON) : NULL;
    *size = *text ? strlen(*text) : 0;
    json_decref(json);
}

static void start_recording(struct page *page, struct http_answer *answer)
{
    char why[512] = "";
    if (!api_has_picture(page, answer))
        return;
    if (record_start(page->record, why, sizeof why))
        http_say_error(answer, 409, *why ? why : "a recording cannot be begun");
    else
        api_say(answer, 200, page_record_json(page));
}

static void answer_record(void *page_, const struct http_call *call, struct http_answer *answer)
{
    static const char *const actions[] = {"start", "stop", NULL};
    struct page *page = page_;
    json_t *body = api_body(call, (const char *const[]){"action", NULL}, answer);
    const char *word = body ? api_text(body, "action", answer) : NULL;
    int action = word ? api_word("action", word, actions, answer) : -1;
    if (action >= 0 && !page->record)
        http_say_error(answer, 409, "recordings need a folder: start sluice with --media FOLDER");
    else if (action == 0)
        start_recording(page, answer);
    else if (action == 1)
        later_answer(page->later, stop_recording, NULL, "application/json", answer);
    json_decref(body);
}

// ---- files ----

struct file_stream {
    struct http_stream base;
    int fd;
};

static ssize_t file_read(struct http_stream *stream, char *to, size_t size)
{
    ssize_t got;
    do
        got = read(((struct file_stream *)stream)->fd, to, size);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : got < 0 ? HTTP_BROKEN : HTTP_END;
}

static void file_close(struct http_stream *stream)
{
    close(((struct file_stream *)stream)->fd);
    free(stream);
}

static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot && !strcmp(dot, ".mp4"))
        return "video/mp4";
    return dot && !strcmp(dot, ".mkv") ? "video/x-matroska" : "application/octet-stream";
}

// Send an open file, which is taken over.
static void send_file(int fd, const char *name, struct http_answer *answer)
{
    struct stat about;
    struct file_stream *stream = fstat(fd, &about) ? NULL : calloc(1, sizeof *stream);
    if (!stream) {
        close(fd);
        return;
    }
    *stream = (struct file_stream){{file_read, file_close}, fd};
    *answer = (struct http_answer){.type = type_of(name),
                                   .size = (size_t)about.st_size,
                                   .stream = &stream->base,
                                   .disposition = "attachment"};
}

// Other files of the folder are to be filtered here, and are not given out.
static void answer_recording(void *page_, const struct http_call *call, struct http_answer *answer)
{
    static const size_t before = sizeof "/api/recordings/" - 1;
    struct page *page = page_;
    const char *name = call->path + before;
    char why[512];
    int fd = page->record && record_has_made(page->record, name)
                 ? media_open(page->media, name, why, sizeof why)
                 : -1;
    if (fd < 0)
        http_say_error(answer, 404, "there is no such recording");
    else
        send_file(fd, name, answer);
}

const struct http_page record_pages[] = {
    {"POST", "/api/compare", answer_compare, .body_max = SMALL_BODY_MAX, .chunked = true},
    {"POST", "/api/record", answer_record, .body_max = SMALL_BODY_MAX, .chunked = true},
    {"GET", "/api/recordings/*", answer_recording},
    {NULL},
};

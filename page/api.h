// The routes of the page, a table each, and what they have in common.
#pragma once

#include "page/page_state.h"
#include "pipeline/output/http/http.h"

// Ended by a NULL path; the opaque of all is the page.
extern const struct http_page chain_pages[], figure_pages[], view_pages[], input_pages[],
    record_pages[];

// A file of web/, which needs no token: a visitor's browser has to get at the page that sends it.
void answer_file(void *page, const struct http_call *call, struct http_answer *answer);

// All routes, and those of the files, in one table; uploads have `upload_max` bytes at most. The
// caller frees it; NULL without memory.
struct http_page *api_pages(size_t upload_max);

// Answer with JSON, which is taken over; NULL: without memory.
void api_say(struct http_answer *answer, unsigned code, json_t *json);

// {"ok":false,"error":...} by a format.
__attribute__((format(printf, 3, 4))) void api_refuse(struct http_answer *answer, unsigned code,
                                                      const char *format, ...);

// The request's body, an object, whose members are among `names` (ended by NULL; NULL: any). The
// caller's; NULL, and answered, if it is none.
json_t *api_body(const struct http_call *call, const char *const *names,
                 struct http_answer *answer);

// The text of a member; NULL, and answered, if there is none.
const char *api_text(const json_t *body, const char *name, struct http_answer *answer);

// The number in a query; false, and answered, if it is none. Absent: *value stays.
bool api_query_int(const struct http_call *call, const char *name, int min, int max, int *value,
                   struct http_answer *answer);

// Which of the words, ended by NULL, a text is; -1, and answered, if it is none of them. NULL: the
// first.
int api_word(const char *what, const char *text, const char *const *words,
             struct http_answer *answer);

// True if there is a picture yet; false, and answered, if not.
bool api_has_picture(const struct page *page, struct http_answer *answer);

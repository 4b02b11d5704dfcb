#include "page/page.h"

#include <assert.h>
#include <stdlib.h>

struct page {
    struct log log;
};

enum status page_create(const struct page_request *request, const struct log *log,
                        struct page **page)
{
    assert(request->listen && request->config);
    *page = NULL;
    log_print(log, LOG_ERROR, "the control page is not part of this program yet");
    return STATUS_FAILED;
}

void page_destroy(struct page **page)
{
    free(*page);
    *page = NULL;
}

const char *page_url(const struct page *page)
{
    (void)page;
    return "";
}

enum status page_join(struct page *page, struct sluice_job *job, const struct sluice_config *config)
{
    assert(page && job && config);
    (void)page, (void)job, (void)config;
    return STATUS_OK;
}

void page_leave(struct page *page, struct sluice_job *job, enum sluice_status status)
{
    (void)page, (void)job, (void)status;
}

void page_changed(struct page *page, int64_t pts_us, const char *chain)
{
    (void)page, (void)pts_us, (void)chain;
}

void page_log(struct page *page, enum sluice_log_level level, const char *sentence)
{
    (void)page, (void)level, (void)sentence;
}

enum status page_await_input(struct page *page, const atomic_bool *stop, struct page_input *input)
{
    (void)page, (void)stop;
    *input = (struct page_input){0};
    return STATUS_STOPPED;
}

bool page_wants_another(struct page *page)
{
    (void)page;
    return false;
}

void page_note_input(struct page *page, const char *name, const char *error)
{
    (void)page, (void)name, (void)error;
}

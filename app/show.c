// The control page of a run, or of `sluice serve`.
#include <assert.h>
#include <string.h>

#include "app/app.h"

static void log_page(void *settings, enum log_level level, const char *sentence)
{
    terminal_log(settings, (enum sluice_log_level)level, sentence);
}

int show_start(struct settings *settings, const char *address, FILE *to)
{
    assert(to);
    if (!address)
        return -1;
    settings->page_log = (struct log){log_page, settings};
    const struct page_request request = {
        .listen = address,
        .token = settings->token,
        .tls_cert = settings->tls_cert,
        .tls_key = settings->tls_key,
        .media = settings->media,
        .keep = settings->keep,
        .upload_max = settings->upload_max,
        .uploads = settings->uploads,
        .chooses = !settings->page_address,
        .config = &settings->config,
        .options = settings->typed,
        .input_options = settings->typed_input,
        .output_options = settings->typed_output,
    };
    enum status status = page_create(&request, &settings->page_log, &settings->page);
    if (status == STATUS_MEMORY)
        show_log(settings, SLUICE_LOG_ERROR, "out of memory");
    if (status)
        return exit_code_of((enum sluice_status)status);
    // A token that was made is part of the address; one that was given is shown nowhere.
    const char *url = page_url(settings->page);
    int length = (int)(settings->token ? strcspn(url, "#") : strlen(url));
    fprintf(to, "sluice: the page is at %.*s\n", length, url);
    fflush(to);
    return -1;
}

void show_stop(struct settings *settings)
{
    page_destroy(&settings->page);
}

void show_log(void *settings_, enum sluice_log_level level, const char *sentence)
{
    struct settings *settings = settings_;
    terminal_log(settings, level, sentence);
    page_log(settings->page, level, sentence);
}

void show_changed(void *settings_, int64_t pts_us, const char *chain)
{
    struct settings *settings = settings_;
    journal_changed(settings, pts_us, chain);
    page_changed(settings->page, pts_us, chain);
}

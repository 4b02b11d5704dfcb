// The control page of a run, or of `sluice serve`.
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"

static void log_page(void *settings, enum log_level level, const char *sentence)
{
    terminal_log(settings, (enum sluice_log_level)level, sentence);
}

enum sluice_status show_start(struct settings *settings, const char *address)
{
    if (!address)
        return SLUICE_STATUS_OK;
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
    return (enum sluice_status)status;
}

void show_tell(struct settings *settings, FILE *to)
{
    assert(to);
    if (!settings->page || settings->page_told)
        return;
    // A token that was made is part of the address; one that was given is shown nowhere.
    const char *url = page_url(settings->page);
    int length = (int)(settings->token ? strcspn(url, "#") : strlen(url));
    fprintf(to, "sluice: the page is at %.*s\n", length, url);
    fflush(to);
    settings->page_told = true;
}

bool show_opens_first(const struct settings *settings)
{
    const char *name = settings->config.input;
    struct stat about;
    if (!name || strchr(name, ':') || !strcmp(name, "-"))
        return false;
    return stat(name, &about) ? errno == ENOENT : S_ISREG(about.st_mode);
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

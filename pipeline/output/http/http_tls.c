// Certificate and key: PEM files, whose mistakes are said before a client meets them.
#include "pipeline/output/http/http_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"

enum { PEM_MAX = 1 << 20 };

static enum status read_text(const char *path, const char *what, const struct log *log, char **text)
{
    FILE *from = fopen(path, "re");
    *text = calloc(1, PEM_MAX + 1);
    size_t size = from && *text ? fread(*text, 1, PEM_MAX, from) : 0;
    bool bad = !from || ferror(from);
    int error = errno;
    if (from)
        fclose(from);
    if (bad)
        return log_fail(log, STATUS_USAGE, "the %s %s cannot be read: %s", what, path,
                        strerror(error));
    if (!*text)
        return STATUS_MEMORY;
    if (!size || size == PEM_MAX)
        return log_fail(log, STATUS_USAGE, "the %s %s is %s", what, path,
                        size ? "too large to be one" : "empty");
    return STATUS_OK;
}

static enum status check_texts(const struct http_server *server, const struct log *log,
                               const struct http_tls *tls)
{
    if (!strstr(tls->cert, "-----BEGIN CERTIFICATE-----"))
        return log_fail(
            log, STATUS_USAGE,
            "%s holds no certificate; a PEM file has a line of -----BEGIN CERTIFICATE-----",
            server->tls_cert);
    if (!strstr(tls->key, "PRIVATE KEY-----"))
        return log_fail(
            log, STATUS_USAGE,
            "%s holds no private key; a PEM file has a line of -----BEGIN PRIVATE KEY-----",
            server->tls_key);
    if (strstr(tls->key, "ENCRYPTED"))
        return log_fail(
            log, STATUS_USAGE,
            "the key %s has a password, which nobody is there to type; write it without "
            "by 'openssl pkey -in %s -out NEW'",
            server->tls_key, server->tls_key);
    return STATUS_OK;
}

enum status http_tls_read(const struct http_server *server, const struct log *log,
                          struct http_tls *tls)
{
    *tls = (struct http_tls){0};
    if (!server->tls_cert && !server->tls_key)
        return STATUS_OK;
    if (!server->tls_cert || !server->tls_key)
        return log_fail(log, STATUS_USAGE,
                        "https for %s needs a certificate and its key: the %s is missing",
                        server->name, server->tls_cert ? "key" : "certificate");
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return log_fail(log, STATUS_USAGE,
                        "https is not possible here: libmicrohttpd was built without");
    enum status status = read_text(server->tls_cert, "certificate", log, &tls->cert);
    if (!status)
        status = read_text(server->tls_key, "key", log, &tls->key);
    if (!status)
        status = check_texts(server, log, tls);
    if (status)
        http_tls_free(tls);
    return status;
}

void http_tls_free(struct http_tls *tls)
{
    if (tls->key)
        explicit_bzero(tls->key, PEM_MAX);
    free(tls->cert);
    free(tls->key);
    *tls = (struct http_tls){0};
}

#define _GNU_SOURCE
#include "pipeline/input/io/reach.h"

#include <assert.h>
#include <fnmatch.h>
#include <libavutil/avstring.h>
#include <libavutil/bprint.h>
#include <libavutil/opt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/secrets.h"
#include "pipeline/ffmpeg/compat.h"

struct reach {
    atomic_int users;
    char *url, *hosts, *ca_file; // NULL: none
    bool tls_verify;
    char *formats; // the whitelist
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    int (*open)(AVFormatContext *, AVIOContext **, const char *, int, AVDictionary **);
    char origin[1024]; // the address, or where it was redirected to
    char refusal[512];
    bool reported; // the refusal was taken
};

// ---- protocols and formats ----

static const struct {
    const char *schemes, *protocols;
} addresses[] = {
    {"rtsp,rtsps", "rtsp,rtsps,rtp,srtp,udp,tcp,tls"},
    {"rtp,srtp", "rtp,srtp,udp"},
    {"http,https", "http,https,httpproxy,tcp,tls,crypto,data"},
    {"rtmp,rtmps,rtmpt,rtmpe,rtmpte,rtmpts",
     "rtmp,rtmps,rtmpt,rtmpe,rtmpte,rtmpts,ffrtmphttp,ffrtmpcrypt,http,https,tcp,tls"},
    {"srt", "srt"},
    {"udp,udplite", "udp,udplite"},
    {"tcp", "tcp"},
    {"tls", "tls,tcp"},
    {"unix", "unix"},
    {"rist", "rist"},
    {"ftp", "ftp,tcp"},
    {"sftp", "sftp"},
    {"mmsh,mmst", "mmsh,mmst,http,tcp"},
};

static void scheme_of(const char *url, char *scheme, size_t size)
{
    av_strlcpy(scheme, url, FFMIN(size, strcspn(url, ":") + 1));
}

// av_match_name() takes a name with a comma in it for several.
static bool has_scheme(const char *url, const char *schemes)
{
    char scheme[16];
    scheme_of(url, scheme, sizeof scheme);
    return !strchr(scheme, ',') && av_match_name(scheme, schemes);
}

const char *reach_protocols(const char *url)
{
    for (size_t k = 0; k < sizeof addresses / sizeof *addresses; k++)
        if (has_scheme(url, addresses[k].schemes))
            return addresses[k].protocols;
    return NULL;
}

// Formats whose "file" is a list of other files or addresses, or a program.
static bool is_list(const AVInputFormat *format)
{
    return format->flags & AVFMT_NOFILE ||
           av_match_name(format->name,
                         "hls,applehttp,dash,concat,sdp,imf,webm_dash_manifest,vobsub,rtsp,rtp,sap,"
                         "tedcaptions,ffmetadata,avisynth,vapoursynth");
}

static bool allows_any(const struct reach *reach)
{
    return reach->hosts && !strcmp(reach->hosts, "any");
}

bool reach_allows(const struct reach *reach, const AVInputFormat *format)
{
    const char *url = reach->url ? reach->url : "";
    if (!is_list(format) || (!reach->url && av_match_name(format->name, "image2")))
        return true;
    if (has_scheme(url, "rtsp,rtsps"))
        return av_match_name(format->name, "rtsp");
    if (has_scheme(url, "rtp,srtp"))
        return av_match_name(format->name, "rtp");
    if (!has_scheme(url, "http,https"))
        return false;
    // DASH's reader opens what it likes without asking.
    return av_match_name(format->name, "hls,applehttp") ||
           (allows_any(reach) && av_match_name(format->name, "dash"));
}

static char *list_formats(const struct reach *reach)
{
    void *at = NULL;
    char *list = NULL;
    AVBPrint names;
    av_bprint_init(&names, 1 << 12, AV_BPRINT_SIZE_UNLIMITED);
    for (const AVInputFormat *format; (format = av_demuxer_iterate(&at));)
        if (reach_allows(reach, format))
            av_bprintf(&names, "%s%s", names.len ? "," : "", format->name);
    return av_bprint_finalize(&names, &list) < 0 ? NULL : list;
}

int reach_probe(AVIOContext *io, const char *url, AVFormatContext *context,
                const AVInputFormat **format)
{
    int error = probe_format(io, format, url, context);
    // By its extension alone an image is a sequence of one and any text a screen of characters.
    const AVInputFormat *by_name = error >= 0 ? *format : NULL;
    if (by_name && av_match_name(by_name->name, "image2,tty")) {
        *format = NULL;
        error = probe_format(io, format, "", context);
    }
    return error >= 0 && !*format ? AVERROR_INVALIDDATA : error;
}

// ---- hosts ----

static void host_of(const char *url, char *host, int size)
{
    av_url_split(NULL, 0, NULL, 0, host, size, NULL, NULL, 0, url);
}

static bool is_listed(const char *hosts, const char *host)
{
    char pattern[256];
    for (; hosts && *hosts; hosts += strcspn(hosts, ","), hosts += *hosts == ',') {
        av_strlcpy(pattern, hosts, FFMIN(sizeof pattern, strcspn(hosts, ",") + 1));
        if (!fnmatch(pattern, host, FNM_CASEFOLD))
            return true;
    }
    return false;
}

static bool same_host(const char *a, const char *b)
{
    char host[512], other[512];
    host_of(a, host, sizeof host);
    host_of(b, other, sizeof other);
    return *host && !strcasecmp(host, other);
}

// The reason why the input may not open this address besides; NULL: it may.
static const char *objection(struct reach *reach, const char *url)
{
    char host[512];
    bool http = reach->url && has_scheme(reach->url, "http,https");
    const char *inner = url;
    if (!av_strstart(url, "crypto+", &inner))
        av_strstart(url, "crypto:", &inner);
    if (!http)
        return "sluice opens only what it is given";
    if (allows_any(reach) || has_scheme(inner, "data"))
        return NULL;
    if (!has_scheme(inner, "http,https"))
        return "a playlist from HTTP may name addresses of HTTP only";
    pthread_mutex_lock(&reach->lock);
    bool own = same_host(inner, reach->url) || same_host(inner, reach->origin);
    bool secure = has_scheme(reach->url, "https") || has_scheme(reach->origin, "https");
    pthread_mutex_unlock(&reach->lock);
    host_of(inner, host, sizeof host);
    if (!own && !is_listed(reach->hosts, host))
        return "a playlist may fetch from its own host only; --playlist-hosts allows others";
    if (secure && !has_scheme(inner, "https"))
        return "a playlist from https may fetch by https only; --playlist-hosts any allows more";
    return NULL;
}

// ---- opening ----

static int refuse(struct reach *reach, const char *url, const char *why)
{
    char shown[256];
    secrets_copy(url, SECRETS_IN_NAME, shown, sizeof shown);
    pthread_mutex_lock(&reach->lock);
    bool again = reach->reported && *reach->refusal;
    if (!again)
        snprintf(reach->refusal, sizeof reach->refusal, "names another file or address (%s): %s",
                 shown, why);
    pthread_mutex_unlock(&reach->lock);
    return AVERROR(EACCES);
}

static bool is_secure(const char *url)
{
    return has_scheme(url, "https,rtsps,rtmps,rtmpts,tls");
}

// An AVERROR below zero.
static int set_tls(const struct reach *reach, AVDictionary **options)
{
    // Set either way: FFmpeg's own default changed with version 8.
    int error = av_dict_set(options, "tls_verify", reach->tls_verify ? "1" : "0", 0);
    if (error >= 0 && reach->ca_file)
        error = av_dict_set(options, "ca_file", reach->ca_file, 0);
    return error;
}

// Check where an address led to. A redirection to where it may not go is closed.
static int check_location(struct reach *reach, bool own, AVIOContext **io)
{
    uint8_t *location = NULL;
    int error = 0;
    if (av_opt_get(*io, "location", AV_OPT_SEARCH_CHILDREN, &location) < 0 || !location)
        return 0;
    const char *to = (const char *)location;
    bool lost = reach->tls_verify && is_secure(reach->url) && *to && !is_secure(to);
    const char *why = lost ? "it was redirected to where --tls-verify cannot look"
                      : !own && *to && strstr(to, "://") ? objection(reach, to)
                                                         : NULL;
    if (why) {
        error = refuse(reach, to, why);
        avio_closep(io);
    } else if (own && *to) {
        pthread_mutex_lock(&reach->lock);
        av_strlcpy(reach->origin, to, sizeof reach->origin);
        pthread_mutex_unlock(&reach->lock);
    }
    av_free(location);
    return error;
}

static int open_within(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options)
{
    struct reach *reach = format->opaque;
    bool own = reach->url && !strcmp(url, reach->url);
    const char *why = own ? NULL : objection(reach, url);
    if (why)
        return refuse(reach, url, why);
    AVDictionary *with = NULL;
    int error = options ? av_dict_copy(&with, *options, 0) : 0;
    if (error >= 0)
        error = set_tls(reach, &with);
    if (error >= 0 && !own && !allows_any(reach))
        error = av_dict_set(&with, "max_redirects", "0", 0);
    pthread_mutex_lock(&reach->lock);
    int (*open)(AVFormatContext *, AVIOContext **, const char *, int, AVDictionary **) =
        reach->open;
    pthread_mutex_unlock(&reach->lock);
    if (error >= 0)
        error = open(format, io, url, flags, &with);
    av_dict_free(&with);
    return error < 0 ? error : check_location(reach, own, io);
}

int reach_bind(struct reach *reach, AVFormatContext *format, AVDictionary **options)
{
    assert(format && options);
    const char *protocols = reach->url ? reach_protocols(reach->url) : NULL;
    pthread_mutex_lock(&reach->lock); // a connection before this one may still hang in it
    reach->open = format->io_open;
    pthread_mutex_unlock(&reach->lock);
    format->opaque = reach;
    format->io_open = open_within;
    int error = av_dict_set(options, "protocol_whitelist", protocols ? protocols : "none", 0);
    if (error >= 0)
        error = av_dict_set(options, "format_whitelist", reach->formats, 0);
    bool verified = reach->url && has_scheme(reach->url, "rtsps") && reach_can_verify(reach->url);
    return error >= 0 && verified ? set_tls(reach, options) : error;
}

// ---- outcome ----

bool reach_take_refusal(struct reach *reach, char *why, size_t size)
{
    pthread_mutex_lock(&reach->lock);
    bool fresh = *reach->refusal && !reach->reported;
    if (fresh)
        av_strlcpy(why, reach->refusal, size);
    reach->reported |= fresh;
    pthread_mutex_unlock(&reach->lock);
    return fresh;
}

bool reach_can_verify(const char *url)
{
    const AVInputFormat *rtsp = av_find_input_format("rtsp");
    if (has_scheme(url, "rtmpts")) // libavformat hands the connection below it no option
        return false;
    return !has_scheme(url, "rtsps") ||
           (rtsp &&
            av_opt_find((void *)&rtsp->priv_class, "tls_verify", NULL, 0, AV_OPT_SEARCH_FAKE_OBJ));
}

enum reach_peer reach_peer(const struct reach *reach)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&reach->lock;
    pthread_mutex_lock(lock);
    bool secure = reach->url && is_secure(reach->url) && is_secure(reach->origin);
    pthread_mutex_unlock(lock);
    if (!secure)
        return REACH_PEER_PLAIN;
    return reach->tls_verify ? REACH_PEER_VERIFIED : REACH_PEER_UNVERIFIED;
}

const char *reach_peer_name(const struct reach *reach)
{
    static const char *const names[] = {NULL, "unverified", "verified"};
    return names[reach_peer(reach)];
}

const char *reach_doubt(const struct reach *reach)
{
    return reach && reach_peer(reach) == REACH_PEER_VERIFIED
               ? ", perhaps because the server's certificate is not valid, on which --tls-verify "
                 "and --ca-file insist (-v shows more)"
               : "";
}

// ---- life ----

static bool copy_text(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

struct reach *reach_create(const struct reach_request *request)
{
    struct reach *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    atomic_init(&made->users, 1);
    pthread_mutex_init(&made->lock, NULL);
    made->tls_verify = request->tls_verify;
    if (!copy_text(request->url, &made->url) || !copy_text(request->hosts, &made->hosts) ||
        !copy_text(request->ca_file, &made->ca_file) || !(made->formats = list_formats(made)))
        reach_unref(&made);
    if (made)
        av_strlcpy(made->origin, made->url ? made->url : "", sizeof made->origin);
    return made;
}

struct reach *reach_ref(struct reach *reach)
{
    if (reach)
        atomic_fetch_add(&reach->users, 1);
    return reach;
}

void reach_unref(struct reach **reach)
{
    struct reach *old = *reach;
    *reach = NULL;
    if (!old || atomic_fetch_sub(&old->users, 1) > 1)
        return;
    pthread_mutex_destroy(&old->lock);
    av_free(old->formats);
    free(old->url);
    free(old->hosts);
    free(old->ca_file);
    free(old);
}

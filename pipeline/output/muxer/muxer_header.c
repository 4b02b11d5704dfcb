// How a muxer begins: the connection, options, the header.
#include <assert.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/ffmpeg/url.h"
#include "pipeline/output/muxer/muxer_internal.h"

bool muxer_has_option(const AVOutputFormat *container, const char *key)
{
    const AVClass *generic = avformat_get_class(), *own = container->priv_class;
    const AVOption *option = av_opt_find(&generic, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
    if (option && option->flags & AV_OPT_FLAG_ENCODING_PARAM)
        return true;
    return own && av_opt_find(&own, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
}

// True if the header of an MP4 has to wait for the first packets of some stream.
static bool needs_packets(const struct muxer *muxer)
{
    for (unsigned k = 0; k < muxer->format->nb_streams; k++) {
        enum AVCodecID id = muxer->format->streams[k]->codecpar->codec_id;
        if (id == AV_CODEC_ID_AC3 || id == AV_CODEC_ID_EAC3 || id == AV_CODEC_ID_TRUEHD)
            return true;
    }
    return false;
}

// Connect to an address, unless the muxer does so by itself.
static int connect_to(struct muxer *muxer)
{
    AVFormatContext *format = muxer->format;
    AVDictionary *options = NULL;
    int error = 0;
    if (muxer->destination->kind != DESTINATION_ADDRESS || format->oformat->flags & AVFMT_NOFILE)
        return 0;
    if (av_strstart(muxer->name, "udp:", NULL)) // whole packets of MPEG-TS in each of UDP
        error = av_dict_set(&options, "pkt_size", "1316", 0);
    if (error >= 0)
        error = avio_open2(&format->pb, muxer->name, AVIO_FLAG_WRITE, &format->interrupt_callback,
                           &options);
    av_dict_free(&options);
    return error;
}

// Check that the first segment's file does not exist: those of an earlier run would be in the way
// later. Where numbers begin elsewhere each file is checked when it is opened.
static enum status check_segments(const struct muxer *muxer, const AVDictionary *options)
{
    static const char *const others[] = {"start_number", "hls_start_number_source", "strftime"};
    const AVDictionaryEntry *given = av_dict_get(options, "hls_segment_filename", NULL, 0);
    const AVDictionaryEntry *type = av_dict_get(options, "hls_segment_type", NULL, 0);
    const char *dot = strrchr(muxer->name, '.');
    char pattern[4096], name[4096];
    int count;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (av_dict_get(options, others[k], NULL, 0))
            return STATUS_OK;
    if (!muxer->destination->quirks->numbers_segments)
        return STATUS_OK;
    snprintf(pattern, sizeof pattern, "%.*s%%d.%s", (int)(dot ? dot - muxer->name : 0), muxer->name,
             type && !strcmp(type->value, "fmp4") ? "m4s" : "ts");
    const char *names = given ? given->value : pattern;
    int number = url_first_number(names, &count);
    if (number < 0 || url_numbered_name(name, sizeof name, names, number, 0) < 0)
        return STATUS_OK;
    return file_check(name, muxer->destination->overwrite, muxer->log);
}

// Film: all files get their names together, unless the muxer is asked to rename segments when they
// are complete.
static enum status prepare_playlist(struct muxer *muxer, const AVDictionary *options)
{
    const AVDictionaryEntry *flags = av_dict_get(options, "hls_flags", NULL, 0);
    bool renames = flags && strstr(flags->value, "second_level");
    // DASH's muxer opens its single file without io_open.
    bool opens = av_dict_get(options, "single_file", NULL, 0);
    muxer->files.whole = !muxer->live && !renames && !opens;
    av_freep(&muxer->format->url);
    muxer->format->url = muxer_files_url(&muxer->files, muxer->name);
    return muxer->format->url ? check_segments(muxer, options) : STATUS_MEMORY;
}

static bool applies(const struct muxer *muxer, enum muxer_when when)
{
    switch (when) {
    case MUXER_WHEN_LIVE:
        return muxer->live;
    case MUXER_WHEN_FILM:
        return !muxer->live;
    case MUXER_WHEN_ADDRESS:
        return muxer->destination->kind == DESTINATION_ADDRESS;
    case MUXER_WHEN_STILL:
        return !name_is_sequence(muxer->name);
    default:
        return true;
    }
}

// Set the options that the user has not. Files that cannot be sought in, or may break off at any
// time, are written in fragments.
static enum status set_options(const struct muxer *muxer, AVDictionary **options)
{
    int error = 0;
    const struct muxer_quirks *quirks = muxer->destination->quirks;
    bool seekable = muxer->format->pb && muxer->format->pb->seekable;
    const int count = sizeof quirks->option / sizeof *quirks->option;
    for (int k = 0; k < count && quirks->option[k].key && error >= 0; k++)
        if (applies(muxer, quirks->option[k].when))
            error = av_dict_set(options, quirks->option[k].key, quirks->option[k].value,
                                AV_DICT_DONT_OVERWRITE);
    if (quirks->fragments && (!seekable || muxer->live) && error >= 0)
        error = av_dict_set(options, "movflags",
                            muxer->live && !needs_packets(muxer)
                                ? "+frag_keyframe+empty_moov+default_base_moof"
                                : "+frag_keyframe+delay_moov+default_base_moof",
                            AV_DICT_APPEND);
    return error < 0 ? STATUS_MEMORY : STATUS_OK;
}

// True if the container, with these options, wants AAC without ADTS headers.
static bool wants_bare_aac(const struct muxer_quirks *quirks, const AVDictionary *options)
{
    const char *inner = muxer_inner(quirks, options);
    const AVOutputFormat *segments = inner ? av_guess_format(inner, NULL, NULL) : NULL;
    return quirks->bare_aac || (segments && muxer_quirks_of(segments)->bare_aac);
}

enum status muxer_begin(struct muxer *muxer, AVDictionary **options)
{
    assert(muxer->route && !muxer->begun);
    const struct destination *destination = muxer->destination;
    int error = connect_to(muxer);
    if (error < 0)
        return muxer_failed(muxer, error, "it is not reached");
    if (muxer->live || destination->kind == DESTINATION_ADDRESS) // nothing waits to go together
        muxer->format->flags |= AVFMT_FLAG_FLUSH_PACKETS;
    enum status status =
        destination_is_playlist(destination) ? prepare_playlist(muxer, *options) : STATUS_OK;
    if (!status && wants_bare_aac(destination->quirks, *options))
        status = muxer_strip_aac(muxer);
    if (!status)
        status = set_options(muxer, options);
    if (status)
        return status;
    error = avformat_write_header(muxer->format, options);
    if (error < 0)
        return muxer_failed(muxer, error, "the header could not be written");
    muxer->begun = true;
    return STATUS_OK;
}

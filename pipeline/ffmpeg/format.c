#include "pipeline/ffmpeg/format.h"

#include <libavutil/mem.h>

#include "pipeline/ffmpeg/compat.h"

static bool copy_stream(AVFormatContext *to, const AVStream *from)
{
    AVStream *stream = avformat_new_stream(to, NULL);
    if (!stream || avcodec_parameters_copy(stream->codecpar, from->codecpar) < 0 ||
        stream_data_copy(stream, from) < 0 ||
        av_dict_copy(&stream->metadata, from->metadata, 0) < 0)
        return false;
    stream->id = from->id;
    stream->time_base = from->time_base;
    stream->start_time = from->start_time;
    stream->disposition = from->disposition;
    stream->sample_aspect_ratio = from->sample_aspect_ratio;
    stream->avg_frame_rate = from->avg_frame_rate;
    stream->r_frame_rate = from->r_frame_rate;
    return true;
}

static bool copy_chapters(AVFormatContext *to, const AVFormatContext *from)
{
    to->chapters = av_calloc(from->nb_chapters, sizeof(AVChapter *));
    for (unsigned k = 0; to->chapters && k < from->nb_chapters; k++) {
        AVChapter *chapter = av_mallocz(sizeof *chapter);
        if (!chapter)
            return false;
        *chapter = *from->chapters[k];
        chapter->metadata = NULL;
        to->chapters[to->nb_chapters++] = chapter;
        if (av_dict_copy(&chapter->metadata, from->chapters[k]->metadata, 0) < 0)
            return false;
    }
    return to->chapters;
}

AVFormatContext *format_describe(const AVFormatContext *from)
{
    AVFormatContext *to = avformat_alloc_context();
    if (!to)
        return NULL;
    bool whole = av_dict_copy(&to->metadata, from->metadata, 0) >= 0;
    for (unsigned k = 0; k < from->nb_streams && whole; k++)
        whole = copy_stream(to, from->streams[k]);
    if (!whole || (from->nb_chapters && !copy_chapters(to, from))) {
        avformat_free_context(to);
        return NULL;
    }
    to->iformat = from->iformat;
    to->start_time = from->start_time;
    to->duration = from->duration;
    return to;
}

int format_find_video(AVFormatContext *file)
{
    int video = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (video < 0 && avformat_find_stream_info(file, NULL) >= 0)
        video = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    return video;
}

int format_read(AVFormatContext *file, AVPacket *packet)
{
    int error = av_read_frame(file, packet), reading = file->pb ? file->pb->error : 0;
    if (reading >= 0 || reading == AVERROR_EOF)
        return error;
    av_packet_unref(packet);
    return reading;
}

bool format_has_ended(int error)
{
    return error == AVERROR_EOF || error == AVERROR_INVALIDDATA;
}

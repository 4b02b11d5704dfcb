// Filter what FFmpeg decodes, in the memory where it decodes, and write raw frames. With --cuda the
// GPU decodes, and frames stay on it until they are filtered.
//
//     flags=$(pkg-config --cflags --libs sluice-filter libavformat libavcodec libavutil)
//     cc ffmpeg_decode.c $flags -o ffmpeg_decode
//     ./ffmpeg_decode in.mp4 out.yuv [--cuda]
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <sluice/filter.h>

#define CUDA_VERSION 0 // libavutil's header wants no more of cuda.h than these two types
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#include <libavutil/hwcontext_cuda.h>

static AVBufferRef *cuda; // FFmpeg's device; NULL: the CPU decodes
static struct sluice_filter *filter;
static struct sluice_format format; // of frames that come in, and of those that go out

static enum AVPixelFormat choose(AVCodecContext *codec, const enum AVPixelFormat *offered)
{
    return cuda ? AV_PIX_FMT_CUDA : avcodec_default_get_format(codec, offered);
}

// Make a filter for frames like this one, which leaves their format as it is.
static int begin(const AVFrame *frame)
{
    const AVBufferRef *pool = frame->hw_frames_ctx;
    int pixel = pool ? ((AVHWFramesContext *)pool->data)->sw_format : frame->format;
    format = (struct sluice_format){.size = sizeof format, .pixfmt = av_get_pix_fmt_name(pixel)};
    format.width = frame->width, format.height = frame->height;
    struct sluice_filter_config config = {.size = sizeof config, .chain = "gaussian=2"};
    config.input = format;
    config.output_pixfmt = format.pixfmt;
    config.backend = pool ? SLUICE_BACKEND_CUDA : SLUICE_BACKEND_CPU;
    return sluice_filter_create(&config, &filter);
}

// An AVFrame as sluice sees it; where its format is AV_PIX_FMT_CUDA, data[] is in device memory.
static struct sluice_frame view(const AVFrame *frame)
{
    struct sluice_frame seen = {.size = sizeof seen, .pts = frame->pts};
    seen.memory = frame->hw_frames_ctx ? SLUICE_MEMORY_DEVICE : SLUICE_MEMORY_HOST;
    for (int p = 0; p < SLUICE_PLANES; p++)
        seen.data[p] = frame->data[p], seen.stride[p] = frame->linesize[p];
    return seen;
}

static int filter_frame(const AVFrame *in, void *stream, FILE *file)
{
    AVFrame *out = av_frame_alloc(), *host = av_frame_alloc();
    size_t bytes;
    out->format = in->format, out->width = in->width, out->height = in->height;
    int status = filter ? 0 : begin(in);
    AVBufferRef *pool = in->hw_frames_ctx;
    if (!status)
        status = pool ? av_hwframe_get_buffer(pool, out, 0) : av_frame_get_buffer(out, 0);
    struct sluice_frame from = view(in), to = view(out);
    if (!status) // on a GPU this waits for nothing, but lets `stream` wait
        status = sluice_filter_run(filter, &from, &to, stream);
    if (!status)
        status = pool ? av_hwframe_transfer_data(host, out, 0) : av_frame_ref(host, out);
    for (int p = 0, rows; !status && !sluice_format_plane(&format, p, &bytes, &rows); p++)
        for (int y = 0; y < rows; y++)
            fwrite(host->data[p] + (ptrdiff_t)y * host->linesize[p], 1, bytes, file);
    av_frame_free(&out);
    av_frame_free(&host);
    return status;
}

int main(int argc, char **argv)
{
    AVFormatContext *input = NULL;
    const AVCodec *decoder;
    FILE *file = argc > 2 ? fopen(argv[2], "wb") : NULL;
    if (!file || avformat_open_input(&input, argv[1], NULL, NULL) < 0)
        return 1;
    int video = av_find_best_stream(input, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0), status = 0;
    AVCodecContext *codec = video < 0 ? NULL : avcodec_alloc_context3(decoder);
    if (!codec || (argc > 3 && av_hwdevice_ctx_create(&cuda, AV_HWDEVICE_TYPE_CUDA, NULL, NULL, 1)))
        return 1; // 1: the device's primary context, which is where sluice filters
    AVCUDADeviceContext *device = cuda ? ((AVHWDeviceContext *)cuda->data)->hwctx : NULL;
    avcodec_parameters_to_context(codec, input->streams[video]->codecpar);
    codec->hw_device_ctx = cuda ? av_buffer_ref(cuda) : NULL;
    codec->get_format = choose;
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    bool more = !(status = avcodec_open2(codec, decoder, NULL));
    for (; more && !status; av_packet_unref(packet)) {
        more = av_read_frame(input, packet) >= 0;
        if (!more || packet->stream_index == video)
            avcodec_send_packet(codec, more ? packet : NULL);
        while (!status && avcodec_receive_frame(codec, frame) >= 0)
            status = filter_frame(frame, device ? device->stream : NULL, file);
    }
    sluice_filter_destroy(&filter); // and all else, which ends with the program
    return fclose(file) || status;
}

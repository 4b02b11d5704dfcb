#include "hosts/gstreamer/formats.h"

#define FORMATS(SAME)              \
    SAME(I420, "yuv420p")          \
    SAME(NV12, "nv12")             \
    SAME(Y444, "yuv444p")          \
    SAME(Y42B, "yuv422p")          \
    SAME(Y41B, "yuv411p")          \
    SAME(YUV9, "yuv410p")          \
    SAME(A420, "yuva420p")         \
    SAME(NV21, "nv21")             \
    SAME(NV16, "nv16")             \
    SAME(NV24, "nv24")             \
    SAME(YUY2, "yuyv422")          \
    SAME(UYVY, "uyvy422")          \
    SAME(YVYU, "yvyu422")          \
    SAME(VUYA, "vuya")             \
    SAME(GRAY8, "gray")            \
    SAME(GRAY16_LE, "gray16le")    \
    SAME(GRAY16_BE, "gray16be")    \
    SAME(RGB, "rgb24")             \
    SAME(BGR, "bgr24")             \
    SAME(RGBA, "rgba")             \
    SAME(BGRA, "bgra")             \
    SAME(ARGB, "argb")             \
    SAME(ABGR, "abgr")             \
    SAME(RGBx, "rgb0")             \
    SAME(BGRx, "bgr0")             \
    SAME(xRGB, "0rgb")             \
    SAME(xBGR, "0bgr")             \
    SAME(GBR, "gbrp")              \
    SAME(GBRA, "gbrap")            \
    SAME(I420_10LE, "yuv420p10le") \
    SAME(I420_12LE, "yuv420p12le") \
    SAME(I422_10LE, "yuv422p10le") \
    SAME(I422_12LE, "yuv422p12le") \
    SAME(Y444_10LE, "yuv444p10le") \
    SAME(Y444_12LE, "yuv444p12le") \
    SAME(Y444_16LE, "yuv444p16le") \
    SAME(P010_10LE, "p010le")      \
    SAME(P012_LE, "p012le")        \
    SAME(P016_LE, "p016le")        \
    SAME(GBR_10LE, "gbrp10le")     \
    SAME(GBR_12LE, "gbrp12le")     \
    SAME(RGBA64_LE, "rgba64le")    \
    SAME(BGRA64_LE, "bgra64le")

// The list ends with a format once more, as each of the others has a comma behind it.
#define CAPS(name, pixfmt) #name ", "
const char formats_caps[] = "{ " FORMATS(CAPS) "I420 }";

static const char *pixfmt_of(GstVideoFormat format)
{
    switch ((int)format) {
#define CASE(name, pixfmt)        \
    case GST_VIDEO_FORMAT_##name: \
        return pixfmt;
        FORMATS(CASE)
#undef CASE
    }
    return NULL;
}

static enum sluice_range range_of(const GstVideoInfo *info)
{
    if (GST_VIDEO_INFO_IS_RGB(info))
        return SLUICE_RANGE_ANY;
    switch (info->colorimetry.range) {
    case GST_VIDEO_COLOR_RANGE_0_255:
        return SLUICE_RANGE_FULL;
    case GST_VIDEO_COLOR_RANGE_16_235:
        return SLUICE_RANGE_LIMITED;
    default:
        return SLUICE_RANGE_ANY;
    }
}

static enum sluice_matrix matrix_of(GstVideoColorMatrix matrix)
{
    switch (matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT709:
        return SLUICE_MATRIX_BT709;
    case GST_VIDEO_COLOR_MATRIX_BT601:
        return SLUICE_MATRIX_BT601;
    case GST_VIDEO_COLOR_MATRIX_FCC:
        return SLUICE_MATRIX_FCC;
    case GST_VIDEO_COLOR_MATRIX_SMPTE240M:
        return SLUICE_MATRIX_SMPTE240M;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
        return SLUICE_MATRIX_BT2020;
    default:
        return SLUICE_MATRIX_UNKNOWN;
    }
}

static enum sluice_siting siting_of(GstVideoChromaSite site)
{
    if (site == GST_VIDEO_CHROMA_SITE_COSITED)
        return SLUICE_SITING_TOP_LEFT;
    return site == GST_VIDEO_CHROMA_SITE_JPEG ? SLUICE_SITING_CENTER : SLUICE_SITING_LEFT;
}

bool formats_describe(const GstVideoInfo *info, struct sluice_format *format)
{
    *format = (struct sluice_format){.size = sizeof *format,
                                     .pixfmt = pixfmt_of(GST_VIDEO_INFO_FORMAT(info)),
                                     .width = GST_VIDEO_INFO_WIDTH(info),
                                     .height = GST_VIDEO_INFO_HEIGHT(info),
                                     .range = range_of(info),
                                     .matrix = matrix_of(info->colorimetry.matrix),
                                     .siting = siting_of(info->chroma_site)};
    return format->pixfmt;
}

static GstVideoColorMatrix gst_matrix_of(enum sluice_matrix matrix)
{
    switch (matrix) {
    case SLUICE_MATRIX_BT709:
        return GST_VIDEO_COLOR_MATRIX_BT709;
    case SLUICE_MATRIX_BT601:
        return GST_VIDEO_COLOR_MATRIX_BT601;
    case SLUICE_MATRIX_FCC:
        return GST_VIDEO_COLOR_MATRIX_FCC;
    case SLUICE_MATRIX_SMPTE240M:
        return GST_VIDEO_COLOR_MATRIX_SMPTE240M;
    case SLUICE_MATRIX_BT2020:
        return GST_VIDEO_COLOR_MATRIX_BT2020;
    case SLUICE_MATRIX_UNKNOWN:
        break;
    }
    return GST_VIDEO_COLOR_MATRIX_UNKNOWN;
}

static const char *site_of(enum sluice_siting siting)
{
    return siting == SLUICE_SITING_LEFT     ? "mpeg2"
           : siting == SLUICE_SITING_CENTER ? "jpeg"
                                            : "cosited";
}

static void prefer(GstStructure *caps, const char *field, const char *value)
{
    if (gst_structure_has_field(caps, field))
        gst_structure_fixate_field_string(caps, field, value);
    else
        gst_structure_set(caps, field, G_TYPE_STRING, value, NULL);
}

void formats_say(const GstVideoInfo *in, const GstVideoInfo *out,
                 const struct sluice_format *format, GstStructure *caps)
{
    GstVideoColorimetry meaning = in->colorimetry;
    bool rgb = GST_VIDEO_INFO_IS_RGB(out);
    meaning.range = rgb || format->range == SLUICE_RANGE_FULL ? GST_VIDEO_COLOR_RANGE_0_255
                                                              : GST_VIDEO_COLOR_RANGE_16_235;
    meaning.matrix = rgb ? GST_VIDEO_COLOR_MATRIX_RGB : gst_matrix_of(format->matrix);
    gchar *text = gst_video_colorimetry_to_string(&meaning);
    if (text)
        prefer(caps, "colorimetry", text);
    g_free(text);
    if (GST_VIDEO_INFO_IS_YUV(out) && GST_VIDEO_FORMAT_INFO_W_SUB(out->finfo, 1))
        prefer(caps, "chroma-site", site_of(format->siting));
}

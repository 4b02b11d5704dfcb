// A GStreamer element, `sluice`: a chain of stages on raw video in system memory.
//
//     gst-launch-1.0 videotestsrc ! sluice chain=gray,gaussian=2,sobel ! videoconvert ! autovideosink
//
// The output has the input's format where what follows takes it, else any that both libraries know;
// the filter converts by itself.
//
// Threads. Properties are set from any thread, under the object's lock; the filter belongs to the
// streaming thread, which looks for changes before every frame.
#include <gst/video/gstvideofilter.h>
#include <string.h>

#include "hosts/gstreamer/formats.h"
#include "sluice/filter.h"

#define INITIAL_CHAIN "gray,gaussian=1.4,sobel,threshold=20:240"

GST_DEBUG_CATEGORY_STATIC(sluice_debug);
#define GST_CAT_DEFAULT sluice_debug

struct _GstSluice {
    GstVideoFilter parent;
    // ---- guarded by the object's lock ----
    gchar *chain;
    gint backend, device;
    gboolean changed; // the chain, since the filter has it
    gchar *plan;
    // ---- of the streaming thread ----
    struct sluice_filter *filter;
    gchar *failure; // the last sentence of the library
};

G_DECLARE_FINAL_TYPE(GstSluice, gst_sluice, GST, SLUICE, GstVideoFilter)
G_DEFINE_TYPE(GstSluice, gst_sluice, GST_TYPE_VIDEO_FILTER)

enum { PROPERTY_CHAIN = 1, PROPERTY_BACKEND, PROPERTY_DEVICE, PROPERTY_PLAN };

// ---- the filter ----

static void take_sentence(void *opaque, enum sluice_log_level level, const char *sentence)
{
    GstSluice *self = opaque;
    if (level == SLUICE_LOG_ERROR) {
        g_free(self->failure);
        self->failure = g_strdup(sentence);
    } else if (level == SLUICE_LOG_WARNING) {
        GST_WARNING_OBJECT(self, "%s", sentence);
    } else {
        GST_INFO_OBJECT(self, "%s", sentence);
    }
}

static void fail(GstSluice *self)
{
    GST_ELEMENT_ERROR(self, LIBRARY, SETTINGS, ("%s", self->failure ? self->failure : "failed"),
                      (NULL));
}

// Keep the plan for those who ask.
static void note_plan(GstSluice *self)
{
    char *plan = sluice_filter_plan(self->filter);
    GST_OBJECT_LOCK(self);
    g_free(self->plan);
    self->plan = g_strdup(plan);
    GST_OBJECT_UNLOCK(self);
    free(plan);
}

static gboolean set_info(GstVideoFilter *base, GstCaps *in_caps, GstVideoInfo *in,
                         GstCaps *out_caps, GstVideoInfo *out)
{
    GstSluice *self = GST_SLUICE(base);
    struct sluice_format output;
    struct sluice_filter_config config = {
        .size = sizeof config, .frames_in_flight = 1, .log = take_sentence, .opaque = self};
    (void)in_caps, (void)out_caps;
    sluice_filter_destroy(&self->filter);
    if (!formats_describe(in, &config.input) || !formats_describe(out, &output))
        return FALSE;
    config.output_pixfmt = output.pixfmt;
    config.output_range = output.range;
    GST_OBJECT_LOCK(self);
    gchar *chain = g_strdup(self->chain);
    config.chain = chain;
    config.backend = (enum sluice_backend)self->backend;
    config.device = self->device;
    self->changed = FALSE;
    GST_OBJECT_UNLOCK(self);
    if (!sluice_filter_create(&config, &self->filter))
        note_plan(self);
    g_free(chain);
    return TRUE; // the first frame fails: negotiation would be tried again and again
}

// A chain that is wrong leaves the one before it.
static void change_chain(GstSluice *self)
{
    char why[512] = "";
    GST_OBJECT_LOCK(self);
    gchar *chain = self->changed ? g_strdup(self->chain) : NULL;
    self->changed = FALSE;
    GST_OBJECT_UNLOCK(self);
    if (!chain)
        return;
    if (sluice_filter_set_chain(self->filter, chain, why, sizeof why))
        GST_ELEMENT_WARNING(self, LIBRARY, SETTINGS, ("%s", why), (NULL));
    else
        note_plan(self);
    g_free(chain);
}

static struct sluice_frame frame_of(const GstVideoFrame *frame)
{
    struct sluice_frame picture = {.size = sizeof picture,
                                   .interlaced = GST_VIDEO_FRAME_IS_INTERLACED(frame)};
    for (guint k = 0; k < GST_VIDEO_FRAME_N_PLANES(frame); k++) {
        picture.data[k] = GST_VIDEO_FRAME_PLANE_DATA(frame, k);
        picture.stride[k] = GST_VIDEO_FRAME_PLANE_STRIDE(frame, k);
    }
    return picture;
}

static GstFlowReturn transform_frame(GstVideoFilter *base, GstVideoFrame *in, GstVideoFrame *out)
{
    GstSluice *self = GST_SLUICE(base);
    struct sluice_frame from = frame_of(in), to = frame_of(out);
    if (self->filter)
        change_chain(self);
    if (self->filter && !sluice_filter_run(self->filter, &from, &to, NULL))
        return GST_FLOW_OK;
    fail(self);
    return GST_FLOW_ERROR;
}

static gboolean stop(GstBaseTransform *base)
{
    sluice_filter_destroy(&GST_SLUICE(base)->filter);
    return TRUE;
}

// ---- caps ----

// The same pictures in the same format, then in every other.
static GstCaps *transform_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                               GstCaps *filter)
{
    GstCaps *others = gst_caps_copy(caps), *known = gst_caps_new_empty();
    GValue formats = G_VALUE_INIT;
    (void)base, (void)direction;
    g_value_init(&formats, GST_TYPE_LIST);
    gst_value_deserialize(&formats, formats_caps);
    for (guint k = 0; k < gst_caps_get_size(others); k++) {
        GstStructure *structure = gst_caps_get_structure(others, k);
        gst_structure_set_value(structure, "format", &formats);
        gst_structure_remove_fields(structure, "colorimetry", "chroma-site", NULL);
    }
    g_value_unset(&formats);
    gst_caps_append(known, gst_caps_copy(caps));
    gst_caps_append(known, others);
    if (filter) {
        GstCaps *both = gst_caps_intersect_full(filter, known, GST_CAPS_INTERSECT_FIRST);
        gst_caps_unref(known);
        return both;
    }
    return known;
}

// What comes out of the chain in this format. A filter that runs nowhere says it.
static bool ask_output(GstSluice *self, const GstVideoInfo *in, const GstVideoInfo *out,
                       struct sluice_format *output)
{
    struct sluice_filter *filter = NULL;
    struct sluice_filter_config config = {
        .size = sizeof config, .frames_in_flight = 1, .backend = SLUICE_BACKEND_SCALAR};
    if (!formats_describe(in, &config.input) || !formats_describe(out, output))
        return false;
    bool yuv = GST_VIDEO_INFO_IS_YUV(in) && GST_VIDEO_INFO_IS_YUV(out);
    config.output_pixfmt = output->pixfmt;
    config.output_range = yuv ? config.input.range : output->range;
    GST_OBJECT_LOCK(self);
    gchar *chain = g_strdup(self->chain);
    GST_OBJECT_UNLOCK(self);
    config.chain = chain;
    bool known = !sluice_filter_create(&config, &filter) && !sluice_filter_output(filter, output);
    sluice_filter_destroy(&filter);
    g_free(chain);
    return known;
}

// A format that is not the input's has a colorimetry of its own, which others would guess.
static GstCaps *fixate_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                            GstCaps *others)
{
    GstVideoInfo in, out;
    struct sluice_format output;
    others = gst_caps_make_writable(gst_caps_truncate(others));
    GstStructure *structure = gst_caps_get_structure(others, 0);
    gst_structure_fixate_field(structure, "format");
    const char *name = gst_structure_get_string(structure, "format");
    if (direction == GST_PAD_SINK && name && gst_video_info_from_caps(&in, caps) &&
        gst_video_format_from_string(name) != GST_VIDEO_INFO_FORMAT(&in) &&
        gst_video_info_set_format(&out, gst_video_format_from_string(name),
                                  (guint)GST_VIDEO_INFO_WIDTH(&in),
                                  (guint)GST_VIDEO_INFO_HEIGHT(&in)) &&
        !GST_VIDEO_INFO_IS_GRAY(&out) && ask_output(GST_SLUICE(base), &in, &out, &output))
        formats_say(&in, &out, &output, structure);
    return GST_BASE_TRANSFORM_CLASS(gst_sluice_parent_class)
        ->fixate_caps(base, direction, caps, others);
}

// ---- properties ----

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
    GstSluice *self = GST_SLUICE(object);
    GST_OBJECT_LOCK(self);
    if (id == PROPERTY_CHAIN) {
        g_free(self->chain);
        self->chain = g_value_dup_string(value);
        self->changed = TRUE;
    } else if (id == PROPERTY_BACKEND) {
        self->backend = g_value_get_enum(value);
    } else if (id == PROPERTY_DEVICE) {
        self->device = g_value_get_int(value);
    } else {
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(self);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
    GstSluice *self = GST_SLUICE(object);
    GST_OBJECT_LOCK(self);
    if (id == PROPERTY_CHAIN)
        g_value_set_string(value, self->chain);
    else if (id == PROPERTY_BACKEND)
        g_value_set_enum(value, self->backend);
    else if (id == PROPERTY_DEVICE)
        g_value_set_int(value, self->device);
    else if (id == PROPERTY_PLAN)
        g_value_set_string(value, self->plan);
    else
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    GST_OBJECT_UNLOCK(self);
}

static void finalize(GObject *object)
{
    GstSluice *self = GST_SLUICE(object);
    sluice_filter_destroy(&self->filter);
    g_free(self->chain);
    g_free(self->plan);
    g_free(self->failure);
    G_OBJECT_CLASS(gst_sluice_parent_class)->finalize(object);
}

static GType backend_type(void)
{
    static GType type;
    static const GEnumValue values[] = {
        {SLUICE_BACKEND_AUTO, "a GPU where there is one, else the CPU", "auto"},
        {SLUICE_BACKEND_CUDA, "the GPU", "cuda"},
        {SLUICE_BACKEND_CPU, "the CPU", "cpu"},
        {SLUICE_BACKEND_SCALAR, "the reference, slow and exact", "scalar"},
        {0, NULL, NULL}};
    if (g_once_init_enter(&type))
        g_once_init_leave(&type, g_enum_register_static("GstSluiceBackend", values));
    return type;
}

// ---- the element ----

static void install_properties(GObjectClass *class)
{
    const GParamFlags both = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
    g_object_class_install_property(
        class, PROPERTY_CHAIN,
        g_param_spec_string("chain", "Chain", "Stages and their options: sluice stages",
                            INITIAL_CHAIN, both | GST_PARAM_MUTABLE_PLAYING));
    g_object_class_install_property(class, PROPERTY_BACKEND,
                                    g_param_spec_enum("backend", "Backend", "What filters",
                                                      backend_type(), SLUICE_BACKEND_AUTO,
                                                      both | GST_PARAM_MUTABLE_READY));
    g_object_class_install_property(class, PROPERTY_DEVICE,
                                    g_param_spec_int("device", "Device", "Which GPU", 0, G_MAXINT,
                                                     0, both | GST_PARAM_MUTABLE_READY));
    g_object_class_install_property(
        class, PROPERTY_PLAN,
        g_param_spec_string("plan", "Plan", "What the chain became, once caps are known", NULL,
                            G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void add_pad(GstElementClass *class, const char *name, GstPadDirection direction)
{
    gchar *text = g_strdup_printf("video/x-raw, format = (string) %s, width = (int) [1, max], "
                                  "height = (int) [1, max], framerate = (fraction) [0, max]",
                                  formats_caps);
    GstCaps *caps = gst_caps_from_string(text);
    gst_element_class_add_pad_template(class,
                                       gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
    g_free(text);
}

static void gst_sluice_class_init(GstSluiceClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    gst_element_class_set_static_metadata(element, "Sluice", "Filter/Effect/Video",
                                          "Blurs, edges, convolutions and more, exactly and fast",
                                          "the authors of sluice");
    add_pad(element, "sink", GST_PAD_SINK);
    add_pad(element, "src", GST_PAD_SRC);
    GST_BASE_TRANSFORM_CLASS(class)->transform_caps = transform_caps;
    GST_BASE_TRANSFORM_CLASS(class)->fixate_caps = fixate_caps;
    GST_BASE_TRANSFORM_CLASS(class)->stop = stop;
    GST_VIDEO_FILTER_CLASS(class)->set_info = set_info;
    GST_VIDEO_FILTER_CLASS(class)->transform_frame = transform_frame;
}

static void gst_sluice_init(GstSluice *self)
{
    self->chain = g_strdup(INITIAL_CHAIN);
}

static gboolean plugin_init(GstPlugin *plugin)
{
    GST_DEBUG_CATEGORY_INIT(sluice_debug, "sluice", 0, "sluice");
    return gst_element_register(plugin, "sluice", GST_RANK_NONE, gst_sluice_get_type());
}

#define PACKAGE "sluice"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, sluice, "Filters video by sluice",
                  plugin_init, SLUICE_VERSION, "BSD", PACKAGE, "Unknown package origin")

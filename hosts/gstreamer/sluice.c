// A GStreamer element, `sluice`: a chain of stages on raw video in system memory, and in that of an
// NVIDIA GPU.
//
//     gst-launch-1.0 videotestsrc ! sluice chain=gray,gaussian=2,sobel ! videoconvert ! autovideosink
//
// The output has the input's format where what follows takes it, else any that both libraries know;
// the filter converts by itself. It stays in the input's memory where what follows takes that.
//
// Threads. Properties are set from any thread, under the object's lock; the filter belongs to the
// streaming thread, which looks for changes before every frame.
#include <gst/video/gstvideofilter.h>
#include <string.h>

#include "hosts/gstreamer/cuda.h"
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
    GstObject *reach; // the context whose memory the filter reaches; NULL: none
    gboolean warned;  // of memory out of reach
    gchar *failure;   // the last sentence of the library
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

// The context that the filter has where it may be on a GPU; NULL: it may not, or there is none.
static GstObject *context_of(GstSluice *self)
{
    GST_OBJECT_LOCK(self);
    bool gpu = self->backend == SLUICE_BACKEND_AUTO || self->backend == SLUICE_BACKEND_CUDA;
    int device = self->device;
    GST_OBJECT_UNLOCK(self);
    return gpu ? cuda_context(device) : NULL;
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
    self->reach = NULL;
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
    if (!sluice_filter_create(&config, &self->filter)) {
        note_plan(self);
        if (g_str_has_prefix(sluice_filter_backend(self->filter), "cuda"))
            self->reach = context_of(self);
    }
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
                                   .memory = cuda_is_mapped(frame) ? SLUICE_MEMORY_DEVICE
                                                                   : SLUICE_MEMORY_HOST,
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
    void *stream;
    GST_LOG_OBJECT(self, "from %s to %s memory", from.memory ? "device" : "host",
                   to.memory ? "device" : "host");
    if (self->filter)
        change_chain(self);
    if (self->filter && cuda_begin(self->reach, in, out, &stream) &&
        !sluice_filter_run(self->filter, &from, &to, stream) && cuda_end(self->reach, out, stream))
        return GST_FLOW_OK;
    fail(self);
    return GST_FLOW_ERROR;
}

static void warn_of_detour(GstSluice *self)
{
    if (!self->warned)
        GST_ELEMENT_WARNING(self, RESOURCE, SETTINGS,
                            ("frames lie in a CUDA context that is not the primary one of the GPU "
                             "that filters: they go by way of host memory"),
                            (NULL));
    self->warned = TRUE;
}

// A buffer's picture where the filter reaches it: on the GPU, else in host memory.
static bool map(GstSluice *self, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags,
                GstVideoFrame *frame)
{
    bool device = cuda_reaches(self->reach, buffer);
    if (self->reach && !device && cuda_holds(buffer))
        warn_of_detour(self);
    if (cuda_map(frame, info, buffer, flags | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, device))
        return true;
    GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("a frame's memory cannot be mapped"), (NULL));
    return false;
}

// GstVideoFilter's own transform() maps buffers to the host alone: this one takes its place.
static GstFlowReturn transform(GstBaseTransform *base, GstBuffer *in, GstBuffer *out)
{
    GstSluice *self = GST_SLUICE(base);
    GstVideoFilter *video = GST_VIDEO_FILTER(base);
    GstVideoFrame from, to;
    GstFlowReturn flow = GST_FLOW_ERROR;
    if (!video->negotiated)
        return GST_FLOW_NOT_NEGOTIATED;
    if (!map(self, &video->in_info, in, GST_MAP_READ, &from))
        return GST_FLOW_ERROR;
    if (map(self, &video->out_info, out, GST_MAP_READWRITE, &to)) {
        flow = transform_frame(video, &from, &to);
        gst_video_frame_unmap(&to);
    }
    gst_video_frame_unmap(&from);
    return flow;
}

static gboolean stop(GstBaseTransform *base)
{
    GstSluice *self = GST_SLUICE(base);
    sluice_filter_destroy(&self->filter);
    self->reach = NULL;
    self->warned = FALSE;
    return TRUE;
}

// ---- memory ----

static bool in_cuda(const GstCaps *caps, guint k)
{
    return cuda_feature && gst_caps_features_contains(gst_caps_get_features(caps, k), cuda_feature);
}

static bool asked_of_cuda(GstQuery *query)
{
    GstCaps *caps;
    gst_query_parse_allocation(query, &caps, NULL);
    return caps && gst_caps_is_fixed(caps) && in_cuda(caps, 0);
}

static gboolean propose_allocation(GstBaseTransform *base, GstQuery *asked, GstQuery *query)
{
    if (asked_of_cuda(query) && !cuda_propose(query, context_of(GST_SLUICE(base))))
        return FALSE;
    return GST_BASE_TRANSFORM_CLASS(gst_sluice_parent_class)
        ->propose_allocation(base, asked, query);
}

static gboolean decide_allocation(GstBaseTransform *base, GstQuery *query)
{
    if (asked_of_cuda(query) && !cuda_decide(query, context_of(GST_SLUICE(base))))
        return FALSE;
    return GST_BASE_TRANSFORM_CLASS(gst_sluice_parent_class)->decide_allocation(base, query);
}

// Neighbours ask for a CUDA context before they make one of their own.
static gboolean query(GstBaseTransform *base, GstPadDirection direction, GstQuery *asked)
{
    if (GST_QUERY_TYPE(asked) == GST_QUERY_CONTEXT &&
        cuda_answer(asked, GST_ELEMENT(base), context_of(GST_SLUICE(base))))
        return TRUE;
    return GST_BASE_TRANSFORM_CLASS(gst_sluice_parent_class)->query(base, direction, asked);
}

static GstStateChangeReturn change_state(GstElement *element, GstStateChange change)
{
    if (change == GST_STATE_CHANGE_NULL_TO_READY)
        cuda_offer(element, context_of(GST_SLUICE(element)));
    return GST_ELEMENT_CLASS(gst_sluice_parent_class)->change_state(element, change);
}

// ---- caps ----

// Let caps be of every format, whatever its colours mean. The pads' templates say which there are.
static void free_formats(GstCaps *caps)
{
    GValue formats = G_VALUE_INIT;
    g_value_init(&formats, GST_TYPE_LIST);
    gst_value_deserialize(&formats, formats_caps);
    for (guint k = 0; k < gst_caps_get_size(caps); k++) {
        GstStructure *structure = gst_caps_get_structure(caps, k);
        gst_structure_set_value(structure, "format", &formats);
        gst_structure_remove_fields(structure, "colorimetry", "chroma-site", NULL);
    }
    g_value_unset(&formats);
}

// The same pictures in the other memory: a GPU's, or the system's.
static GstCaps *moved(const GstCaps *caps)
{
    GstCaps *others = gst_caps_copy(caps);
    for (guint k = 0; k < gst_caps_get_size(others); k++)
        gst_caps_set_features(
            others, k, in_cuda(others, k) ? NULL : gst_caps_features_new(cuda_feature, NULL));
    return others;
}

static gboolean is_of_host(GstCapsFeatures *memory, GstStructure *structure, gpointer unused)
{
    (void)structure, (void)unused;
    return !gst_caps_features_contains(memory, cuda_feature);
}

// The same pictures in the same format, then in every other; then both in the other memory. Without
// a GPU there is none but the system's.
static GstCaps *transform_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                               GstCaps *filter)
{
    GstCaps *others = gst_caps_copy(caps), *known = gst_caps_copy(caps);
    (void)direction;
    free_formats(others);
    gst_caps_append(known, others);
    if (cuda_feature && context_of(GST_SLUICE(base)))
        gst_caps_append(known, moved(known));
    else if (cuda_feature)
        gst_caps_filter_and_map_in_place(known, is_of_host, NULL);
    if (filter) {
        GstCaps *both = gst_caps_intersect_full(filter, known, GST_CAPS_INTERSECT_FIRST);
        gst_caps_unref(known);
        return both;
    }
    return known;
}

// Ask for the format that the chain makes of this one: a filter that never runs knows.
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

static void add_caps(GstCaps *caps, const char *feature, const char *formats)
{
    gchar *text = g_strdup_printf("video/x-raw(%s), format = (string) %s, width = (int) [1, max], "
                                  "height = (int) [1, max], framerate = (fraction) [0, max]",
                                  feature, formats);
    gst_caps_append(caps, gst_caps_from_string(text));
    g_free(text);
}

static void add_pad(GstElementClass *class, const char *name, GstPadDirection direction)
{
    GstCaps *caps = gst_caps_new_empty();
    add_caps(caps, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, formats_caps);
    if (cuda_feature)
        add_caps(caps, cuda_feature, cuda_formats);
    gst_element_class_add_pad_template(class,
                                       gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}

static void gst_sluice_class_init(GstSluiceClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    GstBaseTransformClass *base = GST_BASE_TRANSFORM_CLASS(class);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    gst_element_class_set_static_metadata(element, "Sluice", "Filter/Effect/Video",
                                          "Blurs, edges, convolutions and more, exactly and fast",
                                          "the authors of sluice");
    add_pad(element, "sink", GST_PAD_SINK);
    add_pad(element, "src", GST_PAD_SRC);
    element->change_state = change_state;
    base->transform_caps = transform_caps;
    base->fixate_caps = fixate_caps;
    base->propose_allocation = propose_allocation;
    base->decide_allocation = decide_allocation;
    base->query = query;
    base->transform = transform;
    base->stop = stop;
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

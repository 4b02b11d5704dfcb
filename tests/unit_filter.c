// Filters of frames in memory: formats by name, and results equal to the scalar reference's.
#include "tests/filter_frames.h"

#include <libavutil/pixdesc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filter/known_addresses.h"
#include "pipeline/ffmpeg/pixel.h"

// ---- formats ----

// The output of a filter, as the description of pictures that hold it.
static struct sluice_format test_output(const struct sluice_filter *filter)
{
    struct sluice_format output = {.size = sizeof output};
    assert_int_equal(sluice_filter_output(filter, &output), SLUICE_STATUS_OK);
    return output;
}

static bool same_component(const struct component *a, const struct component *b)
{
    return a->plane == b->plane && a->offset == b->offset && a->step == b->step &&
           a->bytes == b->bytes && a->shift == b->shift && a->big_endian == b->big_endian;
}

static void check_same(const char *name, const struct format *got, const struct format *want)
{
    bool same = format_same_storage(got, want) && got->range == want->range &&
                got->kr == want->kr && got->kb == want->kb && got->siting == want->siting;
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        same = same && same_component(&got->component[c], &want->component[c]);
    if (!same)
        fail_msg("%s is described otherwise than by FFmpeg's descriptor", name);
}

static bool has_name(const char *name)
{
    for (int k = 0; sluice_format_name(k); k++)
        if (!strcmp(sluice_format_name(k), name))
            return true;
    return false;
}

// Tags of FFmpeg's and the filter's names for them.
static const struct {
    struct color_tags tags;
    enum sluice_range range;
    enum sluice_matrix matrix;
    enum sluice_siting siting;
    int width, height;
} meanings[] = {
    {{0}, SLUICE_RANGE_ANY, SLUICE_MATRIX_UNKNOWN, SLUICE_SITING_LEFT, 720, 576},
    {{0}, SLUICE_RANGE_ANY, SLUICE_MATRIX_UNKNOWN, SLUICE_SITING_LEFT, 720, 577},
    {{0}, SLUICE_RANGE_ANY, SLUICE_MATRIX_UNKNOWN, SLUICE_SITING_LEFT, 1280, 4},
    {{.range = AVCOL_RANGE_JPEG, .matrix = AVCOL_SPC_BT709, .location = AVCHROMA_LOC_CENTER},
     SLUICE_RANGE_FULL,
     SLUICE_MATRIX_BT709,
     SLUICE_SITING_CENTER,
     64,
     64},
    {{.range = AVCOL_RANGE_MPEG, .matrix = AVCOL_SPC_SMPTE170M, .location = AVCHROMA_LOC_TOPLEFT},
     SLUICE_RANGE_LIMITED,
     SLUICE_MATRIX_BT601,
     SLUICE_SITING_TOP_LEFT,
     64,
     64},
    {{.matrix = AVCOL_SPC_FCC}, SLUICE_RANGE_ANY, SLUICE_MATRIX_FCC, SLUICE_SITING_LEFT, 64, 64},
    {{.matrix = AVCOL_SPC_SMPTE240M},
     SLUICE_RANGE_ANY,
     SLUICE_MATRIX_SMPTE240M,
     SLUICE_SITING_LEFT,
     64,
     64},
    {{.matrix = AVCOL_SPC_BT2020_NCL},
     SLUICE_RANGE_ANY,
     SLUICE_MATRIX_BT2020,
     SLUICE_SITING_LEFT,
     64,
     64},
};

// Both ways: what FFmpeg has here is in the table, and what of the table FFmpeg has is the same.
static void formats_are_those_of_ffmpeg(void **state)
{
    (void)state;
    int described = 0;
    for (const AVPixFmtDescriptor *at = NULL; (at = av_pix_fmt_desc_next(at));) {
        const struct color_tags none = {0};
        struct format want, got;
        bool known = pixel_describe(av_pix_fmt_desc_get_id(at), &none, 64, 64, &want);
        if (known != has_name(at->name))
            fail_msg("%s is %s", at->name, known ? "not in the table" : "in the table");
        described += known;
        for (size_t k = 0; k < sizeof meanings / sizeof *meanings && known; k++) {
            struct sluice_format from =
                test_format(at->name, meanings[k].width, meanings[k].height);
            from.range = meanings[k].range;
            from.matrix = meanings[k].matrix;
            from.siting = meanings[k].siting;
            assert_true(pixel_describe(av_pix_fmt_desc_get_id(at), &meanings[k].tags, from.width,
                                       from.height, &want));
            assert_true(pixfmt_describe(&from, &got));
            check_same(at->name, &got, &want);
        }
    }
    assert_true(described > 140);
}

// No component's units lie over another's, whatever the table says.
static void formats_have_units_of_their_own(void **state)
{
    (void)state;
    for (int k = 0; sluice_format_name(k); k++) {
        struct sluice_format as = test_format(sluice_format_name(k), 9, 7);
        struct test_picture *picture = test_noise(&as, ROWS_ODD, 1), *other;
        struct sluice_filter_config config = test_config("null", &as);
        struct sluice_filter *filter = test_filter(&config);
        struct sluice_format output = test_output(filter);
        assert_string_equal(output.pixfmt, as.pixfmt);
        other = test_picture(&output, ROWS_TIGHT);
        assert_int_equal(sluice_filter_run(filter, &picture->frame, &other->frame, NULL), 0);
        test_same(as.pixfmt, other, picture);
        assert_int_equal(test_picture_spoilt(picture), 0);
        sluice_filter_destroy(&filter);
        test_picture_free(picture);
        test_picture_free(other);
    }
}

static void formats_without_an_order_of_bytes_are_native(void **state)
{
    (void)state;
    const char *little = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "gray16be" : "gray16le";
    assert_string_equal(pixfmt_canonical("gray16"), little);
    assert_string_equal(pixfmt_canonical("gray"), "gray");
    assert_null(pixfmt_canonical("gray16xe"));
    assert_null(pixfmt_canonical("x2rgb10le")); // its samples share bytes
    assert_null(pixfmt_canonical("uyyvyy411")); // its luma does not lie evenly
}

static void planes_have_their_sizes(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int plane;
        size_t bytes;
        int rows;
    } rows[] = {{"gray", 0, 5, 3},   {"yuv420p", 0, 5, 3}, {"yuv420p", 1, 3, 2}, {"nv12", 1, 6, 2},
                {"rgb24", 0, 15, 3}, {"p010le", 1, 12, 2}, {"yuyv422", 0, 12, 3}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sluice_format format = test_format(rows[k].name, 5, 3);
        size_t bytes = 0;
        int height = 0;
        assert_int_equal(sluice_format_plane(&format, rows[k].plane, &bytes, &height), 0);
        assert_int_equal(bytes, rows[k].bytes);
        assert_int_equal(height, rows[k].rows);
    }
    struct sluice_format format = test_format("gray", 5, 3);
    size_t bytes;
    int height;
    assert_int_equal(sluice_format_plane(&format, 1, &bytes, &height), SLUICE_STATUS_END);
    format.pixfmt = "pal8";
    assert_int_equal(sluice_format_plane(&format, 0, &bytes, &height), SLUICE_STATUS_USAGE);
}

// Results are stored as the chain leaves them, or as the nearest format with samples of that kind.
static void outputs_lose_nothing(void **state)
{
    (void)state;
    static const char *const outputs[][3] = {
        {"yuyv422", "gaussian=1", "yuyv422"},
        {"gbrp12be", "gaussian=1", "gbrp12be"},
        {"yuvj420p", "gaussian=1", "yuvj420p"},
        {"bgra", "gray", "ya8"},
        {"yuva420p10le", "gray", "ya16le"},
        {"nv12", "gray,sobel", "gray"},
        {"yuv444p14le", "gray", "gray14le"},
        {"rgb24", "wavelet=1:2:show=scale", "rgb24"},
        {"y212be", "wavelet=1:2:show=scale", "gbrp12le"},
    };
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
        struct sluice_format as = test_format(outputs[k][0], 16, 16);
        struct sluice_filter_config config = test_config(outputs[k][1], &as);
        struct sluice_filter *filter = test_filter(&config);
        assert_string_equal(test_output(filter).pixfmt, outputs[k][2]);
        sluice_filter_destroy(&filter);
    }
}

// Those that FFmpeg has storage for get the same name as in files.
static void outputs_are_named_as_in_files(void **state)
{
    (void)state;
    static const char *const some[] = {"gaussian=1", "gray", "wavelet=1:2:show=scale"};
    for (int k = 0; sluice_format_name(k); k++)
        for (int n = 0; n < 3; n++) {
            struct sluice_format as = test_format(sluice_format_name(k), 16, 16);
            struct sluice_filter_config config = test_config(some[n], &as);
            struct sluice_filter *filter = test_filter(&config);
            struct sluice_format output = test_output(filter);
            struct format made, input;
            assert_true(pixfmt_describe(&output, &made) && pixfmt_describe(&as, &input));
            enum AVPixelFormat pixel = pixel_find(&made);
            bool kept = !strcmp(output.pixfmt, as.pixfmt); // yuvj420p is not found by its storage
            if (pixel != AV_PIX_FMT_NONE && !kept)
                assert_string_equal(av_get_pix_fmt_name(pixel), output.pixfmt);
            assert_true(made.depth >= input.depth && (made.alpha == input.alpha || n == 2));
            sluice_filter_destroy(&filter);
        }
}

// ---- results ----

// A pair of pictures of a filter; `over` the source or beside it.
static void check_pair(struct sluice_filter *filter, const char *chain,
                       const struct sluice_format *input, enum rows_lie lie, bool over,
                       bool interlaced, bool fields)
{
    struct sluice_format output = test_output(filter);
    struct test_picture *source = test_noise(input, lie, 3);
    struct test_picture *want = test_picture(&output, ROWS_TIGHT);
    struct test_picture *got = over ? test_noise(input, lie, 3)
                                    : test_picture(&output, (enum rows_lie)((lie + 1) % ROWS_LIE));
    struct test_picture *in = over ? got : source;
    struct image a = source->image, b = want->image;
    fields = fields && image_has_fields(&a) && image_has_fields(&b);
    char what[256];
    snprintf(what, sizeof what, "%s of %s %dx%d, rows %d%s%s", chain, input->pixfmt, input->width,
             input->height, (int)lie, over ? ", in place" : "", fields ? ", fields" : "");
    test_reference(chain, source, fields, want);
    in->frame.interlaced = interlaced;
    enum sluice_status status = sluice_filter_run(filter, &in->frame, &got->frame, NULL);
    if (status)
        fail_msg("%s: %s", what, test_sentence);
    test_same(what, got, want);
    if (!over)
        test_picture_fill(in, 3), test_same("the source", in, source);
    test_picture_free(source);
    test_picture_free(want);
    test_picture_free(got);
}

// Chains of the full frame, or of each sample alone, have no fields.
static const struct {
    const char *text;
    bool fields;
} chains[] = {
    {"null", false},
    {"invert", false},
    {"gamma=1.7", false},
    {"contrast=1.3,brightness=7.5", false},
    {"gray", false},
    {"gray=mean", false},
    {"threshold=20:200", false},
    {"contrast=1.3", false},
    {"gaussian=1.3", true},
    {"gaussian=17", true},
    {"box=2:border=wrap,invert", true},
    {"gray,gaussian=1.4,sobel,threshold=20:240", true},
    {"brightness=20,sharpen", true},
    {"gaussian=1,gaussian=9,laplacian", true},
    {"wavelet=1:3", false},
    {"stats,sobel", false},
};
enum { CHAINS = sizeof chains / sizeof *chains };

static const int sizes[][2] = {{1, 1}, {2, 3}, {33, 17}, {64, 20}, {131, 12}};
enum { SIZES = sizeof sizes / sizeof *sizes };

// True if a result of this storage can lie over its source.
static bool can_be_over(const struct sluice_filter *filter, const struct sluice_format *input)
{
    struct sluice_format output = test_output(filter);
    return !strcmp(output.pixfmt, input->pixfmt);
}

static void check_chain(const char *chain, bool fields, const char *pixfmt, int size,
                        enum sluice_backend backend)
{
    struct sluice_format input = test_format(pixfmt, sizes[size][0], sizes[size][1]);
    struct sluice_filter_config config = test_config(chain, &input);
    config.backend = backend;
    config.threads = size == 3 ? 1 : 2; // with one frame in flight one is the calling one
    config.frames_in_flight = 1 + size % 3;
    struct sluice_filter *filter = test_filter(&config);
    for (int lie = 0; lie < ROWS_LIE; lie++) {
        bool interlaced = lie == ROWS_ODD;
        check_pair(filter, chain, &input, (enum rows_lie)lie, false, interlaced,
                   fields && interlaced);
        if (can_be_over(filter, &input))
            check_pair(filter, chain, &input, (enum rows_lie)lie, true, interlaced,
                       fields && interlaced);
    }
    sluice_filter_destroy(&filter);
}

static void results_are_those_of_the_reference(void **state)
{
    (void)state;
    static const char *const formats[] = {"gray",    "yuv420p",  "yuv422p10le", "nv12",
                                          "rgb24",   "bgra",     "gbrp12be",    "p010le",
                                          "yuyv422", "rgba64le", "yuva444p",    "ya8"};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int c = 0; c < CHAINS; c++)
            check_chain(chains[c].text, chains[c].fields, formats[f], (int)(f + (size_t)c) % SIZES,
                        SLUICE_BACKEND_CPU);
}

static void every_format_is_read_and_written(void **state)
{
    (void)state;
    for (int k = 0; sluice_format_name(k); k++) {
        check_chain("gaussian=1.3", true, sluice_format_name(k), 2, SLUICE_BACKEND_CPU);
        check_chain("invert", false, sluice_format_name(k), 4, SLUICE_BACKEND_CPU);
        check_chain("gray,sobel", true, sluice_format_name(k), 3, SLUICE_BACKEND_CPU);
    }
}

// A picture of one plane whose last byte is the last one that may be touched.
struct edge_picture {
    uint8_t *pages;
    size_t bytes, page;
    struct sluice_frame frame;
};

static struct edge_picture at_the_edge(const struct sluice_format *as, uint8_t byte)
{
    struct edge_picture picture = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    size_t row;
    int rows;
    assert_int_equal(sluice_format_plane(as, 0, &row, &rows), SLUICE_STATUS_OK);
    picture.bytes = row * (size_t)rows;
    size_t pages = (picture.bytes + picture.page - 1) / picture.page * picture.page;
    picture.pages = mmap(NULL, pages + picture.page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(picture.pages != MAP_FAILED);
    assert_int_equal(mprotect(picture.pages + pages, picture.page, PROT_NONE), 0);
    picture.frame = (struct sluice_frame){.size = sizeof picture.frame};
    picture.frame.data[0] = picture.pages + pages - picture.bytes;
    picture.frame.stride[0] = (ptrdiff_t)row;
    memset(picture.frame.data[0], byte, picture.bytes);
    return picture;
}

static void leave_edge(struct edge_picture *picture)
{
    size_t pages = (picture->bytes + picture->page - 1) / picture->page * picture->page;
    munmap(picture->pages, pages + picture->page);
}

// Bytes between samples are read and written together with them: those of pixels, and no others.
static void no_byte_beyond_a_picture_is_touched(void **state)
{
    (void)state;
    static const char *const formats[] = {"gray", "rgb24", "bgr24",   "rgba",    "0rgb",
                                          "rgb0", "ya8",   "yuyv422", "uyvy422", "rgb48le"};
    static const int widths[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t w = 0; w < 2 * sizeof widths / sizeof *widths; w++) {
            struct sluice_format input = test_format(formats[f], widths[w / 2], 2);
            struct sluice_filter_config config = test_config(w % 2 ? "gray" : "invert", &input);
            config.backend = SLUICE_BACKEND_CPU;
            config.threads = 1;
            struct sluice_filter *filter = test_filter(&config);
            struct sluice_format output = test_output(filter);
            struct edge_picture from = at_the_edge(&input, 7), to = at_the_edge(&output, 9);
            assert_int_equal(sluice_filter_run(filter, &from.frame, &to.frame, NULL),
                             SLUICE_STATUS_OK);
            leave_edge(&from);
            leave_edge(&to);
            sluice_filter_destroy(&filter);
        }
}

// The byte that completes the last pair of an odd width is the same whatever lay there.
static void bytes_of_no_sample_are_zero(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        int byte, bytes; // where it is, and how many
    } formats[] = {{"yuyv422", 66, 1}, {"uyvy422", 67, 1}, {"y210le", 132, 2}};
    static const char *const texts[] = {"invert", "gray", "gray,brightness=-255", "gaussian=2"};
    for (int k = 0; k < 24; k++) {
        struct sluice_format input = test_format(formats[k % 3].format, 33, 3);
        struct sluice_filter_config config = test_config(texts[k / 6], &input);
        config.output_pixfmt = formats[k % 3].format;
        config.backend = k / 3 % 2 ? SLUICE_BACKEND_SCALAR : SLUICE_BACKEND_CPU;
        struct sluice_filter *filter = test_filter(&config);
        struct edge_picture from = at_the_edge(&input, 7), to = at_the_edge(&input, 9);
        assert_int_equal(sluice_filter_run(filter, &from.frame, &to.frame, NULL), SLUICE_STATUS_OK);
        for (int b = 0; b < 3 * formats[k % 3].bytes; b++)
            assert_int_equal(
                to.frame.data[0][b % 3 * to.frame.stride[0] + formats[k % 3].byte + b / 3], 0);
        leave_edge(&from);
        leave_edge(&to);
        sluice_filter_destroy(&filter);
    }
}

static void the_scalar_backend_is_one_of_three(void **state)
{
    (void)state;
    for (int c = 0; c < CHAINS; c++)
        check_chain(chains[c].text, chains[c].fields, c % 2 ? "yuv420p" : "rgb24", 2,
                    SLUICE_BACKEND_SCALAR);
}

// Formats that were asked for, from every kind of colours to every other.
static void outputs_are_what_was_asked_for(void **state)
{
    (void)state;
    static const char *const formats[] = {"yuv420p", "rgb24", "gbrp16le", "nv12", "yuv444p10le"};
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            for (int range = 0; range < 3; range++) {
                struct sluice_format input = test_format(formats[a], 34, 18);
                struct sluice_filter_config config = test_config("gaussian=1", &input);
                config.output_pixfmt = formats[b];
                config.output_range = (enum sluice_range)range;
                struct sluice_filter *filter = test_filter(&config);
                struct sluice_format output = test_output(filter);
                assert_string_equal(output.pixfmt, formats[b]);
                if (range && strcmp(formats[b], "rgb24") && strcmp(formats[b], "gbrp16le"))
                    assert_int_equal(output.range, range);
                check_pair(filter, "gaussian=1", &input, ROWS_ODD, false, false, false);
                sluice_filter_destroy(&filter);
            }
}

// The planes of another format may lie over those of the source, as far as there are as many.
static void results_of_another_format_lie_over_their_sources(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"yuv420p", "gray,sobel", "gray"},    {"rgb24", "gray", "gray"},
        {"gray16le", "invert", "gray"},       {"nv12", "null", "yuv420p"},
        {"nv12", "gaussian=1", "yuv420p"},    {"p010le", "brightness=9", "yuv444p10le"},
        {"yuv420p", "contrast=1.3", "rgb24"}, {"gbrp", "gray=mean", "yuv420p"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sluice_format input = test_format(cases[k][0], 131, 20);
        struct sluice_filter_config config = test_config(cases[k][1], &input);
        config.output_pixfmt = cases[k][2];
        struct sluice_filter *filter = test_filter(&config);
        struct sluice_format output = test_output(filter);
        struct test_picture *in = test_noise(&input, ROWS_ODD, 4), *got, *want;
        got = test_picture(&output, ROWS_TIGHT);
        want = test_picture(&output, ROWS_TIGHT);
        test_reference(cases[k][1], in, false, want);
        for (int p = 0; p < got->format.planes && p < in->format.planes; p++) {
            size_t own = format_row_bytes(&got->format, p, 131);
            bool fits = own <= (size_t)in->image.stride[p] &&
                        format_rows(&got->format, p, 20) <= format_rows(&in->format, p, 20);
            if (!fits)
                continue;
            got->frame.data[p] = got->image.data[p] = in->image.data[p];
            got->frame.stride[p] = got->image.stride[p] = in->image.stride[p];
        }
        assert_int_equal(sluice_filter_run(filter, &in->frame, &got->frame, NULL), 0);
        struct image_difference at;
        if (!image_compare(&got->image, &want->image, &at))
            fail_msg("%s of %s over it: plane %d, row %d, byte %zu", cases[k][1], cases[k][0],
                     at.plane, at.row, at.byte);
        assert_int_equal(test_picture_spoilt(in), 0);
        test_picture_free(in);
        test_picture_free(got);
        test_picture_free(want);
        sluice_filter_destroy(&filter);
    }
}

// A plane of the input that no stage makes comes out byte for byte, garbage above the depth, too.
static void untouched_planes_are_copied(void **state)
{
    (void)state;
    struct sluice_format as = test_format("yuv420p10le", 30, 10);
    struct sluice_filter_config config = test_config("brightness=9", &as);
    struct sluice_filter *filter = test_filter(&config);
    struct test_picture *in = test_picture(&as, ROWS_ODD), *out = test_picture(&as, ROWS_TIGHT);
    assert_int_equal(sluice_filter_run(filter, &in->frame, &out->frame, NULL), 0);
    struct image_difference at;
    in->image.data[0] = out->image.data[0] = NULL;
    assert_true(image_compare(&out->image, &in->image, &at) || at.plane == 0);
    for (int p = 1; p < 3; p++)
        for (int y = 0; y < 5; y++)
            assert_memory_equal(out->image.data[p] + y * out->image.stride[p],
                                in->image.data[p] + y * in->image.stride[p], 30);
    test_picture_free(in);
    test_picture_free(out);
    sluice_filter_destroy(&filter);
}

// Pools of frames of 64x64 to 8K: what was noted of a few hundred addresses is there when they come
// again.
static void addresses_of_a_pool_stay_known(void **state)
{
    (void)state;
    const size_t apart[] = {256,     4096,    65536,    2073600, 2 << 20,
                            8294400, 8 << 20, 33177600, 32 << 20};
    for (size_t k = 0; k < sizeof apart / sizeof *apart; k++) {
        struct known_addresses known = {0};
        const uint8_t *pool = (const uint8_t *)UINT64_C(0x7f3a40000000);
        int found = 0, count = 200;
        for (int frame = 0; frame < count; frame++) {
            assert_false(known_addresses_has(&known, pool + (size_t)frame * apart[k]));
            known_addresses_add(&known, pool + (size_t)frame * apart[k]);
        }
        for (int frame = 0; frame < count; frame++)
            found += known_addresses_has(&known, pool + (size_t)frame * apart[k]);
        if (found < count * 97 / 100)
            fail_msg("%d of %d addresses %zu bytes apart are known", found, count, apart[k]);
        assert_false(known_addresses_has(&known, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_those_of_ffmpeg),
        cmocka_unit_test(formats_have_units_of_their_own),
        cmocka_unit_test(formats_without_an_order_of_bytes_are_native),
        cmocka_unit_test(planes_have_their_sizes),
        cmocka_unit_test(outputs_lose_nothing),
        cmocka_unit_test(outputs_are_named_as_in_files),
        cmocka_unit_test(results_are_those_of_the_reference),
        cmocka_unit_test(every_format_is_read_and_written),
        cmocka_unit_test(no_byte_beyond_a_picture_is_touched),
        cmocka_unit_test(bytes_of_no_sample_are_zero),
        cmocka_unit_test(the_scalar_backend_is_one_of_three),
        cmocka_unit_test(addresses_of_a_pool_stay_known),
        cmocka_unit_test(outputs_are_what_was_asked_for),
        cmocka_unit_test(results_of_another_format_lie_over_their_sources),
        cmocka_unit_test(untouched_planes_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The filters of ffmpeg that are known here. docs/from-ffmpeg.md has what tests/test_aliases.py
// compares of them with ffmpeg itself.
#include "stages/chain/aliases.h"

#define GRAY_FIRST "; they are the same behind format=gray"
#define NO_SIZE "pictures keep their size and place here; let ffmpeg change them before or after"
#define NO_TIME "frames keep their times here; none is dropped or doubled for a rate"
#define NO_MORPHOLOGY "there is no filter of ranks here; convolve, box and threshold come near"
#define NO_EDGES(name)    \
    "sluice has no " name \
    "; write sobel, prewitt or scharr with mode=l2 for the length of a gradient"
#define PLAIN(name_, why)                            \
    {                                                \
        .name = name_, .options = "", .instead = why \
    }

const struct alias aliases[] = {
    {.name = "copy", .options = "", .translate = alias_null},
    {.name = "format",
     .options = "pix_fmts",
     .translate = alias_format,
     .instead = "of ffmpeg's formats a chain knows gray only; --pix-fmt says what comes out"},
    {.name = "negate",
     .options = "components:negate_alpha",
     .translate = alias_negate,
     .instead = "ffmpeg's negate takes 255 - x also of Y'CbCr whose white is 235" GRAY_FIRST
                "; write invert"},
    {.name = "lut",
     .options = "c0|y|r:c1|u|g:c2|v|b:c3|a",
     .translate = alias_lut,
     .instead = "of expressions negval of all components is read, and behind format=gray "
                "gammaval(); write brightness, contrast, gamma, threshold or binarize"},
    {.name = "lutyuv",
     .options = "c0|y:c1|u:c2|v:c3|a",
     .translate = alias_lut,
     .instead =
         "ffmpeg's lutyuv converts RGB to Y'CbCr, and expressions are of code values as they "
         "lie; negval and gammaval() are the same behind format=gray; write invert or gamma"},
    {.name = "lutrgb",
     .options = "c0|r:c1|g:c2|b:c3|a",
     .translate = alias_lut,
     .instead =
         "ffmpeg's lutrgb converts Y'CbCr to RGB and back; negval and gammaval() of all of r, g "
         "and b are the same behind format=gray; write invert or gamma"},
    {.name = "curves",
     .options = "preset",
     .translate = alias_curves,
     .instead = "ffmpeg's curves converts to RGB, and of its presets negative is known, behind "
                "format=gray; write invert, gamma or contrast"},
    {.name = "eq",
     .options = "contrast:brightness:saturation:gamma",
     .translate = alias_eq,
     .instead = "ffmpeg's eq is of code values as they lie, where black may be 16" GRAY_FIRST
                ", and gamma alone, from 0.1 to 10; write brightness=255*B, contrast=C, gamma=G"},
    {.name = "hue",
     .options = "h:s:H:b",
     .translate = alias_hue,
     .instead = "colours are not turned here; hue=s=0 is gray"},
    {.name = "avgblur",
     .options = "sizeX:planes:sizeY",
     .translate = alias_avgblur,
     .instead =
         "ffmpeg's avgblur is read for all planes and sizes from 1 to 255; write box=RADIUS"},
    {.name = "boxblur",
     .options = "luma_radius|lr:luma_power|lp:chroma_radius|cr:chroma_power|cp:alpha_radius|ar:"
                "alpha_power|ap",
     .translate = alias_boxblur,
     .instead = "ffmpeg's boxblur is read for one radius up to 255 and one power up to 8 of all "
                "planes; write box=RADIUS:border=reflect"},
    {.name = "unsharp",
     .options =
         "luma_msize_x|lx:luma_msize_y|ly:luma_amount|la:chroma_msize_x|cx:chroma_msize_y|cy:"
         "chroma_amount|ca:alpha_msize_x|ax:alpha_msize_y|ay:alpha_amount|aa",
     .translate = alias_unsharp,
     .instead = "ffmpeg's unsharp has binomial weights, and its Y'CbCr may go beyond black and "
                "white; behind format=gray odd sizes up to 13 and amounts up to 1.8 are the same; "
                "write sharpen=AMOUNT"},
    {.name = "gblur", .options = "sigma:steps:planes:sigmaV", .translate = alias_gblur},
    {.name = "convolution",
     .options = "0m:1m:2m:3m:0rdiv:1rdiv:2rdiv:3rdiv:0bias:1bias:2bias:3bias",
     .translate = alias_convolution,
     .instead =
         "ffmpeg's convolution filters the planes that have a matrix, and its rows and borders "
         "are others; write convolve='ROWS', each row behind a slash"},

    PLAIN("kirsch", NO_EDGES("kirsch")),
    PLAIN("roberts", NO_EDGES("roberts")),
    PLAIN("edgedetect", "ffmpeg's edgedetect follows edges, as Canny does; the nearest here is "
                        "gray,gaussian=1.4,sobel,threshold=20:240"),
    PLAIN("smartblur", "ffmpeg's smartblur spares edges; write gaussian=SIGMA or sharpen=AMOUNT"),
    PLAIN("bilateral", "there is no filter here that spares edges; write gaussian=SIGMA"),
    PLAIN("erosion", NO_MORPHOLOGY),
    PLAIN("dilation", NO_MORPHOLOGY),
    PLAIN("inflate", NO_MORPHOLOGY),
    PLAIN("deflate", NO_MORPHOLOGY),
    PLAIN("median", NO_MORPHOLOGY),
    PLAIN("geq", "expressions are not read here; stages have numbers: sluice stages"),
    PLAIN("exposure", "ffmpeg's exposure is of floating point; write gamma or contrast"),
    PLAIN("colorlevels", "write brightness and contrast, or convolve=GAIN:scale=1:bias=OFFSET"),
    PLAIN("monochrome", "ffmpeg's monochrome weighs colours by a spot; write gray or gray=mean"),
    PLAIN("colorchannelmixer", "channels are not mixed here; write gray or gray=mean"),
    PLAIN("split", "write tee=OUTPUT where the picture should leave, too"),
    PLAIN("scale", NO_SIZE),
    PLAIN("crop", NO_SIZE),
    PLAIN("pad", NO_SIZE),
    PLAIN("hflip", NO_SIZE),
    PLAIN("vflip", NO_SIZE),
    PLAIN("rotate", NO_SIZE),
    PLAIN("transpose", NO_SIZE),
    PLAIN("overlay", NO_SIZE),
    PLAIN("fps", NO_TIME),
    PLAIN("setpts", NO_TIME),
    PLAIN("select", NO_TIME),
    PLAIN("yadif", "interlaced frames are filtered field by field here, and stay interlaced"),
    PLAIN("bwdif", "interlaced frames are filtered field by field here, and stay interlaced"),
    PLAIN("hwupload", "frames go to the GPU and come back by themselves: leave it out"),
    PLAIN("hwdownload", "frames go to the GPU and come back by themselves: leave it out"),
    {0},
};

// Options of ffmpeg's filters that have the name of a stage, and what to write instead.
static const struct {
    const char *option, *instead;
} foreign[] = {
    {"planes", "edges here are of the luma of Y'CbCr, or of each of R, G and B"},
    {"delta", "write brightness behind it"},
};

const char *alias_foreign_option(const struct stage *stage, struct span key)
{
    static const char *const named_alike[] = {"sobel", "prewitt", "scharr", "threshold"};
    for (size_t n = 0; n < sizeof named_alike / sizeof *named_alike; n++)
        for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
            if (span_is(span_of(stage->name), named_alike[n]) && span_is(key, foreign[k].option))
                return foreign[k].instead;
    return NULL;
}

// ffmpeg's filters of single samples. Its arithmetic is of code values as they lie, ours of values
// in full range, so most are the same behind `gray` only, where the two are one.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/aliases.h"

enum status alias_null(struct alias_call *call)
{
    fputs("null", call->to);
    return STATUS_OK;
}

enum status alias_format(struct alias_call *call)
{
    struct span name = call->value[0];
    if (!name.begin || !(span_is(name, "gray") || span_is(name, "gray8") || span_is(name, "y8")))
        return alias_differs(call);
    fputs("gray", call->to);
    call->gray = true;
    return STATUS_OK;
}

enum status alias_negate(struct alias_call *call)
{
    if (!call->gray || call->value[0].begin || call->value[1].begin)
        return alias_differs(call);
    fputs("invert", call->to);
    return STATUS_OK;
}

enum status alias_curves(struct alias_call *call)
{
    struct span preset = call->value[0];
    if (!call->gray || !preset.begin ||
        !(span_is(preset, "negative") || span_is(preset, "color_negative")))
        return alias_differs(call);
    fputs("invert", call->to);
    return STATUS_OK;
}

// ---- tables ----

// A sample as it is.
static bool is_kept(struct span value)
{
    return !value.begin || span_is(value, "val") || span_is(value, "clipval");
}

// The exponent of "gammaval(0.5)"; 0: it is none.
static double exponent(struct span value)
{
    char text[64], *end;
    static const char begin[] = "gammaval(";
    if (!value.begin)
        return 0;
    snprintf(text, sizeof text, "%.*s", span_length(value), value.begin);
    if (strncmp(text, begin, strlen(begin)))
        return 0;
    double power = strtod(text + strlen(begin), &end);
    return !strcmp(end, ")") && isfinite(power) && power > 0 ? power : 0;
}

// True if gray is one component, or all that it becomes are given alike: as lutrgb's R, G and B.
static bool is_of_gray(const struct alias_call *call)
{
    const struct span *value = call->value;
    if (!call->gray || !value[0].begin)
        return false;
    for (int c = 1; c < 3 && !strcmp(call->name, "lutrgb"); c++)
        if (!value[c].begin || span_length(value[c]) != span_length(value[0]) ||
            memcmp(value[c].begin, value[0].begin, (size_t)span_length(value[0])))
            return false;
    return true;
}

enum status alias_lut(struct alias_call *call)
{
    const struct span *value = call->value;
    int negated = 0, kept = 0;
    for (int c = 0; c < 3; c++) {
        negated += value[c].begin && span_is(value[c], "negval");
        kept += is_kept(value[c]);
    }
    bool of_gray = is_of_gray(call);
    bool any_format = !strcmp(call->name, "lut");
    if (!is_kept(value[3]))
        return alias_differs(call);
    if (kept == 3)
        fputs("null", call->to);
    else if ((any_format && negated == 3) || (of_gray && span_is(value[0], "negval")))
        fputs("invert", call->to);
    else if (of_gray && exponent(value[0]) > 0)
        fprintf(call->to, "gamma=%.9g", 1 / exponent(value[0]));
    else
        return alias_differs(call);
    return STATUS_OK;
}

// ---- eq, hue ----

enum { EQ_CONTRAST, EQ_BRIGHTNESS, EQ_SATURATION, EQ_GAMMA, EQ_OPTIONS };

// y = x * contrast + offset, rounded as ffmpeg rounds them: of single precision, then to integers.
static enum status affine(struct alias_call *call, double contrast, double brightness)
{
    int percent = (int)(100.0 * (float)brightness + 100.0);
    double gain = floor((float)contrast * 4096.0) / 4096;
    double offset = percent * 511 / 200 - 128 - floor(gain * 4096 / 32);
    if (fabs(offset) > 255)
        return alias_differs(call);
    if (gain == 1)
        fprintf(call->to, "brightness=%g", offset);
    else
        fprintf(call->to, "convolve=%.9g:scale=1:bias=%g", gain, offset);
    return STATUS_OK;
}

enum status alias_eq(struct alias_call *call)
{
    static const double initial[EQ_OPTIONS] = {1, 0, 1, 1};
    double value[EQ_OPTIONS];
    enum status status = STATUS_OK;
    for (int k = 0; k < EQ_OPTIONS && !status; k++)
        status = alias_number(call, k, initial[k], &value[k]);
    if (status)
        return status;
    bool linear = value[EQ_CONTRAST] == 1 && value[EQ_BRIGHTNESS] == 0;
    // Beyond these ffmpeg clips them; its saturation, which it clips, too, means nothing to gray.
    bool known = fabs(value[EQ_BRIGHTNESS]) <= 1 && fabs(value[EQ_CONTRAST]) <= 1000 &&
                 value[EQ_GAMMA] >= 0.1 && value[EQ_GAMMA] <= 10;
    if (!call->gray || !known || (value[EQ_GAMMA] != 1 && !linear))
        return alias_differs(call);
    if (value[EQ_GAMMA] != 1)
        fprintf(call->to, "gamma=%.9g", value[EQ_GAMMA]);
    else
        return affine(call, value[EQ_CONTRAST], value[EQ_BRIGHTNESS]);
    return STATUS_OK;
}

enum status alias_hue(struct alias_call *call)
{
    double saturation, brightness;
    enum status status = alias_number(call, 1, 1, &saturation);
    if (!status)
        status = alias_number(call, 3, 0, &brightness);
    if (status)
        return status;
    if (saturation != 0 || brightness != 0)
        return alias_differs(call);
    fputs("gray", call->to);
    call->gray = false; // ffmpeg's has its chroma still, and its range
    return STATUS_OK;
}

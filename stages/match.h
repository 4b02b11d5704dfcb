// The options of `match`, for programs that bring a pattern of their own.
#pragma once

#include "stages/pattern.h"
#include "stages/stage.h"

struct match {
    char *names; // of files; lower() looks at `patterns` alone
    struct pattern_set *patterns;
    double min;
    int max;
    enum { MATCH_DRAW_BOX, MATCH_DRAW_NONE, MATCH_DRAW_MAP } draw;
    char *report;
};

extern const struct stage stage_match;

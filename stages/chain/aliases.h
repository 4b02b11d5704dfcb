// Filters of ffmpeg by their names there (`avgblur=3`): the chain of ours that does the same, to one
// code value, or a sentence that says what to write instead.
#pragma once

#include <stdio.h>

#include "stages/chain/parser.h"

enum { ALIAS_OPTIONS = 12 };

// A filter of ffmpeg as a chain names it.
struct alias_call {
    struct parser *parser;
    struct span filter;               // all of it, to point at
    const char *name;                 // ffmpeg's
    struct span value[ALIAS_OPTIONS]; // by the alias's options; a `begin` of NULL: not given
    bool gray;                        // its pictures are one plane of full range
    FILE *to;                         // where the chain goes that does the same
};

// One filter.
struct alias {
    const char *name;
    // ffmpeg's options in its order, "sizeX:planes:sizeY"; other names of one behind '|'.
    const char *options;
    // (optional) Write the chain that does the same. STATUS_USAGE, with the error set, where none does.
    // call->gray is what the pictures are behind it.
    enum status (*translate)(struct alias_call *call);
    // Why there is no such chain, and what to write; used where `translate` is NULL or returns
    // alias_differs(). "%s" is the name.
    const char *instead;
};

// Every filter that is known, ended by a NULL name (alias_table.c).
extern const struct alias aliases[];

// Refuse with the alias's `instead`. Returns STATUS_USAGE.
enum status alias_differs(struct alias_call *call);

// A number that an option has, or `initial`. STATUS_USAGE for anything else.
enum status alias_number(struct alias_call *call, int index, double initial, double *value);

// ---- what filters become: alias_pointwise.c, alias_blur.c ----

enum status alias_null(struct alias_call *call);
enum status alias_format(struct alias_call *call);
enum status alias_negate(struct alias_call *call);
enum status alias_lut(struct alias_call *call);
enum status alias_curves(struct alias_call *call);
enum status alias_eq(struct alias_call *call);
enum status alias_hue(struct alias_call *call);

enum status alias_avgblur(struct alias_call *call);
enum status alias_boxblur(struct alias_call *call);
enum status alias_unsharp(struct alias_call *call);
enum status alias_gblur(struct alias_call *call);
enum status alias_convolution(struct alias_call *call);

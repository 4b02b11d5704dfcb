// Pictures in memory with guards around and between their rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/backend.h"

enum { GUARD = 0xa5, MARGIN = 512 }; // the guards' bytes, and how many before and behind

struct picture_memory {
    struct image image;
    uint8_t *memory;
    size_t size;
};

// Memory of the backend for such a picture, all of it guards; strides, alignment and whether rows
// lie upside down follow from the state. Ends the program without memory. picture_free() it.
void picture_init(struct picture_memory *picture, const struct format *format, int width,
                  int height, uint64_t *state, struct backend *backend);

// The same for a picture in the place of `source`, of which it has a copy of its own: guards,
// planes, those that it has none of, too. picture_fits() says whether it has the same planes.
bool picture_fits(const struct format *format, const struct picture_memory *source);
void picture_init_in_place(struct picture_memory *picture, const struct format *format,
                           const struct picture_memory *source, struct backend *backend);

// Begin all planes a byte later: units of two bytes then lie across their borders.
void picture_shift(struct picture_memory *picture);
void picture_free(struct picture_memory *picture, struct backend *backend);

// Fill the samples with contents that are hard on arithmetic.
void picture_fill(const struct picture_memory *picture, uint64_t *state);

// Set bits above the samples of a format that has room for them, and below: in one of three units,
// or in all. Samples of other formats stay as they are.
void picture_overflow(const struct picture_memory *picture, uint64_t state);

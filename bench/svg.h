// A chart of figures as SVG, drawn into memory from top to bottom.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SVG_MARGIN = 16, SVG_LINE = 20 };
struct svg {
    FILE *to;
    char *text;
    size_t size;
    int width, y; // y: of what is drawn next; at last the height
};

// A bar and a line from the slowest run to the fastest: pixels from `left`.
struct svg_bar {
    int left;
    double length, low, high;
    const char *color;
};

// Begin a chart of so many pixels on white, under its title and what it was measured on; false,
// with a sentence on standard error, without memory.
bool svg_open(struct svg *svg, int width, const char *title, const char *about);

// Draw at svg->y, and leave it: text, which is escaped; a bar; a vertical line of the grid.
__attribute__((format(printf, 5, 6))) void svg_text(struct svg *svg, double x, double y,
                                                    const char *attributes, const char *format,
                                                    ...);
void svg_bar(struct svg *svg, const struct svg_bar *bar);
void svg_grid(struct svg *svg, double x, int height);

// End the chart. Its text is the caller's to free; NULL, with a sentence on standard error, without
// memory.
char *svg_close(struct svg *svg, size_t *size);

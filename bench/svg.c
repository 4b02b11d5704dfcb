#include "bench/svg.h"

#include <assert.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(void)
{
    fprintf(stderr, "sluice: out of memory for the chart\n");
    return false;
}

bool svg_open(struct svg *svg, int width, const char *title, const char *about)
{
    assert(width > 0 && title && about);
    *svg = (struct svg){.width = width, .y = 74};
    svg->to = open_memstream(&svg->text, &svg->size);
    if (!svg->to)
        return out_of_memory();
    svg_text(svg, SVG_MARGIN, 30, "font-size=\"19\" font-weight=\"bold\"", "%s", title);
    svg_text(svg, SVG_MARGIN, 51, "fill=\"#555\"", "%s", about);
    return true;
}

// Bytes that are no text in XML, as file names may have them, become question marks.
static void put_escaped(FILE *to, const char *text)
{
    json_t *utf8 = json_string(text);
    for (; *text; text++) {
        bool foreign = (unsigned char)*text < ' ' || (!utf8 && (unsigned char)*text >= 0x80);
        const char *name = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : foreign ? "?" : NULL;
        if (name)
            fputs(name, to);
        else
            fputc(*text, to);
    }
    json_decref(utf8);
}

void svg_text(struct svg *svg, double x, double y, const char *attributes, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(svg->to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_escaped(svg->to, text);
    fputs("</text>\n", svg->to);
}

void svg_bar(struct svg *svg, const struct svg_bar *bar)
{
    assert(svg->to && bar->low <= bar->high);
    const int line = SVG_LINE, y = svg->y;
    fprintf(svg->to, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
            bar->left, y + 3, bar->length, line - 6, bar->color);
    if (bar->low < bar->high)
        fprintf(svg->to,
                "<path d=\"M%.1f %dh%.1fm0 -4v8M%.1f %dv8\" stroke=\"#222\" fill=\"none\"/>\n",
                bar->left + bar->low, y + line / 2, bar->high - bar->low, bar->left + bar->low,
                y + line / 2 - 4);
}

void svg_grid(struct svg *svg, double x, int height)
{
    fprintf(svg->to, "<path d=\"M%.1f %dv%d\" stroke=\"#e4e4e4\"/>\n", x, svg->y, height);
}

// The height is known at the end only.
char *svg_close(struct svg *svg, size_t *size)
{
    char *all = NULL;
    bool fine = !fclose(svg->to);
    FILE *to = fine ? open_memstream(&all, size) : NULL;
    if (to) {
        fprintf(to,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" "
                "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                svg->width, svg->y, svg->width, svg->y);
        fwrite(svg->text, 1, svg->size, to);
        fputs("</svg>\n", to);
        fine = !fclose(to);
    }
    free(svg->text);
    if (to && fine)
        return all;
    free(all);
    out_of_memory();
    return NULL;
}

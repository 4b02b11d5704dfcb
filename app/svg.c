// What the charts of `sluice bench` share.
#include <stdlib.h>

#include "app/app.h"

bool svg_open(struct svg *svg, int width, int height)
{
    *svg = (struct svg){0};
    svg->to = open_memstream(&svg->text, &svg->size);
    if (svg->to)
        fprintf(svg->to,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"13\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width, height);
    else
        fprintf(stderr, "sluice: out of memory for the chart\n");
    return svg->to;
}

void svg_escaped(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '&' || *text == '<')
            fputs(*text == '&' ? "&amp;" : "&lt;", to);
        else
            fputc(*text, to);
}

bool svg_close(struct svg *svg, const struct settings *settings)
{
    fputs("</svg>\n", svg->to);
    bool fine = !ferror(svg->to);
    fine = !fclose(svg->to) && fine;
    if (!fine)
        fprintf(stderr, "sluice: out of memory for the chart\n");
    fine = fine && write_file(settings, settings->chart, svg->text, svg->size);
    free(svg->text);
    return fine;
}

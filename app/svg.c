// What the charts of `sluice bench` share.
#include "app/app.h"

FILE *svg_open(const char *file, int width, int height)
{
    FILE *to = fopen(file, "w");
    if (to)
        fprintf(to,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"13\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width, height);
    else
        fprintf(stderr, "sluice: the chart could not be written to %s\n", file);
    return to;
}

void svg_escaped(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '&' || *text == '<')
            fputs(*text == '&' ? "&amp;" : "&lt;", to);
        else
            fputc(*text, to);
}

bool svg_close(FILE *to, const char *file)
{
    fputs("</svg>\n", to);
    bool fine = !ferror(to);
    fine = !fclose(to) && fine;
    if (!fine)
        fprintf(stderr, "sluice: the chart could not be written to %s\n", file);
    return fine;
}

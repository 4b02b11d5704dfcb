// A picture from standard input, filtered to standard output, in place.
//
//     cc pgm.c $(pkg-config --cflags --libs sluice-filter) -o pgm
//     ./pgm gaussian=2,sobel < in.pgm > out.pgm
#include <sluice/filter.h>
#include <stdio.h>
#include <stdlib.h>

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= SLUICE_LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

// Skip white space and comments, and read a number.
static int read_number(FILE *from)
{
    int number = 0, c;
    while ((c = getc(from)) == '#' || c == ' ' || c == '\n' || c == '\r' || c == '\t')
        while (c == '#' && (c = getc(from)) != '\n' && c != EOF)
            c = '#';
    ungetc(c, from);
    return fscanf(from, "%d", &number) == 1 ? number : -1;
}

// Read the head of a binary graymap: samples of one byte, or of two with the high one first.
static int read_head(FILE *from, struct sluice_format *format)
{
    if (getc(from) != 'P' || getc(from) != '5')
        return 0;
    format->width = read_number(from);
    format->height = read_number(from);
    int white = read_number(from);
    format->pixfmt = white > 255 ? "gray16be" : "gray";
    return format->width > 0 && format->height > 0 && (white == 255 || white == 65535) &&
           getc(from) != EOF;
}

int main(int argc, char **argv)
{
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = argc > 1 ? argv[1] : NULL,
        .input.size = sizeof config.input,
        .backend = SLUICE_BACKEND_CPU, // one picture is done before a GPU is ready
        .frames_in_flight = 1,         // so all threads work on it
        .log = print,
    };
    struct sluice_filter *filter;
    size_t row_bytes;
    int rows;
    if (!read_head(stdin, &config.input)) {
        fprintf(stderr, "this is no binary PGM whose white is 255 or 65535\n");
        return 1;
    }
    config.output_pixfmt = config.input.pixfmt;
    if (sluice_filter_create(&config, &filter))
        return 1;
    sluice_format_plane(&config.input, 0, &row_bytes, &rows);
    size_t bytes = row_bytes * (size_t)rows;
    unsigned char *samples = malloc(bytes);
    struct sluice_frame frame = {
        .size = sizeof frame, .data = {samples}, .stride = {(ptrdiff_t)row_bytes}};
    int failed = !samples || fread(samples, 1, bytes, stdin) != bytes ||
                 sluice_filter_run(filter, &frame, &frame, NULL); // in place
    if (!failed) {
        printf("P5\n%d %d\n%d\n", config.input.width, rows,
               row_bytes > (size_t)config.input.width ? 65535 : 255);
        failed = fwrite(samples, 1, bytes, stdout) != bytes || fflush(stdout);
    }
    sluice_filter_destroy(&filter);
    free(samples);
    return failed;
}

// embed PACKED-FOLDER FILE...: write the files as a table in C, struct web_file of page/files.h, each
// as it is and packed, as FILE's name with ".gz" in the folder. The Makefile calls it.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[][2] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/vnd.microsoft.icon"},
    {".woff2", "font/woff2"},
    {".webmanifest", "application/manifest+json"},
};

static const char *name_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static const char *type_of(const char *file)
{
    const char *dot = strrchr(file, '.');
    for (size_t k = 0; dot && k < sizeof types / sizeof *types; k++)
        if (!strcmp(dot, types[k][0]))
            return types[k][1];
    fprintf(stderr, "embed: %s is of no type that the page has\n", file);
    exit(1);
}

// Print the bytes as an array. Returns their FNV-1a hash of 64 bits.
static uint64_t print_bytes(const char *file, const char *kind, int number)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    FILE *from = fopen(file, "rb");
    int byte;
    if (!from) {
        perror(file);
        exit(1);
    }
    printf("static const unsigned char %s%d[] = {", kind, number);
    for (long at = 0; (byte = getc(from)) != EOF; at++) {
        printf("%s%d,", at % 24 ? "" : "\n", byte);
        hash = (hash ^ (uint64_t)byte) * UINT64_C(1099511628211);
    }
    printf("\n};\n");
    fclose(from);
    return hash;
}

static void print_row(const char *file, int number, uint64_t hash)
{
    const char *name = name_of(file);
    printf("    {\"/%s\", \"%s\", \"\\\"%016" PRIx64 "\\\"\", \"\\\"%016" PRIx64 "-gz\\\"\",\n"
           "     plain%d, packed%d, sizeof plain%d, sizeof packed%d},\n",
           strcmp(name, "index.html") ? name : "", type_of(file), hash, hash, number, number,
           number, number);
}

int main(int argc, char **argv)
{
    uint64_t hash[64];
    char packed[4096];
    int files = argc - 2;
    if (files < 1 || files > 64)
        return 1;
    printf("// Made from web/.\n#include \"page/files.h\"\n\n");
    for (int k = 0; k < files; k++) {
        snprintf(packed, sizeof packed, "%s/%s.gz", argv[1], name_of(argv[k + 2]));
        hash[k] = print_bytes(argv[k + 2], "plain", k);
        print_bytes(packed, "packed", k);
    }
    printf("\nconst struct web_file web_files[] = {\n");
    for (int k = 0; k < files; k++)
        print_row(argv[k + 2], k, hash[k]);
    printf("    {0},\n};\n");
    return ferror(stdout) || fflush(stdout);
}

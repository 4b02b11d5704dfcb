// Attacked: manifests of outputs and parts, as they are; and once more with counts, roots and seal
// as they belong to their lines, which no fuzzer guesses.
//
// Must hold: a manifest is read or refused with a sentence; what is read has hashes of the right
// length and the counts that its end says; encoded video in it is taken or refused; nothing is left
// behind.
#include <stdlib.h>
#include <string.h>

#include "pipeline/part/manifest.h"
#include "tests/fuzz/fuzz.h"

static void take_log(void *opaque, enum log_level level, const char *sentence)
{
    (void)level;
    *(bool *)opaque |= *sentence != 0;
}

static void check_video(const json_t *video)
{
    AVCodecParameters *codec = avcodec_parameters_alloc();
    FUZZ_REQUIRE(codec);
    if (video && !manifest_video(video, codec)) {
        json_t *again = manifest_of_video(codec);
        FUZZ_REQUIRE(again);
        json_decref(again);
    }
    avcodec_parameters_free(&codec);
}

static void check_manifest(const char *name)
{
    bool said = false;
    struct log log = {.print = take_log, .opaque = &said};
    struct manifest manifest;
    enum status status = manifest_read(name, &log, &manifest);
    FUZZ_REQUIRE(!status || said);
    if (!status) {
        FUZZ_REQUIRE(manifest.identity && manifest.end);
        for (int64_t k = 0; k < manifest.frames; k++)
            FUZZ_REQUIRE(strlen(manifest.frame[k].hash) == FRAME_HASH_TEXT - 1);
        for (int64_t k = 0; k < manifest.packets; k++)
            FUZZ_REQUIRE(strlen(manifest.packet[k].hash) == FRAME_HASH_TEXT - 1);
        check_video(json_object_get(manifest.end, "video"));
    }
    manifest_free(&manifest);
}

// ---- with an end that belongs to the lines ----

struct repair {
    struct hash_tree frames, packets;
    json_t *identity;
    FILE *to;
};

static void seal_end(struct repair *repair, json_t *end)
{
    char root[HASH_TREE_TEXT], seal[FRAME_HASH_TEXT];
    hash_tree_root(&repair->frames, root);
    json_object_set_new(end, "root", json_string(root));
    hash_tree_root(&repair->packets, root);
    json_object_set_new(end, "packet_root", json_string(root));
    json_object_set_new(end, "frames", json_integer((json_int_t)repair->frames.count));
    json_object_set_new(end, "packets", json_integer((json_int_t)repair->packets.count));
    FUZZ_REQUIRE(!manifest_seal(repair->identity, end, seal));
    json_object_set_new(end, "seal", json_string(seal));
    json_dumpf(end, repair->to, JSON_COMPACT);
    fputc('\n', repair->to);
}

static void repair_line(struct repair *repair, const char *line)
{
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *kind = json_string_value(json_array_get(json, 0));
    if (json_is_object(json) && repair->identity) {
        seal_end(repair, json);
        json_decref(json);
        return;
    }
    if (kind)
        hash_tree_add(strcmp(kind, "frame") ? &repair->packets : &repair->frames, line,
                      strlen(line));
    fprintf(repair->to, "%s\n", line);
    if (!repair->identity)
        repair->identity = json_incref(json);
    json_decref(json);
}

static void check_repaired(char *text)
{
    char *fine = NULL;
    size_t size = 0;
    struct repair repair = {.to = open_memstream(&fine, &size)};
    FUZZ_REQUIRE(repair.to && !hash_tree_init(&repair.frames) && !hash_tree_init(&repair.packets));
    while (*text)
        repair_line(&repair, fuzz_line(&text));
    fclose(repair.to);
    check_manifest(fuzz_file((const uint8_t *)fine, size));
    hash_tree_finish(&repair.frames);
    hash_tree_finish(&repair.packets);
    json_decref(repair.identity);
    free(fine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    const char *file = fuzz_file(data, size);
    int descriptor = fuzz_next_descriptor();
    check_manifest(file);
    check_repaired(text);
    free(text);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}

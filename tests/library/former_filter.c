// A caller of filters as it was compiled with the headers of interface 1.1.
#include <sluice/filter.h>

#include "former.h"

static void print(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)opaque;
    if (level == SLUICE_LOG_ERROR)
        printf("log: %s\n", sentence);
}

static enum sluice_status find(void *opaque, const char *name, struct sluice_picture *picture)
{
    static const uint8_t sample[2] = {0, 255};
    (void)opaque, (void)name;
    picture->width = 2;
    picture->height = 1;
    picture->sample = sample;
    return SLUICE_STATUS_OK;
}

// Two frames, one behind the other, over their sources.
static void filter_pair(struct sluice_filter *filter)
{
    static uint8_t samples[2][16];
    struct sluice_frame *pair = begin(2 * sizeof *pair);
    for (int k = 0; k < 2; k++)
        pair[k] = (struct sluice_frame){
            .size = sizeof *pair, .data = {samples[k]}, .stride = {4}, .pts = k};
    enum sluice_status status = sluice_filter_submit_many(filter, pair, pair, 2, NULL);
    pair->size = 2 * sizeof *pair;
    end("two sluice_frame", pair, 2 * sizeof *pair, status);
    TRY(sluice_frame, sluice_filter_receive(filter, to));
    TRY(sluice_frame, sluice_filter_receive(filter, to));
    if (samples[1][15] != 255)
        printf("the second frame was not inverted\n"), exit(1);
}

int main(void)
{
    struct sluice_filter_config *config = begin(sizeof *config);
    struct sluice_filter *filter;
    config->chain = "stats,match=any:draw=none,invert";
    config->input = (struct sluice_format){
        .size = sizeof config->input, .pixfmt = "gray", .width = 4, .height = 4};
    config->frames_in_flight = 2;
    config->picture = find;
    config->log = print;
    end("sluice_filter_config", config, sizeof *config, sluice_filter_create(config, &filter));
    TRY(sluice_format, sluice_filter_output(filter, to));
    filter_pair(filter);
    TRY(sluice_analysis, sluice_filter_analysis(filter, 0, to));
    TRY(sluice_analysis, sluice_filter_analysis(filter, 1, to));
    sluice_filter_destroy(&filter);
    printf("well\n");
    return 0;
}

// Attacked: journals (`--replay FILE`), and the chains that their lines give.
//
// Must hold: a journal is taken or refused; what is taken has a chain in each line, and as many
// lines as changes; the chains are read or refused with a sentence; nothing is left behind.
#include <string.h>

#include "app/app.h"
#include "tests/fuzz/fuzz.h"

static void take_log(void *opaque, enum sluice_log_level level, const char *sentence)
{
    (void)level;
    *(bool *)opaque |= *sentence != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool said = false;
    struct settings settings = {.config = {.size = sizeof settings.config, .log = take_log},
                                .replay = fuzz_file(data, size)};
    int descriptor = fuzz_next_descriptor();
    settings.config.opaque = &said;
    if (journal_read(&settings)) {
        FUZZ_REQUIRE(settings.change_count > 0 && settings.config.chain);
        for (int k = 0; k < settings.change_count; k++)
            FUZZ_REQUIRE(settings.changes[k].chain);
        FUZZ_REQUIRE(!settings.changes[settings.change_count].chain);
        enum sluice_status status = sluice_chain_parse(&settings.config, &settings.parsed);
        FUZZ_REQUIRE(!status || said);
        FUZZ_REQUIRE(!status == !!settings.parsed);
    }
    settings_finish(&settings);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}

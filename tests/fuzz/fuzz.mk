# Fuzzers: `make fuzz` by libFuzzer, and in `make test` the replay of what they have found.

FUZZERS = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS = $(FUZZERS:%=$(BUILD)/replay_%)
test-run: $(REPLAYS)
FUZZ ?= $(FUZZERS)
FUZZ_SECONDS ?= 20
FUZZ_BUILD = build-fuzz
FUZZ_CC ?= $(if $(shell command -v clang-14),clang-14,clang)
NEED_FUZZ = 'command -v clang-14 || command -v clang|clang' \
    'ls $$($(FUZZ_CC) -print-resource-dir)/lib/linux/libclang_rt.fuzzer-*|$(shell apt-cache show libclang-rt-14-dev >/dev/null 2>&1 && echo libclang-rt-14-dev || echo libclang-rt-dev)'

# What fuzzers take from other tests, and all of the program but main().
$(BUILD)/fuzzed.a: $(patsubst %,$(BUILD)/tests/conformance/%.o,formats picture) $(patsubst %,$(BUILD)/tests/fuzz/%.o,fuzz draw) \
    $(filter-out %/main.o,$(APP_O))
	@rm -f $@
	$(AR) rcsD $@ $^
$(BUILD)/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/fuzzed.a $(BUILD)/internal.a
	$(LINK) -pie -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)
$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/fuzzed.a $(BUILD)/internal.a
	$(LINK) -fsanitize=fuzzer -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)

setup-fuzz:
	$(setup) $(NEED_COMPILE) $(NEED_FUZZ)

# Arithmetic on samples has nothing to guess by comparisons, whose tracing would be most of its time, and
# the distances between words for "did you mean" give away no word.
FUZZ_UNTRACED = $(filter-out stages/design/kernel.c,$(wildcard plan/*.c base/*.c stages/*.c stages/design/*.c)) \
    stages/chain/suggest.c app/hints.c
$(FUZZ_UNTRACED:%.c=$(FUZZ_BUILD)/%.o) $(FUZZ_BUILD)/cpu/%.o $(FUZZ_BUILD)/tests/conformance/%.o: \
    override CFLAGS += -fno-sanitize-coverage=trace-cmp

# Seconds a fuzzer; FUZZ=chain for one of them. What is found lies in build-fuzz/found. Where bits are compared,
# FUZZ=differential, FUZZ_SANITIZERS= looks for other bits alone, at more than twice the speed.
FUZZ_SANITIZERS ?= address,undefined
FUZZ_MAKE = @$(MAKE) --no-print-directory $(PARALLEL) BUILD=$(FUZZ_BUILD) CC="$(strip $(CCACHE) $(FUZZ_CC))" CUDA=no HARDEN= \
    CFLAGS="-O2 -g -fsanitize=fuzzer-no-link$(FUZZ_SANITIZERS:%=,%) -fno-sanitize-recover=undefined" \
    LDFLAGS=$(FUZZ_SANITIZERS:%=-fsanitize=%)
fuzz: setup-fuzz
	$(FUZZ_MAKE) $(FUZZ:%=$(FUZZ_BUILD)/fuzz_%)
	@$(PYTHON) tests/fuzz/run.py --build $(FUZZ_BUILD) --seconds $(FUZZ_SECONDS) $(FUZZ)

# The whole program on media with mutations.
fuzz-media: setup-fuzz
	$(FUZZ_MAKE) $(FUZZ_BUILD)/sluice
	@$(PYTHON) tests/fuzz/media.py --sluice $(FUZZ_BUILD)/sluice $(FUZZ_MEDIA)
.PHONY: fuzz fuzz-media setup-fuzz
.SECONDARY: $(FUZZERS:%=$(BUILD)/tests/fuzz/fuzz_%.o)

# Campaigns: the suite in builds that see more than the usual one. Each takes the suite's time or several of it.

NEED_COVERAGE = 'command -v gcovr|gcovr'
COVERED = $(sort $(foreach room,$(ROOMS) app control page hosts,$(firstword $(subst /, ,$(room)))))
CAMPAIGN = @$(MAKE) --no-print-directory $(PARALLEL) CUDA=no HARDEN=

# Which lines and branches of the product the suite runs; build-coverage/coverage.txt has those that it does not. Tests
# that fail in this build (processes that are killed write no counts) do not end it. Branches of assertions, which
# nobody takes, do not count. Left out is what runs nothing of this build: code of kernels, builds of their own, counts
# of instructions. Three quarters of an hour on two cores.
coverage: export CONFORMANCE = --every 10
coverage: export PYTEST_ADDOPTS = $(patsubst %,--ignore=tests/test_%.py,kernels aarch64 build budget reproducible)
coverage: setup-test
	$(setup) $(NEED_COVERAGE)
	@mkdir -p build-coverage
	$(CC) -fPIC -DFOLDER='"$(CURDIR)/build-coverage"' -c -o build-coverage/counts.o tests/coverage/counts.c
	-$(CAMPAIGN) BUILD=build-coverage CFLAGS="-O1 -g --coverage -fprofile-update=atomic" \
	    LDFLAGS="--coverage -Wl,--wrap=syscall $(CURDIR)/build-coverage/counts.o" test-run
	@$(MAKE) --no-print-directory coverage-report
coverage-report:
	@gcovr -r . --object-directory build-coverage --print-summary $(COVERED:%=--filter '%/') \
	    --exclude-branches-by-pattern '.*\bassert\(.*' --exclude-lines-by-pattern '.*\bassert\(.*' \
	    --txt build-coverage/coverage.txt --json-summary build-coverage/coverage.json

# Errors of memory and of the language: the whole suite in a build with AddressSanitizer, LeakSanitizer and
# UndefinedBehaviorSanitizer, but for what tests/instrumented.txt lists. Tests that put libraries of their own before all
# others put them before the sanitizer, too.
test-asan: export ASAN_OPTIONS = verify_asan_link_order=0
test-asan: export LSAN_OPTIONS = print_suppressions=0
test-asan: setup-test
	@mkdir -p build-asan
	$(CC) -fPIC -c -o build-asan/leaks.o tests/asan/leaks.c
	$(CAMPAIGN) BUILD=build-asan CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	    LDFLAGS="-fsanitize=address,undefined $(CURDIR)/build-asan/leaks.o" test-run
.PHONY: coverage coverage-report test-asan

# Races: units and the tests of threads, in a build with ThreadSanitizer over an FFmpeg with it (tests/tsan/ffmpeg.sh,
# a quarter of an hour once). What it finds is in build-tsan/reports; races of ours fail the run. unit_allocations has
# an allocator of its own. TSAN_TESTS="-n 3 --dist loadfile ." is the whole suite, but for what tests/instrumented.txt
# lists, an hour and a half on two cores.
TSAN = build-tsan/ffmpeg
TSAN_UNITS = $(filter-out $(BUILD)/unit_allocations $(BUILD)/unit_filter_gpu $(BUILD)/unit_gpu_times,$(UNITS))
TSAN_TESTS ?= test_live.py test_outputs.py test_jobs.py test_library.py test_tees.py
test-tsan: setup-test
	sh tests/tsan/ffmpeg.sh $(TSAN)
	+PKG_CONFIG_PATH=$(CURDIR)/$(TSAN)/lib/pkgconfig $(MAKE) --no-print-directory $(PARALLEL) CUDA=no HARDEN= BUILD=build-tsan \
	    CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=thread" \
	    LDFLAGS="-fsanitize=thread -Wl,--disable-new-dtags,-rpath,$(CURDIR)/$(TSAN)/lib" test-tsan-run
test-tsan-run: all $(TSAN_UNITS)
	@PYTHON=$(PYTHON) BUILD=$(BUILD) sh tests/instrumented.sh tsan "$(TSAN_UNITS)" "$(TSAN_TESTS)"
.PHONY: test-tsan test-tsan-run

# Memory that nobody has written: units, and VALGRIND_TESTS="test_cli.py test_outputs.py", under valgrind's memcheck. The
# whole suite, VALGRIND_TESTS="-n 3 --dist loadfile .", takes two cores most of a day.
# Left out are units of a GPU, and those of which memcheck is wrong: unit_raw shortens a file that is mapped, whose pages it
# then takes for nobody's; swscale's last samples of a row go into unit_preview's counts; unit_fft compares with long
# doubles, which have 64 bits there.
VALGRIND_UNITS = $(filter-out $(patsubst %,$(BUILD)/unit_%,raw preview preview_streams fft filter_gpu gpu_times multi_gpu),$(UNITS))
VALGRIND_TESTS ?=
test-valgrind: setup-test
	$(CAMPAIGN) BUILD=build-valgrind test-valgrind-run
test-valgrind-run: all $(VALGRIND_UNITS)
	@PYTHON=$(PYTHON) BUILD=$(BUILD) sh tests/instrumented.sh valgrind "$(VALGRIND_UNITS)" "$(VALGRIND_TESTS)"
.PHONY: test-valgrind test-valgrind-run

# Time: a live source for three hours with all that can happen to it, and 20,000 jobs of all kinds in one process.
SOAK_SECONDS ?= 10800
SOAK_JOBS ?= 20000
SOAK_BACKEND ?= cpu
$(BUILD)/soak_jobs: $(BUILD)/tests/soak_jobs.o $(BUILD)/libsluice.a
	$(LINK) -pie -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)
test-run: $(BUILD)/soak_jobs
soak: setup-test all $(BUILD)/soak_jobs
	SLUICE=$(BUILD)/sluice $(PYTHON) tests/soak.py --jobs $(SOAK_JOBS) --seconds $(SOAK_SECONDS) --rate 100 \
	    --backend $(SOAK_BACKEND)
.PHONY: soak

# sluice: filter video at the speed of the hardware. `make help` lists the targets.

MAKEFLAGS += --no-builtin-rules
BUILD ?= build
# One name for the folder within this one: objects know by theirs what they include.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/sluice
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=
VERSION = 0.2.0
SOVERSION = 1

CC ?= cc
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
ifeq ($(origin AR),default)
AR = $(shell $(CC) -print-prog-name=ar)
endif
NVCCFLAGS ?= # -lineinfo for profilers: objects become some times larger
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wstrict-prototypes -Wundef
PYTHON ?= /usr/bin/python3

# Defences that the compiler has, of those that a program which reads what strangers send should have.
# Row kernels go without: they have no arrays on the stack, and every instruction of them counts.
# HARDEN= and HARDEN_LINK= leave them out; sanitizers and -O0 go without FORTIFY.
FORTIFY = $(if $(filter -O0 -fsanitize%,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN = $(eval HARDEN := $$(foreach f,-fstack-protector-strong -fstack-clash-protection -fcf-protection,\
    $$(call takes,$$(f))) $(FORTIFY))$(HARDEN)
HARDEN_LINK = -Wl,-z,relro,-z,now
takes = $(shell echo | $(CC) -Werror $1 -x c -fsyntax-only - 2>/dev/null && echo $1)

# The same bits in every folder; nothing but the interface is visible; mistakes that C forgives.
PATHS = -ffile-prefix-map=$(CURDIR)=.
MODES = -fvisibility=hidden -fPIC
STRICT = -Werror=implicit-function-declaration -Werror=int-conversion

# ---- for which machine ----

# The compiler's target. A cross compiler is named after it (CC=aarch64-linux-gnu-gcc) and builds what needs no FFmpeg:
# libsluice-filter and what tests it, without CUDA.
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null)
ARCH := $(firstword $(subst -, ,$(TARGET)))
CROSS := $(if $(filter $(shell uname -m),$(ARCH)),,$(filter $(TARGET)-%,$(notdir $(lastword $(CC)))))
PKG_CONFIG ?= $(if $(CROSS),$(TARGET)-pkg-config,pkg-config)

# ---- what this machine has ----

# Asked for when a recipe runs, not before: `make test` may have to install them first.
FFMPEG = libavformat libavcodec libswscale libavutil
FFMPEG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(FFMPEG) jansson libmicrohttpd libxxhash)
FFMPEG_LIBS = $(shell $(PKG_CONFIG) --libs $(FFMPEG) libmicrohttpd jansson libxxhash)

# nvcc on PATH, in CUDA_HOME, or in its usual place. CUDA=no builds without it.
ifeq ($(filter no,$(CUDA))$(CROSS),)
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) \
          $(wildcard $(CUDA_HOME)/bin/nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
ifneq ($(NVCC),)
CUDA_ROOT := $(realpath $(dir $(realpath $(NVCC)))..)
# For which GPUs: "native", those of this machine; "all"; or numbers, as in "80 90". What is installed
# may go to other machines, and holds all. Where there is no GPU native is all.
CUDA_ARCHS ?= $(if $(filter install wheel,$(MAKECMDGOALS)),all,native)
CUDA_KNOWN := $(shell $(NVCC) --list-gpu-code 2>/dev/null | sed -n 's/^sm_\([0-9]*\)$$/\1/p' | sort -n)
CUDA_ALL = $(filter 75 80 86 89 90 100 120 $(CUDA_$(ARCH)),$(CUDA_KNOWN))
CUDA_aarch64 = 87 110# Jetson Orin and Thor, which run no code of other GPUs of their generation
CUDA_HERE = $(eval CUDA_HERE := $$(shell sh kernels/gpus.sh $(CUDA_KNOWN)))$(CUDA_HERE)
CUDA_CHOSEN = $(strip $(patsubst all,$(CUDA_ALL),$(patsubst native,$(or $(CUDA_HERE),all),$(CUDA_ARCHS))))
CUDA_NEWEST = $(lastword $(CUDA_CHOSEN))
# What drivers compile: for newer GPUs that of the newest, and in a build for all that of the oldest, too,
# for what lies between.
CUDA_OLDEST = $(if $(filter-out $(CUDA_CHOSEN),$(CUDA_ALL)),,$(firstword $(CUDA_CHOSEN)))
# PTX, which takes nvcc twice as long as what ptxas makes of it, is made once for GPUs that get the same code by it as
# by their own.
CUDA_PTX = $(or $(if $(filter 86 87 88 89,$(1)),80),$(if $(filter 120,$(1)),100),$(1))
# Instructions that Hopper alone has are asked for by a name of its own, and no driver makes code of them.
CUDA_OWN = $(1)$(if $(and $(filter 90,$(1)),$(findstring _wgmma,$@)),a)
CUDA_CODE = -gencode arch=compute_$(call CUDA_OWN,$(call CUDA_PTX,$(1))),code=sm_$(call CUDA_OWN,$(1))
GENCODE = $(foreach a,$(CUDA_CHOSEN),$(call CUDA_CODE,$(a))) \
          $(foreach a,$(sort $(foreach a,$(CUDA_OLDEST) $(CUDA_NEWEST),$(call CUDA_PTX,$(a)))),-gencode arch=compute_$(a),code=compute_$(a))
ifneq ($(origin CUDA_ARCHS),file)
CUDA_WHY = as CUDA_ARCHS says
else ifeq ($(CUDA_ARCHS),all)
CUDA_WHY = as it may go to other machines; CUDA_ARCHS=native is for this one only
else
CUDA_WHY = $(if $(CUDA_HERE),as this machine has; CUDA_ARCHS=all is for every GPU,\
    as no GPU is here to build for alone: this takes minutes; CUDA_ARCHS=90 is for one kind only)
endif
CUDA_LIBS = $(addprefix -L,$(wildcard $(CUDA_ROOT)/lib64 $(CUDA_ROOT)/lib)) \
            -lcudart_static -ldl -lrt -lstdc++
endif

# Of row kernels. Nobody asks for the flags that floating point raises: without them comparisons become vectors, too.
ROW_FLAGS = -O3 -fno-math-errno -fno-trapping-math

# $(call keep,NAME,TEXT): a file of that text, which is written where the text is another one.
ifneq ($(filter-out help clean setup% uninstall,$(or $(MAKECMDGOALS),all)),)
keep = $(shell mkdir -p $(BUILD) && echo '$(2)' > $(BUILD)/$(1).new && \
    { cmp -s $(BUILD)/$(1).new $(BUILD)/$(1) || cp $(BUILD)/$(1).new $(BUILD)/$(1); })
endif
# Objects are made anew when flags change.
OBJECT_FLAGS = $(lastword $(CC)) $(CFLAGS) $(HARDEN) $(MODES) $(STRICT) $(WARNINGS) $(ROW_FLAGS) $(VERSION)
$(call keep,flags,$(OBJECT_FLAGS))

# ---- sources: wildcards per folder ----

ISA_x86_64 = v2 v3 v4 vnni
ISA_aarch64 = $(if $(call takes,-include simde/x86/sse4.2.h),neon)
ISA := base $(ISA_$(ARCH))
ROOMS = $(FILTER) pipeline $(PIPELINE)
FILTER = base plan stages stages/chain stages/design filter $(CPU)
CPU = cpu cpu/reference cpu/rows
PIPELINE = $(addprefix pipeline/,proof $(ENGINE) part report $(OUTPUT) $(INPUT) ffmpeg)
ENGINE = engine $(addprefix engine/,filter threads)
OUTPUT = output $(addprefix output/,transport muxer http file)
INPUT = input $(addprefix input/,seek live faults devices io)
KERNELS = kernels $(patsubst %/,%,$(wildcard kernels/*/))
LONGEST = kernels/stencil/separable_mma_u8.cu kernels/stencil/lines_mma_u8.cu # minutes for all GPUs: first, so that nobody waits for it in the end
# libsluice has the objects of libsluice-filter, but for one, and pipeline's.
FILTER_C = $(filter-out cpu/rows/rows.c,$(wildcard $(FILTER:%=%/*.c))) $(if $(NVCC),,kernels/cuda_stub.c)
FILTER_O = $(FILTER_C:%.c=$(BUILD)/%.o) $(ISA:%=$(BUILD)/cpu/rows/rows_%.o) \
           $(if $(NVCC),$(patsubst %.cu,$(BUILD)/%.o,$(LONGEST) $(filter-out $(LONGEST),$(wildcard $(KERNELS:%=%/*.cu)))))
LIBRARY_O = $(filter-out $(BUILD)/filter/version.o,$(FILTER_O)) \
            $(patsubst %.c,$(BUILD)/%.o,$(wildcard pipeline/*.c $(PIPELINE:%=%/*.c)))
APP_O = $(patsubst %.c,$(BUILD)/%.o,$(wildcard app/*.c app/farm/*.c app/jobs/*.c app/sandbox/*.c app/service/*.c bench/*.c control/*.c page/*.c page/player/*.c page/preview/*.c)) \
        $(BUILD)/page/web_files.o
UNITS = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/unit_*.c))

SHARED = $(BUILD)/libsluice.so.$(SOVERSION)
SHARED_FILTER = $(BUILD)/libsluice-filter.so.$(SOVERSION)
SYSTEM_LIBS = $(CUDA_LIBS) -lm -lpthread -ldl
LINK = $(CC) $(LDFLAGS) $(HARDEN_LINK)
# What is made of objects is made anew when there are other ones: with CUDA after a build without it, or less a file.
$(call keep,objects,$(APP_O) $(LIBRARY_O))

all: $(BUILD)/sluice $(BUILD)/conformance $(BUILD)/budget $(SHARED) $(BUILD)/libsluice.a \
    $(SHARED_FILTER) $(BUILD)/libsluice-filter.a
ifeq ($(CUDA),no)
	@echo "CUDA=no: this build filters on the CPU only."
else ifeq ($(NVCC),)
	@echo "No nvcc was found: this build filters on the CPU only."
endif

# The objects as they are, for what stands on more than the interface: `sluice bench`, and tests.
$(BUILD)/internal.a: $(LIBRARY_O) $(BUILD)/objects
	@rm -f $@
	$(AR) rcsD $@ $(LIBRARY_O)

$(BUILD)/sluice: $(APP_O) $(BUILD)/internal.a
	$(LINK) -pie -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)

# One object, in which all that is hidden has become local: a program may have functions of the same
# names as ours.
$(BUILD)/libsluice.a: $(LIBRARY_O)
$(BUILD)/libsluice-filter.a: $(FILTER_O)
$(BUILD)/libsluice.a $(BUILD)/libsluice-filter.a: $(BUILD)/objects
	@rm -f $@
	$(CC) -r -nostdlib -Wl,--force-group-allocation -o $(@:.a=.o) $(filter %.o,$^)
	$(OBJCOPY) --localize-hidden $(@:.a=.o)
	$(AR) rcsD $@ $(@:.a=.o)

$(SHARED): $(LIBRARY_O) pipeline/sluice.map $(BUILD)/objects
	$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script,pipeline/sluice.map -Wl,-z,defs \
	    -o $@ $(LIBRARY_O) $(FFMPEG_LIBS) $(SYSTEM_LIBS)
	@ln -sf $(@F) $(BUILD)/libsluice.so

$(SHARED_FILTER): $(FILTER_O) filter/sluice-filter.map $(BUILD)/objects
	$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script,filter/sluice-filter.map -Wl,-z,defs \
	    -o $@ $(FILTER_O) $(SYSTEM_LIBS)
	@ln -sf $(@F) $(BUILD)/libsluice-filter.so

# Of the filter alone, which needs no FFmpeg, so that compilers for other machines build them, too.
CONFORMANCE_O = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/conformance/*.c) pipeline/engine/filter/multi_gpu.c)
$(BUILD)/conformance: $(CONFORMANCE_O) $(FILTER_O) $(BUILD)/objects
	$(LINK) -pie -o $@ $(filter %.o,$^) $(SYSTEM_LIBS)

$(BUILD)/budget: $(BUILD)/tests/budget.o $(FILTER_O) $(BUILD)/objects
	$(LINK) -pie -o $@ $(filter %.o,$^) $(SYSTEM_LIBS)

# What a call of the filter library costs; it reports and judges nothing.
$(BUILD)/filter_overhead: $(BUILD)/tests/filter_overhead.o $(BUILD)/internal.a
	$(LINK) -pie -o $@ $^ $(SYSTEM_LIBS)

# The program with what its calls of the CUDA runtime cost the host, as a line on stderr; likewise.
TIMED = $(shell sed -n 's/^ *CALL.int, *\([A-Za-z_0-9]*\),.*/\1/p' tests/cuda_calls.c) bench_library_run bench_case_run
$(BUILD)/sluice-calls: $(BUILD)/tests/cuda_calls.o $(APP_O) $(BUILD)/internal.a
	$(LINK) -pie $(TIMED:%=-Wl,--wrap=%) -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)

# The program with a GPU that dies, for tests/cuda_faults.py.
FRAGILE = $(shell sed -n 's/^ *CALL.\([A-Za-z_0-9]*\),.*/\1/p' tests/cuda_faults.c) _exit
$(BUILD)/sluice-faults: $(BUILD)/tests/cuda_faults.o $(APP_O) $(BUILD)/internal.a
	$(LINK) -pie $(FRAGILE:%=-Wl,--wrap=%) -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)

$(BUILD)/unit_%: $(BUILD)/tests/unit_%.o $(BUILD)/internal.a
	$(LINK) -pie -o $@ $(filter %.o,$^) $(filter %.a,$^) $(FFMPEG_LIBS) -lcmocka $(SYSTEM_LIBS)

# Of the control page, which is not in the library.
KEPT = keep reel_keep
PREVIEW = compare compose filters preview record render render_lane render_parts stream stream_encode stream_mp4
$(BUILD)/unit_keep $(BUILD)/unit_cursor $(BUILD)/unit_rescue: $(KEPT:%=$(BUILD)/page/player/%.o)
$(BUILD)/unit_player: $(patsubst %,$(BUILD)/page/player/%.o,$(KEPT) player player_thread)
$(BUILD)/unit_preview $(BUILD)/unit_preview_streams: $(PREVIEW:%=$(BUILD)/page/preview/%.o)
$(BUILD)/unit_visited: $(patsubst %,$(BUILD)/page/%.o,visited chains history)
$(BUILD)/unit_preview_turns: $(PREVIEW:%=$(BUILD)/page/preview/%.o)

# Of the program: what `--jobs` decides.
$(BUILD)/unit_jobs: $(BUILD)/app/jobs/climb.o $(BUILD)/app/jobs/division.o $(BUILD)/app/jobs/place.o

# What tests/unit_allocations.c counts.
COUNTED = malloc calloc realloc posix_memalign strdup cudaMalloc cudaHostAlloc \
    cudaEventCreateWithFlags cudaStreamCreateWithFlags
$(BUILD)/unit_allocations: override LDFLAGS += $(COUNTED:%=-Wl,--wrap=%)

# The GPU that tests/unit_gpu_start.c has instead of one, and the log of the CPU beside it.
$(BUILD)/unit_gpu_start: override LDFLAGS += -Wl,--wrap=backend_cuda_create,--wrap=backend_cuda_may_be_there,--wrap=backend_cpu_create

# Launches and graphs that tests/unit_filter_gpu.c counts, and lets fail, and copies, waits and events that it counts.
SEEN = cudaGraphLaunch cudaGraphInstantiateWithFlags cudaGraphExecKernelNodeSetParams cudaMemcpyAsync cudaMemcpyBatchAsync \
    cudaStreamWaitEvent cudaEventRecord cudaLaunchKernel cudaLaunchKernelExC cudaGetDriverEntryPointByVersion \
    cudaGetDriverEntryPoint
$(BUILD)/unit_filter_gpu: override LDFLAGS += $(SEEN:%=-Wl,--wrap=%)
$(BUILD)/unit_filter_gpu: $(if $(NVCC),$(BUILD)/tests/late_copy.o)
$(BUILD)/tests/unit_filter_gpu.o: override CFLAGS += -DCUDA_ARCHS='"$(CUDA_CHOSEN)"'

# The GPU that fails in tests/unit_filter_calls.c.
$(BUILD)/unit_filter_calls: override LDFLAGS += -Wl,--wrap=backend_cuda_create

$(BUILD)/%.o: %.c $(BUILD)/flags | packages
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(HARDEN) $(PATHS) $(MODES) -ffp-contract=off -MMD -MP $(WARNINGS) $(STRICT) \
	    -I. -Iinclude $(if $(filter-out $(WITHOUT_FFMPEG),$<),$(FFMPEG_CFLAGS)) \
	    -DSLUICE_VERSION='"$(VERSION)"' -c -o $@ $<
WITHOUT_FFMPEG = $(FILTER:%=%/%) kernels/% tests/conformance/% tests/budget.c pipeline/engine/filter/multi_gpu.c

# The row kernels, once for each level of the instruction set. Without SIMDe's headers (libsimde-dev) there is no neon.
# Processors of these levels without prefetchw do nothing for it.
ROWS_v2 = -march=x86-64-v2 -mprfchw
ROWS_v3 = -march=x86-64-v3 -mprfchw
ROWS_v4 = -march=x86-64-v4 -mprfchw
ROWS_vnni = -march=x86-64-v4 -mprfchw -mavx512vnni -mavx512vbmi
ROWS_neon = -DROWS_SIMDE
$(BUILD)/cpu/rows/rows_%.o: cpu/rows/rows.c $(BUILD)/flags | packages
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(PATHS) $(MODES) -MMD -MP $(ROW_FLAGS) $(WARNINGS) $(STRICT) -I. -Iinclude $(ROWS_$*) \
	    -DROWS_TABLE=rows_$* -DROWS_NAME='"$*"' -c -o $@ $<

# Without -j nvcc itself compiles for several architectures at a time. Code of sm_90 stays beside the object, for
# tests/test_kernels.py.
$(BUILD)/%.o: %.cu $(BUILD)/cuda-archs $(BUILD)/flags | packages
	@rm -rf $@.kept $(@:.o=.cubin) && mkdir -p $@.kept
	$(NVCC) -std=c++17 -O3 $(NVCCFLAGS) $(GENCODE) --keep --keep-dir $@.kept -MMD -MP $(if $(PARALLEL),--threads 0) \
	    -DCUDA_BUILT_FOR='"$(CUDA_CHOSEN:%=sm_%)$(if $(filter-out $(CUDA_CHOSEN),$(CUDA_ALL)), only)"' \
	    $(if $(filter 90,$(CUDA_CHOSEN)),-DCUDA_BUILT_FOR_HOPPER) \
	    $(addprefix -Xcompiler ,$(PATHS) $(MODES) $(HARDEN) $(call takes,-fno-gnu-unique)) -I. -Iinclude -c -o $@ $<
	@$(if $(filter 90,$(CUDA_CHOSEN)),mv $@.kept/*$(if $(filter-out 90,$(CUDA_CHOSEN)),$(call CUDA_OWN,90)).cubin $(@:.o=.cubin); )rm -r $@.kept

# What CUDA objects were made for; they are made anew when that changes.
$(BUILD)/cuda-archs: always
	@mkdir -p $(@D)
	@echo '$(CUDA_CHOSEN)$(CUDA_OLDEST:%= ptx_%)' | cmp -s - $@ || { echo '$(CUDA_CHOSEN)$(CUDA_OLDEST:%= ptx_%)' > $@; \
	    echo "Building for GPUs of $(CUDA_CHOSEN:%=sm_%), $(strip $(CUDA_WHY))."; }

# What each object includes, as the compilers wrote it beside the object.
-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d $(BUILD)/*/*/*/*.d)
%.d: ;

# ---- generated: manual pages, completions, docs/stages.md ----

# From the tables of options and stages, by a program that is linked with both.
MANUAL_DATE = November 22, 2026
GENERATED = $(addprefix $(BUILD)/generated/,sluice.1 sluice-stages.7 stages.md sluice.bash _sluice sluice.fish)
GENERATE_O = $(patsubst %.c,$(BUILD)/%.o,$(wildcard app/generate/*.c)) $(filter-out %/main.o,$(APP_O))
all: $(GENERATED)
$(BUILD)/generate: $(GENERATE_O) $(BUILD)/internal.a
	$(LINK) -pie -o $@ $^ $(FFMPEG_LIBS) $(SYSTEM_LIBS)
$(GENERATED): $(BUILD)/generate
	@mkdir -p $(@D)
	@$< $(@F) "$(MANUAL_DATE)" > $@
docs/stages.md: $(BUILD)/generated/stages.md
	cp $< $@
MANDIR ?= $(PREFIX)/share/man
install-generated: all
	install -D -m 644 $(BUILD)/generated/sluice.1 $(TO)$(MANDIR)/man1/sluice.1
	install -D -m 644 $(BUILD)/generated/sluice-stages.7 $(TO)$(MANDIR)/man7/sluice-stages.7
	install -D -m 644 $(BUILD)/generated/sluice.bash $(TO)$(BASH_COMPLETION)
	install -D -m 644 $(BUILD)/generated/_sluice $(TO)$(ZSH_COMPLETION)
	install -D -m 644 $(BUILD)/generated/sluice.fish $(TO)$(FISH_COMPLETION)
BASH_COMPLETION = $(PREFIX)/share/bash-completion/completions/sluice
ZSH_COMPLETION = $(PREFIX)/share/zsh/site-functions/_sluice
FISH_COMPLETION = $(PREFIX)/share/fish/vendor_completions.d/sluice.fish

# ---- the files of web/, part of the program ----

WEB = $(wildcard web/*.*)
$(BUILD)/embed: page/embed/embed.c | packages
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(WARNINGS) -o $@ $<
$(BUILD)/generated/%.gz: web/%
	@mkdir -p $(@D)
	@gzip -9nc $< > $@
$(BUILD)/generated/web_files.c: $(BUILD)/embed $(WEB) $(WEB:web/%=$(BUILD)/generated/%.gz)
	@$< $(@D) $(WEB) > $@
$(BUILD)/page/web_files.o: $(BUILD)/generated/web_files.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(HARDEN) $(PATHS) $(MODES) -MMD -MP $(WARNINGS) -I. -Iinclude -c -o $@ $<

# ---- the Python package: dist/sluice-VERSION-py3-none-manylinux_....whl ----

DIST ?= dist
wheel: $(SHARED_FILTER)
	@$(PYTHON) python/build_wheel.py $(DIST) $<

# ---- plugins of other programs, where their headers are ----

FREI0R = $(BUILD)/hosts/frei0r/sluice.so
GSTREAMER = $(BUILD)/hosts/gstreamer/libgstsluice.so
HOSTS := $(if $(wildcard /usr/include/frei0r.h),$(FREI0R)) \
         $(shell $(PKG_CONFIG) --exists gstreamer-video-1.0 2>/dev/null && echo $(GSTREAMER))
FREI0RDIR ?= $(PREFIX)/lib/frei0r-1
GSTREAMERDIR ?= $(LIBDIR)/gstreamer-1.0
# With CUDA and GStreamer's headers for it the element takes pictures in a GPU's memory.
GSTREAMER_CUDA := $(strip $(if $(and $(NVCC),$(wildcard $(CUDA_ROOT)/include/cuda.h)),\
    $(shell $(PKG_CONFIG) --exists gstreamer-cuda-1.0 2>/dev/null && echo gstreamer-cuda-1.0)))
GSTREAMER_C = $(filter-out hosts/gstreamer/$(if $(GSTREAMER_CUDA),cuda_stub,cuda).c,$(wildcard hosts/gstreamer/*.c))
GSTREAMER_LIBS = -Wl,--as-needed $(shell $(PKG_CONFIG) --libs gstreamer-video-1.0 $(GSTREAMER_CUDA))
GSTREAMER_CFLAGS = $(shell $(PKG_CONFIG) --cflags gstreamer-video-1.0 $(GSTREAMER_CUDA)) \
    $(if $(GSTREAMER_CUDA),-DGST_USE_UNSTABLE_API -isystem $(CUDA_ROOT)/include)
$(GSTREAMER): HOST_CFLAGS = -fvisibility=hidden $(GSTREAMER_CFLAGS)
all: $(HOSTS)
frei0r: $(FREI0R)
gstreamer: $(GSTREAMER)
# Each holds the filter, and shows its host nothing but its own functions.
PLUGIN = $(LINK) -shared -Wl,-z,defs -Wl,--exclude-libs,ALL -o $@ $^
$(FREI0R): $(BUILD)/hosts/frei0r/sluice.o $(BUILD)/libsluice-filter.a
	$(PLUGIN) $(SYSTEM_LIBS)
$(GSTREAMER): $(GSTREAMER_C:%.c=$(BUILD)/%.o) $(BUILD)/libsluice-filter.a
	$(PLUGIN) $(GSTREAMER_LIBS) $(SYSTEM_LIBS)
$(BUILD)/hosts/%.o: hosts/%.c $(BUILD)/flags | packages
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(HARDEN) $(PATHS) -fPIC -MMD -MP $(WARNINGS) $(STRICT) -I. -Iinclude \
	    $(HOST_CFLAGS) -DSLUICE_VERSION='"$(VERSION)"' -c -o $@ $<
install-hosts: $(HOSTS)
	$(if $(filter $(FREI0R),$(HOSTS)),install -D -m 755 $(FREI0R) $(TO)$(FREI0RDIR)/sluice.so)
	$(if $(filter $(GSTREAMER),$(HOSTS)),install -D -m 755 $(GSTREAMER) $(TO)$(GSTREAMERDIR)/libgstsluice.so)

# ---- what a fresh machine lacks ----

# "shell test|Debian package": installed when the test fails.
NEED_COMPILE = 'command -v $(firstword $(CC))|gcc' 'command -v gzip|gzip' 'test -f /usr/include/stdio.h|libc6-dev' \
    'command -v pkg-config|pkg-config' 'pkg-config --exists libavformat|libavformat-dev' \
    'pkg-config --exists libavcodec|libavcodec-dev' 'pkg-config --exists libavutil|libavutil-dev' \
    'pkg-config --exists libswscale|libswscale-dev' 'pkg-config --exists jansson|libjansson-dev' 'pkg-config --exists libxxhash|libxxhash-dev' \
    'pkg-config --exists libmicrohttpd|libmicrohttpd-dev'
NEED_BUILD = $(NEED_COMPILE) 'command -v ffmpeg|ffmpeg'
NEED_TEST = 'pkg-config --exists cmocka|libcmocka-dev' \
    'test -e /usr/include/opencv4/opencv2/imgcodecs.hpp|libopencv-imgcodecs-dev' 'command -v g++|g++' \
    '$(PYTHON) -c "import pytest"|python3-pytest' '$(PYTHON) -c "import xdist"|python3-pytest-xdist' '$(PYTHON) -c "import numpy"|python3-numpy' '$(PYTHON) -c "import xxhash"|python3-xxhash' \
    '$(PYTHON) -c "import cv2"|python3-opencv' '$(PYTHON) -c "import scipy"|python3-scipy' '$(PYTHON) -c "import mypy"|mypy' \
    'command -v mandoc|mandoc' 'command -v zsh|zsh' 'command -v fish|fish' 'command -v cmake|cmake' 'command -v meson|meson' \
    'test -e /usr/include/frei0r.h|frei0r-plugins-dev' \
    'pkg-config --exists gstreamer-video-1.0|libgstreamer-plugins-base1.0-dev' \
    'pkg-config --exists gstreamer-cuda-1.0|libgstreamer-plugins-bad1.0-dev' \
    '$(PYTHON) -c "import ensurepip"|python3-venv' 'command -v openssl|openssl' 'command -v valgrind|valgrind' 'command -v strace|strace' 'test -e $(LIBRARIES)/libfftw3.so.3|libfftw3-double3'
# The servers that tests of live sources speak with; what is not to be had is tested elsewhere.
NEED_LIVE = '$(PYTHON) -c "import gi"|python3-gi' 'command -v melt|melt' 'command -v gst-launch-1.0|gstreamer1.0-tools' \
    'test -e $(GIR)/GstRtspServer-1.0.typelib|gir1.2-gst-rtsp-server-1.0' \
    'test -e $(GST)/libgstrtp.so|gstreamer1.0-plugins-good' \
    'test -e $(GST)/libgstvideotestsrc.so|gstreamer1.0-plugins-base' \
    'test -e $(GST)/libgstvideoparsersbad.so|gstreamer1.0-plugins-bad' \
    'test -e $(GST)/libgstx264.so|gstreamer1.0-plugins-ugly' \
    'command -v Xvfb|xvfb' 'command -v xwininfo|x11-utils' \
    'test -e $(LIBRARIES)/libSDL2-2.0.so.0|libsdl2-2.0-0' \
    'command -v nft|nftables' 'command -v ip|iproute2' 'command -v nsenter|util-linux' \
    'test -e /usr/lib/nginx/modules/ngx_rtmp_module.so|libnginx-mod-rtmp'
# The engine of many machines.
NEED_FARM = 'PATH=$$PATH:/usr/sbin command -v slurmctld|slurm-wlm' 'PATH=$$PATH:/usr/sbin command -v munged|munge'
# Tensors for the Python package, where the suite has torch.
NEED_TORCH = '$(PYTHON) -c "import torch"|python3-torch'
# Frames of PyAV for it.
NEED_PYAV = '$(PYTHON) -c "import av"|python3-av'
# The camera in a virtual machine: make test-webcam.
NEED_WEBCAM = 'command -v qemu-system-x86_64|qemu-system-x86' 'command -v busybox|busybox-static' \
    'command -v v4l2-ctl|v4l-utils' 'command -v setpriv|util-linux'
# A compiler for ARM, what its programs run in, and the headers that make NEON of intrinsics.
NEED_ARM = 'command -v aarch64-linux-gnu-gcc|gcc-aarch64-linux-gnu' \
    'test -e /usr/aarch64-linux-gnu/include/stdio.h|libc6-dev-arm64-cross' \
    'command -v qemu-aarch64|qemu-user' 'test -e /usr/include/simde/x86/sse4.2.h|libsimde-dev'
# A browser that looks at streams, 350 MB: make setup-browser.
NEED_BROWSER = 'command -v chromium|chromium' 'command -v chromedriver|chromium-driver'
LIBRARIES = /usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
GIR = $(LIBRARIES)/girepository-1.0
GST = $(LIBRARIES)/gstreamer-1.0
NEED_CHECK = 'command -v g++|g++' 'command -v clang|clang' 'command -v clang-format|clang-format' \
    'command -v cppcheck|cppcheck'

setup = @sh tests/setup.sh

# What compilers would complain of file by file.
packages:
	@$(if $(LACKS),$(error packages are missing, $(LACKS): run 'make setup'))
LACKS = $(eval LACKS := $$(if $$(CROSS),,$$(shell sh tests/setup.sh --list $(NEED_COMPILE))))$(LACKS)

setup setup-build:
	$(setup) $(NEED_BUILD)
setup-test:
	$(setup) $(NEED_BUILD) $(NEED_TEST)
	-$(setup) $(NEED_LIVE)
	-$(setup) $(NEED_FARM)
	-$(setup) $(NEED_TORCH)
	-$(setup) $(NEED_PYAV)
	-$(setup) $(NEED_ARM)
setup-webcam: setup-test
	$(setup) $(NEED_WEBCAM)
setup-browser: setup-test
	$(setup) $(NEED_BROWSER)
setup-check:
	$(setup) $(NEED_BUILD) $(NEED_TEST) $(NEED_CHECK)

# ---- the two commands of the README ----

# All cores, unless whoever called make said how many.
PARALLEL = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

demo: setup-build
	@$(MAKE) --no-print-directory $(PARALLEL) demo-run
demo-run: $(BUILD)/sluice
	@mkdir -p out
	@sh media/make-sample.sh media/sample.mp4
	$(BUILD)/sluice media/sample.mp4 out/demo.mp4 -y
	@sh media/side-by-side.sh media/sample.mp4 out/demo.mp4 out/demo.png
	@echo "out/demo.mp4 is the filtered clip, out/demo.png shows a frame before and after."

test: setup-test
	@$(MAKE) --no-print-directory $(PARALLEL) test-run
test-run: all $(UNITS)
	@PYTHON=$(PYTHON) BUILD=$(BUILD) sh tests/run.sh

# The webcam of the kernel's test driver, in qemu; downloads 70 MB of Debian's kernel once.
test-webcam: setup-webcam
	@$(MAKE) --no-print-directory $(BUILD)/sluice
	SLUICE_TEST_WEBCAM=1 SLUICE=$(abspath $(BUILD)/sluice) $(PYTHON) -m pytest -q \
	    -p no:cacheprovider tests/test_webcam.py

# The filter library for aarch64 and what tests/test_aarch64.py runs of it in qemu, into build-arm64.
arm64:
	+@$(MAKE) --no-print-directory BUILD=build-arm64 CC=aarch64-linux-gnu-gcc CUDA=no \
	    $(addprefix build-arm64/,libsluice-filter.a conformance budget)

# Debian packages, built, installed and purged in new systems of SUITE: root, the network, a quarter of an hour.
test-package:
	sh tests/package.sh $(SUITE)
# Both container images, built and run without an engine: root, the network, ten minutes.
test-images:
	sh tests/images.sh
SUITE ?= trixie

-include tests/fuzz/fuzz.mk tests/faults/faults.mk tests/power/power.mk tests/campaigns.mk # sources may come without tests

# ---- checks ----

EVERYWHERE = $(ROOMS) $(KERNELS) include/sluice app app/farm app/generate app/jobs app/sandbox app/service bench control page page/embed page/player page/preview examples $(HOST_ROOMS) tests tests/conformance tests/faults tests/fuzz tests/library tests/power
HOST_ROOMS = $(patsubst $(BUILD)/%/,%,$(dir $(HOSTS)))
C_FILES = $(filter-out $(if $(GSTREAMER_CUDA),,hosts/gstreamer/cuda.c),$(wildcard $(EVERYWHERE:%=%/*.c)))
H_FILES = $(filter-out tests/%,$(wildcard $(EVERYWHERE:%=%/*.h)))
CU_FILES = $(wildcard $(KERNELS:%=%/*.cu) $(KERNELS:%=%/*.cuh) tests/*.cu)
check: setup-check
	@$(MAKE) --no-print-directory check-run
check-run:
	@BUILD=$(BUILD) FLAGS="$(FFMPEG_CFLAGS) $(if $(filter $(GSTREAMER),$(HOSTS)),$(GSTREAMER_CFLAGS))" WARNINGS="$(WARNINGS)" CUDA_ROOT="$(CUDA_ROOT)" \
	    sh tests/check.sh "$(C_FILES)" "$(H_FILES)" "$(CU_FILES)"

# What rooms know of each other by their objects.
check-rooms: all
	$(PYTHON) tests/rooms.py $(BUILD)

# ---- the rest ----

DOCUMENTS = README.md NEWS.md CONTRIBUTING.md SECURITY.md LICENSE $(wildcard docs/*.md docs/*.jpg examples/*)
TO = $(DESTDIR)

install: all install-generated install-hosts
	install -d $(TO)$(BINDIR) $(TO)$(LIBDIR)/pkgconfig $(TO)$(INCLUDEDIR)/sluice $(TO)$(DOCDIR)/docs $(TO)$(DOCDIR)/examples \
	    $(TO)$(UNITDIR)
	install -m 755 $(BUILD)/sluice $(TO)$(BINDIR)/
	install -m 644 include/sluice/*.h $(TO)$(INCLUDEDIR)/sluice/
	install -m 644 $(BUILD)/libsluice.a $(BUILD)/libsluice-filter.a $(TO)$(LIBDIR)/
	install -m 755 $(SHARED) $(SHARED_FILTER) $(TO)$(LIBDIR)/
	ln -sf $(notdir $(SHARED)) $(TO)$(LIBDIR)/libsluice.so
	ln -sf $(notdir $(SHARED_FILTER)) $(TO)$(LIBDIR)/libsluice-filter.so
	sed -e 's|@BINDIR@|$(BINDIR)|' app/sluice@.service.in > $(TO)$(UNITDIR)/sluice@.service
	$(call fill_pc,$(FFMPEG_LIBS) $(SYSTEM_LIBS)) pipeline/sluice.pc.in > $(TO)$(LIBDIR)/pkgconfig/sluice.pc
	$(call fill_pc,$(SYSTEM_LIBS)) filter/sluice-filter.pc.in > $(TO)$(LIBDIR)/pkgconfig/sluice-filter.pc
	for file in $(DOCUMENTS); do install -m 644 $$file $(TO)$(DOCDIR)/$$file || exit 1; done

fill_pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
    -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(strip $(if $(CUDA_LIBS),$(subst -L$(CUDA_ROOT)/,-L$${cudaroot}/,$1),$1))|' \
    -e '$(if $(CUDA_LIBS),s|@CUDAROOT@|$(CUDA_ROOT)|,/@CUDAROOT@/d)'

# What is linked into what was built.
sbom: all
	$(PYTHON) packaging/sbom.py $(BUILD) $(VERSION) $(NVCC) > $(BUILD)/sluice-$(VERSION).spdx.json
	@echo $(BUILD)/sluice-$(VERSION).spdx.json

# With the same PREFIX, DESTDIR and folders as `make install`.
uninstall:
	rm -f $(TO)$(BINDIR)/sluice $(TO)$(UNITDIR)/sluice@.service $(addprefix $(TO)$(LIBDIR)/,libsluice.a libsluice.so \
	    libsluice-filter.a libsluice-filter.so $(notdir $(SHARED) $(SHARED_FILTER)) pkgconfig/sluice.pc \
	    pkgconfig/sluice-filter.pc)
	rm -f $(TO)$(FREI0RDIR)/sluice.so $(TO)$(GSTREAMERDIR)/libgstsluice.so
	rm -rf $(TO)$(INCLUDEDIR)/sluice $(TO)$(DOCDIR)
	rm -f $(TO)$(MANDIR)/man1/sluice.1 $(TO)$(MANDIR)/man7/sluice-stages.7 \
	    $(TO)$(BASH_COMPLETION) $(TO)$(ZSH_COMPLETION) $(TO)$(FISH_COMPLETION)

clean:
	rm -rf $(BUILD) out

bench: setup-test
	+$(MAKE) all
	$(PYTHON) tests/bench.py --sluice $(BUILD)/sluice $(FILE)

# The same beside other libraries alone, and the table of the run that tests/reference/ keeps.
bench-peers: all
	$(PYTHON) tests/peers.py --library $(BUILD)/libsluice-filter.so.1 --json $(BUILD)/peers.json $(PEERS)
PEERS_RUNS = tests/reference/peers-cpu.json tests/reference/peers-avx2.json tests/reference/peers-torch-cpu.json
docs/comparison.md: $(PEERS_RUNS) tests/peers.py
	$(PYTHON) tests/peers.py --table $(PEERS_RUNS) $@

help:
	@echo "make              build $(BUILD)/sluice, with CUDA where nvcc is found"
	@echo "make setup        install what building needs"
	@echo "make demo         set up, build, filter a sample clip into out/"
	@echo "make test         set up, build, run all tests"
	@echo "make fuzz         FUZZ_SECONDS=20 FUZZ=chain  fuzzers, each so long; make fuzz-media: mutated media"
	@echo "make faults       every call of a run fails once: FAULTS='--share 500 --seed 7'"
	@echo "make power-cuts   what a disk may hold after power cuts: POWER='--cuts 500 --seed 7'"
	@echo "make soak         three hours of a live source, 20,000 jobs in one process: SOAK_SECONDS=540 SOAK_JOBS=500"
	@echo "make test-webcam  a webcam in a virtual machine, with unplugging and errors"
	@echo "make test-package SUITE=trixie  Debian packages, built, installed and purged in new systems"
	@echo "make test-images  container images, built and run by buildah"
	@echo "make arm64        the filter library for aarch64, by a cross compiler, into build-arm64"
	@echo "make setup-browser  Chromium, for the tests that look at streams with it"
	@echo "make frei0r gstreamer  plugins of other programs: docs/hosts.md"
	@echo "make bench        beside OpenCV, NPP, and what Python can import of SciPy, kornia, kornia-rs, VapourSynth, torch,"
	@echo "                  CV-CUDA and CuPy, and with FILE=in.mp4 beside ffmpeg, on this machine"
	@echo "make bench-peers  beside these libraries alone, gray, RGB and RGBA: PYTHON=python of an environment with them,"
	@echo "                  PEERS='--rounds 25 --formats rgb --sizes 1920x1080 1366x768 854x480'"
	@echo "make check        format, warnings of two compilers, static analysis, layers"
	@echo "make check-rooms  layers once more, by what the linker sees"
	@echo "make install      PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) LIBDIR=$(LIBDIR); CUDA code for all GPUs"
	@echo "make uninstall    with the same PREFIX, DESTDIR and LIBDIR"
	@echo "make sbom         what is linked, as SPDX (JSON)"
	@echo "make wheel        the Python package with libsluice-filter, into DIST=$(DIST); CUDA code for all GPUs"
	@echo "make clean"
	@echo "CUDA=no builds for the CPU only. CUDA_ARCHS=native builds for the GPUs of this machine,"
	@echo "CUDA_ARCHS=all for all, CUDA_ARCHS='80 90' for these; by default native, but install and wheel all."
	@echo "NVCCFLAGS=-lineinfo tells profilers the lines of kernels."

.PHONY: all always frei0r gstreamer install-hosts install-generated packages wheel setup setup-build setup-test setup-webcam setup-browser setup-check demo demo-run test \
        test-run test-webcam test-package test-images arm64 check check-run check-rooms bench bench-peers install uninstall sbom clean help
.DELETE_ON_ERROR:

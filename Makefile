# sluice: filter video at the speed of the hardware. `make help` lists the targets.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=

CC ?= cc
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wstrict-prototypes -Wundef
VERSION = 0.1.0

# ---- what this machine has ----

FFMPEG = libavformat libavcodec libswscale libavutil
FFMPEG_CFLAGS = $(shell pkg-config --cflags $(FFMPEG))
FFMPEG_LIBS = $(shell pkg-config --libs $(FFMPEG))
JANSSON_CFLAGS = $(shell pkg-config --cflags jansson)
JANSSON_LIBS = $(shell pkg-config --libs jansson)

# nvcc on PATH, in CUDA_HOME or in its usual place. CUDA=no builds without it.
ifneq ($(CUDA),no)
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) \
          $(wildcard $(CUDA_HOME)/bin/nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
ifneq ($(NVCC),)
NVCC_CODES := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
CUDA_ARCHS ?= $(filter $(NVCC_CODES),75 80 86 89 90 100 120)
CUDA_NEWEST = $(lastword $(CUDA_ARCHS))
GENCODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
          -gencode arch=compute_$(CUDA_NEWEST),code=compute_$(CUDA_NEWEST)
CUDA_LIBS = -L$(dir $(realpath $(NVCC)))../lib64 -L$(dir $(realpath $(NVCC)))../lib \
            -lcudart_static -ldl -lrt -lstdc++
endif

# ---- sources: wildcards per folder ----

ISA := $(if $(filter x86_64,$(shell uname -m)),base v2 v3 v4,base)
LIBRARY_C = $(wildcard stages/*.c) $(filter-out cpu/rows.c,$(wildcard cpu/*.c)) \
            $(wildcard pipeline/*.c) $(if $(NVCC),,kernels/absent.c)
LIBRARY_O = $(LIBRARY_C:%.c=$(BUILD)/%.o) $(ISA:%=$(BUILD)/cpu/rows_%.o) \
            $(if $(NVCC),$(patsubst %.cu,$(BUILD)/%.o,$(wildcard kernels/*.cu)))
APP_O = $(patsubst %.c,$(BUILD)/%.o,$(wildcard app/*.c))
HEADERS = $(wildcard stages/*.h cpu/*.h cpu/*.inc kernels/*.h kernels/*.cuh pipeline/*.h app/*.h)

all: $(BUILD)/sluice $(BUILD)/conformance

$(BUILD)/sluice: $(APP_O) $(BUILD)/libsluice.a
	$(CC) $(LDFLAGS) -o $@ $^ $(FFMPEG_LIBS) $(JANSSON_LIBS) $(CUDA_LIBS) -lm -lpthread

$(BUILD)/conformance: $(BUILD)/tests/conformance.o $(BUILD)/libsluice.a
	$(CC) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -lpthread

$(BUILD)/libsluice.a: $(LIBRARY_O)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -fPIC $(WARNINGS) -I. $(FFMPEG_CFLAGS) $(JANSSON_CFLAGS) \
	    -DSLUICE_VERSION='"$(VERSION)"' -c -o $@ $<

ROWS_base =
ROWS_v2 = -march=x86-64-v2
ROWS_v3 = -march=x86-64-v3
ROWS_v4 = -march=x86-64-v4
$(BUILD)/cpu/rows_%.o: cpu/rows.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -O3 -fPIC $(WARNINGS) -I. $(ROWS_$*) \
	    -DROWS_TABLE=rows_$* -DROWS_NAME='"$*"' -c -o $@ $<

$(BUILD)/kernels/%.o: kernels/%.cu $(HEADERS)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 -lineinfo $(GENCODE) --threads 0 -Xcompiler -fPIC -I. -c -o $@ $<

clean:
	rm -rf $(BUILD) out

.PHONY: all clean

// The operands of a pass, and planes in a slot's memory, as views and what kernels make of these.
#pragma once

#include "kernels/executor/executor.h"

// View a component, `at`, of pictures that lie alike.
void component_view(const struct image *images, int count, const struct component *at,
                    struct view *view);

void operand_view(const struct cuda_executor *self, const struct device_frames *frames,
                  struct operand operand, struct view *view);

// Source `s` of a pass, without a border, and without a lookup.
void source_view(const struct cuda_executor *self, const struct plan_pass *pass,
                 const struct device_frames *frames, int s, struct source *source);

// The targets of a pass, for results that go through `lookup`.
void sink_view(const struct cuda_executor *self, const struct plan_pass *pass,
               const struct device_frames *frames, const struct lookup *lookup, struct sink *sink);

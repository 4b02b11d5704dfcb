// The machine that figures were measured on, for people to read.
#pragma once

#include <stddef.h>

// The processor's name, as the kernel has it: "AMD EPYC 9R14", or "aarch64 processor".
void machine_processor(char *to, size_t size);

// "sluice 0.1.0; AMD EPYC 9R14; NVIDIA H200, compute capability 9.0", the last being `device`.
void machine_about(char *to, size_t size, const char *device);

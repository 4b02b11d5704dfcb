// Chains that a fuzzer's bytes stand for: stages of the table, with options drawn from the bytes.
#pragma once

#include <stdio.h>

#include "tests/fuzz/fuzz.h"

// Append one to four stages. Values are small, as those of neighbourhoods cost time; few of the
// chains are refused, for options that do not fit each other.
void draw_chain(struct fuzz_bytes *bytes, FILE *to);

// Chains that visitors send: they name no files of their own.
//
// Stages may read files (weights, templates) and write them (reports, tees). Who started the
// program may name any; a visitor only those that the present chain names at the same stage. What a
// visitor sends is read by the same parser as all chains, which asks about each text before it opens
// anything (struct chain_guard).
//
// Thread-safety: one thread at a time; the page's lock.
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "page/chains.h"

// The chain that a visitor asks for as the text to go on with, which the caller frees: texts of the
// present chain that were shown without their secrets have them again. STATUS_USAGE with a sentence if
// it is none, or names files; *admitted is NULL on failure, here and below.
enum status visited_chain(const struct chains *chains, const char *text, char **admitted, char *why,
                          size_t size);

// The same of options as chains_set() takes them ("match.threshold=0.9"). Names without their secrets
// are refused.
enum status visited_options(const struct chains *chains, const char *text, char **admitted,
                            char *why, size_t size);

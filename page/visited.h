// Chains that visitors send: they name no files of their own.
//
// Stages may read files (weights, templates) and write them (reports, tees). Who started the
// program may name any; a visitor only those that the present chain names at the same stage. What a
// visitor sends is looked at before the parser sees it, because that one reads files.
//
// Thread-safety: one thread at a time; the page's lock.
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "page/chains.h"

// True if a visitor may ask for this chain, or for these options ("match.template=a.png").
// STATUS_USAGE with a sentence if not; chains that are none may pass.
enum status visited_names(const struct chains *chains, const char *text, char *why, size_t size);

// The same, and whether it is a chain at all.
enum status visited_check(const struct chains *chains, const char *text, char *why, size_t size);

// Hash tree: a Merkle tree over leaves in order, as RFC 6962, section 2.1 defines it (SHA-256; a
// leaf is hashed behind a byte 0, two nodes behind a byte 1). Equal roots: equal leaves.
//
// Thread-safety: one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { HASH_TREE_TEXT = 65 }; // bytes of a root's text

struct hash_tree {
    struct AVSHA *sha;
    uint64_t count;       // leaves
    uint8_t node[64][32]; // node[k]: the root of 2^k leaves, where bit k of `count` is set
};

// Begin a tree without leaves. hash_tree_finish() in either case.
enum status hash_tree_init(struct hash_tree *tree);
void hash_tree_finish(struct hash_tree *tree);

void hash_tree_add(struct hash_tree *tree, const void *leaf, size_t size);

// The root of what there is so far.
void hash_tree_root(const struct hash_tree *tree, char text[HASH_TREE_TEXT]);

#include "pipeline/part/hash_tree.h"

#include <libavutil/mem.h>
#include <libavutil/sha.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 32, BITS = 256 };

enum status hash_tree_init(struct hash_tree *tree)
{
    *tree = (struct hash_tree){.sha = av_sha_alloc()};
    return tree->sha ? STATUS_OK : STATUS_MEMORY;
}

void hash_tree_finish(struct hash_tree *tree)
{
    av_freep(&tree->sha);
}

static void hash_leaf(const struct hash_tree *tree, const void *leaf, size_t size, uint8_t *to)
{
    av_sha_init(tree->sha, BITS);
    av_sha_update(tree->sha, (const uint8_t[]){0}, 1);
    av_sha_update(tree->sha, leaf, size);
    av_sha_final(tree->sha, to);
}

static void hash_pair(const struct hash_tree *tree, const uint8_t *left, uint8_t *right)
{
    av_sha_init(tree->sha, BITS);
    av_sha_update(tree->sha, (const uint8_t[]){1}, 1);
    av_sha_update(tree->sha, left, BYTES);
    av_sha_update(tree->sha, right, BYTES);
    av_sha_final(tree->sha, right);
}

void hash_tree_add(struct hash_tree *tree, const void *leaf, size_t size)
{
    uint8_t node[BYTES];
    int k = 0;
    hash_leaf(tree, leaf, size, node);
    for (; tree->count >> k & 1; k++)
        hash_pair(tree, tree->node[k], node);
    memcpy(tree->node[k], node, BYTES);
    tree->count++;
}

void hash_tree_root(const struct hash_tree *tree, char text[HASH_TREE_TEXT])
{
    uint8_t root[BYTES];
    bool any = false;
    for (int k = 0; k < 64; k++) {
        if (!(tree->count >> k & 1))
            continue;
        if (any)
            hash_pair(tree, tree->node[k], root);
        else
            memcpy(root, tree->node[k], BYTES);
        any = true;
    }
    if (!any) { // RFC 6962: the hash of nothing
        av_sha_init(tree->sha, BITS);
        av_sha_final(tree->sha, root);
    }
    for (int k = 0; k < BYTES; k++)
        snprintf(text + 2 * k, 3, "%02x", root[k]);
}

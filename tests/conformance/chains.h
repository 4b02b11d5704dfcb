// The chains of cases: those that are always tried, and random ones.
#pragma once

#include <stdint.h>
#include <stdio.h>

// Ended by NULL. "@WIDTHxHEIGHT,RANK" stands for a random kernel, "%w" and "%h" for the picture's
// size.
extern const char *const fixed_chains[];

// Append the chain with random kernels in place of "@WIDTHxHEIGHT,RANK", and the picture's size in
// place of "%w" and "%h": 2 where it is smaller, as a template of one sample is none.
void chain_expand(uint64_t *state, const char *chain, int picture_width, int picture_height,
                  FILE *to);

// Append one to five stages with random values of their options.
void chain_draw(uint64_t *state, FILE *to);

// Into how many parts `--jobs` divides a video.
#pragma once

#include <stdbool.h>

// How many parts to make of a video so long (seconds; 0: unknown) by so many jobs at once.
//
// Four parts a job: when one runs out of parts the others have a quarter of their work left at
// most, and half of that on average. Not more: each part costs a beginning (0.2 s at 1080p), a key
// frame, and what an encoder looks ahead. No part is shorter than 4 s unless the jobs could not all
// work otherwise: key frames are seldom closer, and parts between two of them are empty.
//
// `on_gpu`: so many jobs, from the first to the last, only wait for decoders of GPUs, and no part is
// kept. Then a beginning is dear: for an eighth of a second (H100: 54 ms to create a decoder, as much to
// destroy one, a dozen to ask for its limits) the driver serves no other thread, on whatever GPU. A part
// is as long as that makes a twentieth of the time at the most, where a decoder makes a second's frames
// in a 25th of a second: 65 s a job at once. A shorter video has one part a job, which takes GPUs for
// equal and frames for as hard to decode everywhere. Parts that are kept are four a job there, too: what
// a stop leaves is worth more, and the join has most of them behind it when the last is whole.
int division_parts(int jobs, double seconds, bool on_gpu);

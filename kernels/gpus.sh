#!/bin/sh
# gpus.sh ARCH...: which of these architectures, ascending, the GPUs of this machine run, as nvcc's
# -arch=native would say. A GPU newer than all of them runs what is compiled for the newest; one that
# they leave out is too old. Prints nothing where there is no GPU.
for newest; do :; done
nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    sed -n 's/^ *\([0-9][0-9]*\)\.\([0-9]\) *$/\1\2/p' | sort -nu |
    while read -r gpu; do
        for known; do
            [ "$gpu" != "$known" ] || echo "$known"
        done
        [ "$gpu" -le "$newest" ] || echo "$newest"
    done | sort -nu

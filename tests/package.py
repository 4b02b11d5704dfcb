"""What python3-sluice does where it is installed, beside the program: package.py VIDEO, run by package.sh."""
import importlib.metadata
import subprocess
import sys

import numpy as np
import sluice

CHAIN = "gray,gaussian=2,sobel"
RAW = ["-F", "rawvideo", "--pix-fmt"]
frame = np.random.default_rng(1).integers(0, 256, (48, 64, 3), dtype=np.uint8)
program = ["sluice", *RAW, "rgb24", "--size", "64x48", "-", "-", *RAW, "gray", "-f", CHAIN, "-q"]
told = subprocess.run(program, input=frame.tobytes(), stdout=subprocess.PIPE, check=True).stdout
assert sluice.Filter(CHAIN)(frame).tobytes() == told
assert len(list(sluice.read(sys.argv[1], chain=CHAIN))) == 30
print("python3-sluice", importlib.metadata.version("sluice"), "equals the program")

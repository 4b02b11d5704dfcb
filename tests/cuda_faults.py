"""A GPU that dies at every call in turn: cuda_faults.py [--sluice build/sluice-faults] [--runs 400] [--ring N] CLIP

Needs a GPU and `make build/sluice-faults`. Every run filters on the GPU, of whose calls one fails, and
all after it. With --backend auto the run ends well, with the hashes of an undisturbed one, and says in
one sentence from which frame on the CPU filters, and decodes where the GPU did; --vram lets it begin on
the GPU, and without that, "late", the GPU fails while it is made ready, too. With --backend cuda it
ends with 6 and a sentence that names the frame and the call. Calls after the last frame change nothing.
The last line is "N passed, N failed".
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

CHAINS = ["gray,gaussian=1.4,sobel,threshold=20:240", "gaussian=20,stats=/dev/null", "wavelet=1..4"]
FAILED = r"GPU 0 (failed in (?!error)\w+: |has no room for a ring )"
AUTO = FAILED + r".*: the CPU (decodes and )?filters from frame (\d+) on, with the same result"
ASKED = r"frame (\d+): " + FAILED
AT_ONCE = ["--vram", "8G"]
WAYS = {"auto": [*AT_ONCE, "--hwdec", "off"], "cuda": ["--backend", "cuda", "--hwdec", "off"],
        "decoder": AT_ONCE, "decoder-cuda": ["--backend", "cuda"], "late": [], "late-host": ["--hwdec", "off"]}
LATE = "the CPU filters: "
ABSENT = r"the GPU was asked for and cannot be used: "


def execute(program, clip, chain, way, fault):
    command = [*program, clip, "hash:-", "-f", chain, *WAYS[way]]
    done = subprocess.run(command, env={**os.environ, "CUDA_FAULT": fault}, text=True, errors="replace",
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if "GPU" in line and line.startswith("sluice: ")
            and "the GPU does not decode this" not in line # as its first call failed
            and "--vram limits nothing" not in line]
    return done.returncode, done.stdout, said, done.stderr


def judge(case, whole):
    """None, or what is wrong."""
    program, clip, chain, way, number = case
    code, hashes, said, all_said = execute(program, clip, chain, way, str(number))
    if code == 0 and hashes == whole and not said:
        return None  # behind the last frame, or before a GPU was chosen
    if "cuda" not in WAYS[way]:
        told = len(said) == 1 and (re.search(AUTO, said[0]) or (way.startswith("late") and LATE in said[0]))
        well = code == 0 and hashes == whole and told
    else:
        well = code == 6 and len(said) == 1 and (re.search(ASKED, said[0]) or re.search(ABSENT, said[0]))
    return None if well else f"{way} {chain} call {number}: exit {code}, {said}\n{all_said[-300:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clip")
    parser.add_argument("--sluice", default="build/sluice-faults")
    parser.add_argument("--runs", type=int, default=400, help="in all, spread over the calls")
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--ring", help="16 lets frames of NVDEC be copied")
    args = parser.parse_args()
    program = [args.sluice, *(["--ring", args.ring] if args.ring else [])]
    cases, wholes = [], {}
    for chain in CHAINS:
        code, wholes[chain], _, said = execute(program, args.clip, chain, "cuda", "count")
        if code:
            sys.exit(f"the undisturbed run ended with {code}: {said}")
        calls = int(re.search(r"cuda calls (\d+)", said)[1])
        step = max(calls * len(WAYS) * len(CHAINS) / args.runs, 1)
        for way in WAYS:
            cases += [(program, args.clip, chain, way, int(k * step)) for k in range(int(calls / step))]
        print(f"{chain}: {calls} calls, {int(calls / step)} of them fail in each way", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        wrong = [text for text in pool.map(lambda case: judge(case, wholes[case[2]]), cases) if text]
    print(*wrong[:40], sep="\n")
    print(f"{len(cases) - len(wrong)} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

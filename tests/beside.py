"""Two builds of sluice beside each other in one run: what a change costs or gains.

    beside.py OLD NEW [--backend cuda] [--rounds 5] [--threads N] [--size WxH ...]
              [--pixfmt NAME ...] [--json FILE] CHAIN...

Every round measures each row by both programs, one after the other and in turns first, so that what
else the machine does meets both. A row is the median of the rounds and of their ratios.
"""
import argparse
import itertools
import json
import statistics
import subprocess


def measure(program, settings, pixfmt, size, chain):
    """Gpx/s by group: resident (frames in device memory) and memory (from host memory to it)."""
    told = subprocess.run(
        [program, "bench", "--quick", "--backend", settings.backend, "--size", size, "--pixfmt",
         pixfmt, "-f", chain, "--json", "-"] +
        (["--threads", str(settings.threads)] if settings.threads else []),
        capture_output=True, text=True, check=True).stdout
    return {row["group"]: row["median"] for row in json.loads(told)["rows"]
            if row["name"].replace("'", "") == chain}


def compare(settings):
    for chain, pixfmt, size in itertools.product(settings.chain, settings.pixfmt, settings.size):
        found = []
        for k in range(settings.rounds):
            turn = [settings.old, settings.new][::-1 if k % 2 else 1]
            both = [measure(program, settings, pixfmt, size, chain) for program in turn]
            found.append(both[::-1] if k % 2 else both)
        for group in found[0][0]:
            old, new = ([pair[n][group] for pair in found] for n in (0, 1))
            ratios = [b / a for a, b in zip(old, new)]
            row = {"chain": chain, "pixfmt": pixfmt, "size": size, "group": group,
                   "old": statistics.median(old), "new": statistics.median(new),
                   "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
            print(f"{row['old']:9.4g} {row['new']:9.4g}   {row['ratio']:5.3f} ({row['low']:5.3f} .. "
                  f"{row['high']:5.3f})  {group:8} {size:9} {pixfmt:9} {chain}", flush=True)
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("chain", nargs="+")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--size", nargs="+", default=["1920x1080"])
    parser.add_argument("--pixfmt", nargs="+", default=["gray"])
    parser.add_argument("--json", help="the rows, for machines")
    settings = parser.parse_args()
    print("      old       new   ratio   Gpx/s")
    rows = list(compare(settings))
    if settings.json:
        with open(settings.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

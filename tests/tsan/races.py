"""Sort ThreadSanitizer's reports: races.py FOLDER

A race is ours where one of its two accesses is in a line of ours, or where both are in calls that threads of ours made
of FFmpeg, on what they share. What else there is are FFmpeg's own threads, with each other or with the one that feeds
them. Those that are ours are printed; the exit code is 1 if there are any.
"""

import collections
import pathlib
import re
import sys

FRAME = re.compile(r"^ *#\d+ (\S+) (\S+)", re.M)
HELPERS = re.compile(r"__interceptor_|mem(cpy|set|move|cmp)$|str\w+$|free$|malloc$|realloc$|posix_memalign$")


def is_foreign(place):
    return "libav" in place or "libsw" in place or place.startswith(("/usr", "<null>", "..")) or "libsanitizer" in place


def sides(report):
    """Of each access whether it is in a line of ours, whether a call of ours led to it, and where it is."""
    for stack in re.split(r"\n\s*\n", report)[:2]:
        frames = [(name, place) for name, place in FRAME.findall(stack) if not HELPERS.match(name)]
        yield (bool(frames) and not is_foreign(frames[0][1]), any(not is_foreign(place) for _, place in frames),
               frames[0][0] if frames else "unknown")


def main():
    ours, others = collections.defaultdict(list), collections.Counter()
    for path in sorted(pathlib.Path(sys.argv[1]).glob("race.*")):
        for report in path.read_text(errors="replace").split("WARNING: ThreadSanitizer: ")[1:]:
            report = report.split("SUMMARY:")[0]
            (first, *called), (second, *calls) = (*sides(report), (False, False, "unknown"))[:2]
            name = " and ".join(sorted((called[1], calls[1])))
            if first or second or (called[0] and calls[0]) or not report.startswith("data race"):
                ours[name].append(report)
            else:
                others[name] += 1
    for name, reports in ours.items():
        print(f"{len(reports)} of {name}:\n{reports[0][:3000]}\n")
    print(f"{sum(others.values())} races of FFmpeg with itself in {len(others)} pairs of functions; the most:",
          *(f"{count} {name}" for name, count in others.most_common(8)), sep="\n    ")
    print(f"{sum(map(len, ours.values()))} races of ours")
    return int(bool(ours))


if __name__ == "__main__":
    sys.exit(main())

"""No arrow points up: which room may call into which, by the symbols of their objects.

    rooms.py BUILD

tests/check.sh holds includes against the same order; this finds what is declared where it is used.
Exit 1, with a line for each, where an object wants a symbol of a room that it must not know.
"""
import pathlib
import subprocess
import sys

BELOW = {
    "base": [],
    "plan": ["base"],
    "stages/design": ["plan", "base"],
    "stages": ["stages/design", "plan", "base"],
    "stages/chain": ["stages", "stages/design", "plan", "base"],
    "filter": ["stages/chain", "stages", "stages/design", "plan", "base"],
    "cpu/reference": ["plan", "base"],
    "cpu/rows": ["plan", "base"],
    "cpu": ["cpu/reference", "cpu/rows", "plan", "base"],
    "kernels": ["plan", "base"],
    "kernels/stencil": ["kernels", "plan", "base"],
    "kernels/full_frame": ["kernels", "plan", "base"],
    "kernels/executor": ["kernels/stencil", "kernels/full_frame", "kernels", "plan", "base"],
    "kernels/tutorial": ["kernels/executor", "plan", "base"],
}
# Their constructors are declared in plan/backend.h.
BACKENDS = ["cpu", "kernels", "kernels/executor", "kernels/tutorial"]
BELOW["filter"] += BACKENDS
PIPELINE = ["proof", "engine", "engine/threads", "engine/filter", "part", "report",
            "output", "output/transport", "output/muxer", "output/http",
            "output/file", "input/seek", "input", "input/live", "input/faults", "input/devices", "input/io", "ffmpeg"]
for k, room in enumerate(PIPELINE):
    BELOW[f"pipeline/{room}"] = ([f"pipeline/{r}" for r in PIPELINE[k + 1:]] +
                                 ["stages/chain", "stages", "stages/design", "plan", "base"] + BACKENDS)
BELOW["pipeline"] = [f"pipeline/{room}" for room in PIPELINE] + ["stages/chain", "stages", "stages/design", "plan", "base"] + BACKENDS
BELOW["bench"] = BELOW["pipeline"] + ["pipeline"]
BELOW["control"] = []
BELOW["page/player"] = BELOW["page/preview"] = BELOW["bench"]
BELOW["page"] = ["page/player", "page/preview", "control"] + BELOW["bench"]
BELOW["app/service"] = ["control"]
BELOW["app/jobs"] = []
BELOW["app/farm"] = ["control"]
BELOW["app/sandbox"] = []
BELOW["app"] = ["app/farm", "app/jobs", "app/sandbox", "app/service", "bench", "page", "control"]
BELOW["app/generate"] = ["app", "control"]
INTERFACE = "sluice_"  # what sluice.h declares is for everyone, whichever room defines it


def is_stale(file):
    """Whether the object is of a source that has gone or moved, by what the compiler wrote beside it."""
    made = file.with_suffix(".d")
    return made.exists() and not pathlib.Path(made.read_text().split(":", 1)[1].split()[0]).exists()


def symbols(build):
    """{object: (defined, wanted)}"""
    found = {}
    for file in sorted(build.rglob("*.o")):
        if is_stale(file):
            continue
        listed = subprocess.run(["nm", "-g", "-P", file], capture_output=True, text=True,
                                check=True).stdout
        rows = [line.split()[:2] for line in listed.splitlines()]
        found[file.relative_to(build)] = ({name for name, kind in rows if kind not in "UuwWvV"},
                                          {name for name, kind in rows if kind == "U"})
    return found


def main():
    found = symbols(pathlib.Path(sys.argv[1]))
    if not found:
        print(f"{sys.argv[1]} holds no objects of this source tree; call from its root")
        return 1
    owner = {name: str(file.parent) for file, (defined, _) in found.items() for name in defined}
    bad = 0
    for file, (_, wanted) in found.items():
        room = str(file.parent)
        for name in sorted(wanted):
            theirs = owner.get(name, room)
            allowed = name.startswith(INTERFACE) or theirs in [room, "tests", *BELOW.get(room, [])]
            if room in BELOW and not allowed:
                print(f"{file} wants {name} of {theirs}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())

"""Cuts the power, on paper: power.py [--sluice FILE] [--runs N] [--cuts N] [--draws N] [--seed N] [KIND...]

Small jobs of the whole program are run once, and build/power.so (tests/power/power.c) records what they write, name,
rename and remove, and what of it they sync. From the record follow the states that a disk may be in after a power cut
at any moment, as ALICE has them (Pillai et al., All File Systems Are Not Created Equal, OSDI 2014), by rules stricter
than those of ext4: what a file had when it was last synced is there; of all behind that any may be missing, of writes
single blocks (zeros, where there was nothing before) or all but a beginning. An entry of a folder that was made,
renamed or removed since the folder was last synced may have been or not, each for itself. Syncing a file does not sync
its name.

In each state what stands under a final name is whole, old or new, and so is each folder of a part; a playlist lists
what is there; after exit code 0 all is there that was written; recordings of live sources lack a second at most (of an MP4 whose last
fragment is torn ffmpeg wants to be told by -fflags +ignidx);
`sluice audit` passes nothing but the old output or the new one; and `--resume` gives what an undisturbed run gives.
Exits with 1 if anything else is found.
"""

import argparse
import collections
import copy
import fnmatch
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from kills import frames_of

SECTOR, BLOCK, RATE = 512, 4096, 25
LOST_S, BUSY_S = 1.0, 0.3  # what may be lost of a recording, and how much later a busy machine does what it should
CLIP = ["-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={RATE}:duration=2", "-f", "lavfi", "-i",
        "sine=440:sample_rate=8000", "-shortest", "-c:v", "libx264", "-preset", "ultrafast", "-g", "5", "-c:a", "aac"]
HLS = ["--option", "hls_time=0.4", "--option", "g=5"]


# ---- the disk ----

class File:
    def __init__(self, data=b""):
        self.synced, self.pending = data, []
        self.final = None  # at the end of the record
        self.named = 0     # its size when it got a visible name

    def note(self, offset, data):
        """A write, or a size where data is None."""
        self.pending.append((offset, data))

    def sync(self):
        self.synced, self.pending = self.all(), []

    @staticmethod
    def put(image, offset, data):
        image.extend(bytes(max(0, offset - len(image))))
        image[offset:offset + len(data)] = data

    def build(self, pieces):
        image = bytearray(self.synced)
        for offset, data in pieces:
            if data is None:
                del image[offset:]
                data = b""
            self.put(image, offset, data)
        return bytes(image)

    def all(self):
        return self.build(self.pending) if self.pending else self.synced

    def zeros(self):
        """The sizes, and none of the bytes."""
        image = bytearray(self.synced)
        for offset, data in self.pending:
            if data is None:
                del image[offset:]
            image.extend(bytes(max(0, offset + len(data or b"") - len(image))))
        return bytes(image)

    def short(self, draw):
        """A beginning of what was written, to the end of a sector."""
        kept = draw.randrange(len(self.pending))
        offset, data = self.pending[kept]
        upto = draw.randrange(len(data or b"") + 1 + SECTOR) + offset & -SECTOR
        torn = [] if data is None else [(offset, data[:max(0, upto - offset)])]
        return self.build(self.pending[:kept] + torn)

    def holes(self, draw):
        """Some blocks, whatever their order."""
        share, pieces = draw.choice([0.2, 0.5, 0.9]), []
        for offset, data in self.pending:
            if data is None:
                pieces.append((offset, None))
                continue
            end = offset + len(data)
            pieces.append((end, b""))
            while offset < end:
                upto = min(end, (offset // BLOCK + 1) * BLOCK)
                if draw.random() < share:
                    pieces.append((offset, data[len(data) - (end - offset):len(data) - (end - upto)]))
                offset = upto
        return self.build(pieces)

    def drawn(self, draw):
        kind = draw.randrange(5)
        return [lambda: self.synced, self.all, self.zeros, lambda: self.short(draw), lambda: self.holes(draw)][kind]()


class Folder:
    def __init__(self):
        self.synced, self.pending = {}, []  # lists of (name, node or None), each done at once
        self.complete = None                # its names when it got a visible one

    def note(self, *changes):
        self.pending.append(changes)

    def entries(self, keep=lambda: True):
        now = dict(self.synced)
        for changes in self.pending:
            if keep():
                for name, node in changes:
                    now.pop(name, None)
                    if node:
                        now[name] = node
        return now

    def sync(self):
        self.synced, self.pending = self.entries(), []


class Event(NamedTuple):
    ns: int
    words: list
    data: bytes


def read_events(log):
    data, at, events = log.read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        ns, size, *words = data[at:end].decode().split(" ")
        events.append(Event(int(ns), words, data[end + 1:end + 1 + int(size)]))
        at = end + 1 + int(size)
    return events


class Disk:
    """A folder as it was before a run, to which the events of the run are applied."""

    def __init__(self, folder):
        self.nodes, self.order = {}, []  # by inode, which is given anew; as they were made
        self.finals = []
        self.root = self.read(Path(folder))

    def read(self, folder):
        made = self.add(folder.stat().st_ino, Folder())
        for entry in sorted(folder.iterdir()):
            made.synced[entry.name] = self.read(entry) if entry.is_dir() else \
                self.add(entry.stat().st_ino, File(entry.read_bytes()))
        made.complete = set(made.synced)
        return made

    def add(self, inode, node):
        self.nodes[inode] = node
        self.order.append(node)
        return node

    def foresee(self, events):
        """What each file is at the end of the record goes to those that are there now and to come; the end's state."""
        ahead = copy.deepcopy(self)
        for event in events:
            ahead.apply(event)
        self.finals = [node.all() if isinstance(node, File) else None for node in ahead.order]
        for node, final in zip(self.order, self.finals):
            node.final = final
        return ahead.state(lambda: True, File.all)

    def apply(self, event):
        what, *words = event.words
        if what == "odd":
            raise ValueError(f"a call that is not recorded: {' '.join(words)}")
        if what == "make":
            node = self.add(int(words[0]), Folder() if words[1] == "folder" else File())
            node.final = self.finals[len(self.order) - 1] if self.finals else None
            return
        node = [self.nodes.get(int(word)) for word in words]
        names = event.data.decode(errors="surrogateescape").split("\0") if what in ("name", "move", "swap", "drop") else []
        if what == "sync":
            for one in self.nodes.values() if words[0] == "0" else filter(None, node):
                one.sync()
        elif node[0] is None:
            pass  # elsewhere: a pipe's folder, /dev
        elif what == "data":
            node[0].note(int(words[1]), event.data)
        elif what == "size":
            node[0].note(int(words[1]), None)
        elif what == "name":
            node[0].note((names[0], node[1]))
            if isinstance(node[1], File) and not names[0].startswith("."):
                node[1].named = len(node[1].all())
        elif what == "drop":
            node[0].note((names[0], None))
        elif what in ("move", "swap"):
            self.move(names, *node)

    @staticmethod
    def move(names, old, new, node, other=None):
        if isinstance(node, Folder) and not names[1].startswith("."):
            node.complete = set(node.entries())
        if old is new:
            old.note((names[0], other), (names[1], node))
        else:
            old.note((names[0], other))
            new.note((names[1], node))

    def state(self, keep, content):
        """{path: (node, bytes)}, of folders (node, None)."""
        found = {}

        def walk(folder, path):
            for name, node in folder.entries(keep).items():
                if isinstance(node, Folder):
                    found[path + name] = (node, None)
                    walk(node, f"{path}{name}/")
                else:
                    found[path + name] = (node, content(node) if node.pending else node.synced)
        walk(self.root, "")
        return found

    def states(self, draw, draws):
        """The corners, and some that are drawn."""
        def always(): return True
        def never(): return False
        yield self.state(never, lambda file: file.synced)
        yield self.state(always, lambda file: file.synced)
        yield self.state(always, File.zeros)
        yield self.state(never, File.all)
        yield self.state(always, File.all)
        for _ in range(draws):
            share = draw.choice([0.2, 0.5, 0.8])
            yield self.state(lambda share=share: draw.random() < share, lambda file: file.drawn(draw))


# ---- what is run ----

class Film(NamedTuple):
    words: list
    old: list = []      # command lines that make what stands there before
    needs: list = []    # ... what it reads
    may_go: tuple = ()  # old files that may be gone for a while
    resume: list = []   # what goes on after the cut


class Recording(NamedTuple):
    words: list
    read: str           # what is read


def shards(*more):
    return [["clip.mkv", "o.mp4", "--shard", f"{k}/2", *more] for k in (1, 2)]


JOBS = ["clip.mkv", "o.mp4", "--jobs", "2"]
REPORTS = ["clip.mkv", "null:", "-f", "tee=t.mkv,stats=o.json,gray,match=template.png:report=m.json", "--json",
           "j.json", "--trace", "t.json", "--journal", "c.jsonl"]
OTHER = ["-f", "invert", "-y"]
FILMS = {
    "mp4": Film(["clip.mkv", "o.mp4"], [["clip.mkv", "o.mp4", *OTHER]]),
    "mkv": Film(["clip.mkv", "o.mkv"], [["clip.mkv", "o.mkv", *OTHER]]),
    "hash": Film(["clip.mkv", "hash:o.txt"], [["clip.mkv", "hash:o.txt", *OTHER]]),
    "images": Film(["clip.mkv", "o%02d.png", "--frames", "4"], [["clip.mkv", "o%02d.png", "--frames", "4", *OTHER]]),
    "hls": Film(["clip.mkv", "made/o.m3u8", *HLS], [["clip.mkv", "made/o.m3u8", *HLS, *OTHER]],
                may_go=(".m3u8",)),
    "segments": Film(["clip.mkv", "%Y/%m/o.mkv", "--segment", "0.5", "--option", "g=5"]),
    "reports": Film(REPORTS, [REPORTS]),
    "wavelet": Film(["clip.mkv", "null:", "-f", "gray,wavelet=1:2:out=w"], [["clip.mkv", "null:", "-f", "wavelet=1:2:out=w"]]),
    "shard": Film(shards()[0], shards(*OTHER)),
    "join": Film(["join", "o.mp4"], [*shards(*OTHER), ["join", "o.mp4"]], shards("-y"), (".manifest",)),
    "jobs": Film(JOBS, [[*JOBS, *OTHER]], may_go=(".manifest",), resume=[*JOBS, "--resume", "-y"]),
    "resume": Film([*JOBS, "--resume"], needs=shards()[1:], resume=[*JOBS, "--resume", "-y"]),
}
RECORDINGS = {
    "live mkv": Recording(["o.mkv"], "o.mkv"),
    "live mp4": Recording(["o.mp4"], "o.mp4"),
    "live ts": Recording(["o.ts"], "o.ts"),
    "live hls": Recording(["made/o.m3u8", *HLS], "made/o*.ts"),
    "live segments": Recording(["%Y/o-%S.mkv", "--segment", "1", "--option", "g=5"], "*/o*.mkv"),
    "live large": Recording(["o.mp4", "-c:v", "mpeg4", "--option", "b=9M"], "o.mp4"),
}


def execute(words, **more):
    return subprocess.run(list(map(str, words)), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)


def ffmpeg(*words):
    done = execute(["ffmpeg", "-v", "error", "-nostdin", "-y", *words])
    if done.returncode:
        sys.exit(done.stdout.decode())


def frame_hashes(file):
    return execute(["ffmpeg", "-v", "error", "-nostdin", "-i", file, "-map", "0:v", "-f", "framemd5", "-"]).stdout


def is_hidden(path):
    return any(name.startswith(".") for name in path.split("/"))


def whole_fault(state):
    """What is under a visible name, and not as it was when it was finished."""
    for path, (node, data) in state.items():
        if is_hidden(path):
            continue
        if isinstance(node, File) and path.endswith(".jsonl"):
            if data[:node.named] != node.final[:node.named]:
                return f"{path} has not what it began with"
        elif isinstance(node, File):
            if data != node.final:
                return f"{path} is not whole: {len(data)} of {len(node.final)} bytes"
            if path.endswith(".m3u8"):
                for line in data.decode().split():
                    if not line.startswith("#") and os.path.join(os.path.dirname(path), line) not in state:
                        return f"{path} lists {line}, which is not there"
        elif ".part-" in path:
            missing = [name for name in node.complete if f"{path}/{name}" not in state]
            if missing:
                return f"{path} lacks {missing[0]}"
    return None


def gone_fault(state, before, film):
    for path, (node, data) in before.items():
        may = path.endswith(film.may_go) or (".part-" in path and film.words[0] != "join" and film.resume)
        if path not in state and not is_hidden(path) and not may:
            return f"{path} was there, and is gone"
    return None


def mixed_fault(state, before, last):
    """A playlist that is replaced has the segments of one run."""
    for path in (path for path in state if path.endswith(".m3u8") and not is_hidden(path)):
        listed = [path, *(name for name in state if name.endswith(".ts") and name in last)]
        if not any(all(files.get(name, (None, None))[1] == state[name][1] for name in listed) for files in (before, last)):
            return f"{path} lists segments of two runs"
    return None


def end_fault(state, last):
    """After exit code 0."""
    for path, (node, data) in last.items():
        if not is_hidden(path) and (path not in state or state[path][1] != data):
            return f"exit code 0 was told, and {path} may be {'another' if path in state else 'absent'}"
    return None


def manifest_fault(state, last, before):
    """A manifest stands beside its own output."""
    for path, (node, data) in state.items():
        if path.endswith(".manifest") and "/" not in path:
            output = path[:-len(".manifest")]
            for whole in (last, before):
                if whole.get(path, (None, None))[1] == data and state.get(output) and \
                        whole[output][1] == state[output][1]:
                    break
            else:
                return f"{path} stands beside another output"
    return None


def write_state(state, folder):
    folder.mkdir()
    for path, (node, data) in state.items():
        if data is None:
            (folder / path).mkdir()
    for path, (node, data) in state.items():
        if data is not None:
            (folder / path).write_bytes(data)


def key_of(state, visible):
    """Equal states have equal ones."""
    return hash(frozenset((path, data) for path, (node, data) in state.items() if not visible or not is_hidden(path)))


class Cuts:
    def __init__(self, sluice, place, cuts, draws, seed):
        self.sluice, self.place, self.seed = os.path.abspath(sluice), Path(place), seed
        self.cuts, self.draws, self.seconds = cuts, draws, "4"
        self.states, self.tried, self.commands = collections.Counter(), 0, collections.Counter()
        self.recorder = Path(self.sluice).with_name("power.so")
        if not self.recorder.exists():
            sys.exit(f"{self.recorder} is missing: make {self.recorder}")
        self.clip, self.template = self.place / "clip.mkv", self.place / "template.png"
        ffmpeg(*CLIP, self.clip)
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=16x16", "-frames:v", "1", self.template)
        self.decoded = {}

    def run(self, folder, words, log=None, **more):
        env = {**os.environ, **({"LD_PRELOAD": str(self.recorder), "POWER_LOG": str(log)} if log else {})}
        return execute([self.sluice, *words, "-q"], cwd=folder, env=env, **more)

    def events_of(self, name, folder, words):
        """(the disk before, what was done to it, exit code)."""
        disk, log = Disk(folder), self.place / f"{name}.log"
        log.unlink(missing_ok=True)
        done = self.run(folder, words, log)
        return disk, read_events(log), done

    def at_cuts(self, name, draw, disk, events):
        """(events until the cut, a state) for the cuts that are drawn, each behind its event, and the end."""
        named = [k for k, event in enumerate(events) if event.words[0] not in ("data", "size")]
        near = sorted({m for k in named for m in (k - 1, k, k + 1) if 0 <= m < len(events)})
        chosen = set(draw.sample(near, min(self.cuts, len(near))))
        chosen |= set(draw.sample(range(len(events)), min(self.cuts // 4, len(events)))) | {len(events) - 1}
        for k, event in enumerate(events):
            disk.apply(event)
            if k in chosen:
                for state in disk.states(draw, self.draws):
                    self.tried += 1
                    yield k, state

    # ---- films ----

    def film(self, name, old, draw):
        film, folder = FILMS[name], self.place / f"{name}-{old}".replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        os.link(self.clip, folder / "clip.mkv")
        os.link(self.template, folder / "template.png")
        for words in [*(film.old if old else []), *film.needs]:
            done = self.run(folder, words)
            if done.returncode:
                sys.exit(f"{' '.join(words)}: {done.stdout.decode()}")
        disk, events, done = self.events_of(name, folder, [*film.words, *["-y"] * old])
        if done.returncode:
            sys.exit(f"{name} fails undisturbed: {done.stdout.decode()}")
        before = disk.state(lambda: True, File.all)
        last = disk.foresee(events)
        undisturbed = frame_hashes(folder / "o.mp4") if film.resume else None
        seen, resumable = set(), {}
        for k, state in self.at_cuts(name, draw, disk, events):
            key = key_of(state, visible=True), k == len(events) - 1
            if key in seen:
                continue
            seen.add(key)
            self.states[name] += 1
            fault = whole_fault(state) or gone_fault(state, before if old else {}, film) or \
                mixed_fault(state, before, last) or (end_fault(state, last) if key[1] else None) or \
                self.audit_fault(name, state, last, before)
            if fault:
                yield f"{name}{' -y' * old}, {k + 1} of {len(events)} events: {fault}"
            if film.resume:
                resumable[key_of(state, visible=False)] = k, state
        for key in draw.sample(sorted(resumable), min(len(resumable), self.cuts // 8 + 1)):
            k, state = resumable[key]
            fault = self.resume_fault(film, state, undisturbed)
            if fault:
                yield f"{name}{' -y' * old}, {k + 1} of {len(events)} events: {fault}"

    def audit_fault(self, name, state, last, before):
        fault = manifest_fault(state, last, before) if name in ("join", "jobs") else None
        if not fault:
            return None
        folder = self.place / "audited"
        write_state(state, folder)
        audit = self.run(folder, ["audit", "o.mp4", "--samples", "10"])
        self.commands["audit"] += 1
        shutil.rmtree(folder)
        return None if audit.returncode else f"{fault}, and sluice audit passes it"

    def resume_fault(self, film, state, undisturbed):
        folder = self.place / "resumed"
        write_state(state, folder)
        done = self.run(folder, film.resume)
        self.commands["resume"] += 1
        left = [file.name for file in folder.iterdir() if ".part-" in file.name and not file.name.startswith(".")]
        fault = None
        if done.returncode:
            fault = f"--resume ends with {done.returncode}: {done.stdout.decode().strip()}"
        elif left:
            fault = f"--resume leaves {left[0]}"
        elif frame_hashes(folder / "o.mp4") != undisturbed:
            fault = "--resume gives other frames"
        else:
            audit = self.run(folder, ["audit", "o.mp4", "--samples", "5"])
            if audit.returncode:
                fault = f"--resume gives what sluice audit refuses: {audit.stdout.decode().strip()}"
        shutil.rmtree(folder)
        return fault

    # ---- recordings ----

    def count(self, state, pattern):
        """Frames that can be read, of all files."""
        return sum(self.count_file(path, data) for path, (_, data) in state.items()
                   if data and not is_hidden(path) and fnmatch.fnmatch(path, pattern))

    def count_file(self, path, data):
        if data not in self.decoded:
            file = self.place / f"read{os.path.splitext(path)[1]}"
            file.write_bytes(data)
            self.decoded[data] = frames_of(file) or frames_of(file, "-fflags", "+ignidx") or 0
        return self.decoded[data]

    def recording(self, name, draw):
        recording, folder = RECORDINGS[name], self.place / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        size = "640x480" if name == "live large" else "64x48"
        words = ["--live", "-f", "null", "--duration", self.seconds, f"lavfi:testsrc2=size={size}:rate={RATE}", *recording.words]
        disk, events, done = self.events_of(name, folder, words)
        if done.returncode:
            sys.exit(f"{name} fails undisturbed: {done.stdout.decode()}")
        last, seen = disk.foresee(events), set()
        named = min(event.ns for event in events if event.words[0] == "name" and event.data.startswith(b"o"))
        for k, state in self.at_cuts(name, draw, disk, events):
            end = k == len(events) - 1
            key = key_of(state, visible=True), k
            if key in seen:
                continue
            seen.add(key)
            self.states[name] += 1
            until = events[k if end else k + 1].ns
            fault = (end_fault(state, last) if end else None) or self.recording_fault(name, state, (until - named) / 1e9)
            if fault:
                yield f"{name}, {k + 1} of {len(events)} events: {fault}"

    def recording_fault(self, name, state, lasted):
        for path, (node, data) in state.items():
            if data is None or is_hidden(path):
                continue
            if name == "live hls":
                fault = whole_fault(state)
                if fault:
                    return fault
            elif data[:min(node.named, 40)] != node.final[:min(node.named, 40)]:
                return f"{path} has not what it began with: {len(data)} bytes, named with {node.named}"
        readable = self.count(state, RECORDINGS[name].read) / RATE
        if readable < lasted - LOST_S - BUSY_S:
            return f"{readable:.2f} s of {lasted:.2f} s can be read"
        return None

    def campaign(self, kinds):
        """Sentences of what is found."""
        for name in kinds:
            draw = random.Random(f"{self.seed} {name}")
            if name in RECORDINGS:
                yield from self.recording(name, draw)
                continue
            yield from self.film(name, False, draw)
            if FILMS[name].old:
                yield from self.film(name, True, draw)


def run(sluice, kinds, cuts, draws, seed):
    """(the campaign, for its figures, sentences of what was found)."""
    with tempfile.TemporaryDirectory() as place:
        campaign = Cuts(sluice, place, cuts, draws, seed)
        return campaign, list(campaign.campaign(kinds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--cuts", type=int, default=60, help="moments a run")
    parser.add_argument("--draws", type=int, default=20, help="states a moment, beside five corners")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join([*FILMS, *RECORDINGS]))
    arguments = parser.parse_args()
    campaign, found = run(arguments.sluice, arguments.kinds or [*FILMS, *RECORDINGS], arguments.cuts, arguments.draws,
                          arguments.seed)
    for sentence, times in collections.Counter(sentence.split(": ", 1)[1] for sentence in found).most_common():
        first = next(one for one in found if one.endswith(sentence))
        print(f"{times} states, first of {first}")
    print(f"{campaign.tried} states after power cuts, {sum(campaign.states.values())} of them different: "
          f"{', '.join(f'{name} {n}' for name, n in sorted(campaign.states.items()))}; "
          f"{campaign.commands['resume']} resumed, {campaign.commands['audit']} audited; {len(found)} found")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

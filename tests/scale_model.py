"""The model of docs/scale.md: from the costs that tests/scale.py measures to the time of many machines."""
import math
from types import SimpleNamespace

import numpy as np
from scipy.optimize import nnls


def fit(table, values):
    """Least squares of relative errors, by terms none of which is negative."""
    return nnls(np.array(table, float) / np.array(values)[:, None], np.ones(len(values)))[0]


def costs_of(told, clip="1080p"):
    """What was measured, as so much of its own and so much for each frame, packet, byte."""
    def rows(what, **more):
        return [r for r in told["rows"] if {"what": what, **more}.items() <= r.items()]

    def of(row):
        return told["clips"][row["clip"]]

    def part(key, output="x264"):
        found = rows("part", clip=clip, output=output)
        return fit([(1, r["frames"]) for r in found], [r[key][0] for r in found])

    start_up = rows("start-up")[0]["wall"][0]

    def behind_start(what, terms):
        found = rows(what)
        return fit([terms(r) for r in found], [r["wall"][0] - start_up for r in found])

    def moved(what):
        row = rows(what, clip=clip)[0]
        return (row["read"][0] + row["written"][0]) / of(row)["frames"]

    audit = behind_start("audit", lambda r: (of(r)["frames"], of(r)["output"], r["samples"] *
                                             (r["clip"] == clip), r["samples"] * (r["clip"] != clip)))
    frame = {key: told["clips"][clip][key] / told["clips"][clip]["frames"]
             for key in ("source", "output", "manifest")}
    return SimpleNamespace(
        start_up=start_up, wall=part("wall"), cpu=part("cpu"), null=part("wall", "null"),
        moved=part("read") + part("written"), **frame, audit=audit[:2], sample=audit[2],
        join=behind_start("join", lambda r: (r["parts"], of(r)["frames"], of(r)["output"])),
        join_moved=moved("join"), audit_moved=moved("audit"))


def changed(p, **more):
    return SimpleNamespace(**{**vars(p), **more})


# ---- seconds ----

def part_bytes(c, p, frames):
    return float(c.moved @ (1, frames)) * p.density


def part_seconds(c, p, frames, busy):
    """Of a part, where so many slots of its node work."""
    if p.fps:
        seconds = c.wall[0] + frames * max(busy / p.fps, 1 / p.slot_fps)
    else:
        seconds = float(max(c.wall @ (1, frames), c.cpu @ (1, frames) * busy / p.cores))
    seconds, rate = p.start + seconds, p.preemptions / 3600
    return math.expm1(min(rate * seconds, 500)) * (1 / rate + p.requeue) if rate else seconds


def join_seconds(c, p, frames, parts):
    seconds = c.start_up + float(c.join @ (parts, frames, frames * c.output * p.density))
    return p.start + max(seconds, frames * c.join_moved * p.density / p.storage)


def audit_seconds(c, p, frames):
    seconds = c.start_up + float(c.audit @ (frames, frames * c.output * p.density))
    seconds += p.samples * c.sample
    return p.start + max(seconds, frames * c.audit_moved * p.density / p.storage)


def predict(c, p, frames, files, nodes, parts):
    """From submitting files of so many frames, each in so many parts, to the end of the last audit."""
    slots, tasks, groups = nodes * p.slots, files * parts, max(frames / p.rate / p.key_s, 1)
    busy = min(p.slots, math.ceil(tasks / nodes))
    mean = part_seconds(c, p, frames / parts, busy)
    longest = part_seconds(c, p, math.ceil(groups / parts) * frames / groups, busy)
    join, audit = join_seconds(c, p, frames, parts), audit_seconds(c, p, frames) if p.samples else 0
    copied = frames * p.density * (c.join_moved + (c.audit_moved if p.samples else 0))
    moved = tasks * part_bytes(c, p, frames / parts) + (files - 1) * copied
    terms = {"work": math.ceil(tasks / slots) * mean + longest - mean
             + (files - 1) * (join + audit) / slots,
             "storage": moved / p.storage, "starting tasks": files * (parts + 2) / p.per_second,
             "join and audit": join + audit, "waiting": p.delay * (3 if p.samples else 2)}
    total = max(terms["work"], terms["storage"], terms["starting tasks"] + longest) \
        + terms["join and audit"] + terms["waiting"]
    return SimpleNamespace(total=total, parts=parts, limit=max(terms, key=terms.get), join=join,
                           audit=audit, work=tasks * mean + files * (join + audit))


def best(c, p, hours, nodes):
    """With the number of parts a file that takes the least time."""
    files = max(1, round(hours / p.file_hours))
    frames = hours * 3600 * p.rate / files
    most = max(1, int(min(p.max_parts, frames / p.rate / p.key_s)))
    return min((predict(c, p, frames, files, nodes, parts) for parts in range(1, most + 1)),
               key=lambda found: found.total)


# ---- tables, in Markdown ----

def duration(seconds):
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def table(heads, rows):
    lines = ["| " + " | ".join(row) + " |\n" for row in (heads, *rows)]
    return "".join([lines[0], "|" + "---|" * len(heads) + "\n", *lines[1:]])


COSTS = (("a process, start and end", "ms", lambda c: c.start_up * 1e3),
         ("a part to `null:`, itself", "ms", lambda c: c.null[0] * 1e3),
         ("a part to `null:`, a frame", "ms", lambda c: c.null[1] * 1e3),
         ("*A*: a part by x264, itself", "ms", lambda c: c.wall[0] * 1e3),
         ("*f*: a part by x264, a frame", "ms", lambda c: c.wall[1] * 1e3),
         ("*A'*: processor, a part", "ms", lambda c: c.cpu[0] * 1e3),
         ("*f'*: processor, a frame", "ms", lambda c: c.cpu[1] * 1e3),
         ("bytes moved by a part, itself", "MB", lambda c: c.moved[0] / 1e6),
         ("bytes moved by a part, a frame", "kB", lambda c: c.moved[1] / 1e3),
         ("bytes of the source, a frame", "kB", lambda c: c.source / 1e3),
         ("bytes of the output, a frame", "kB", lambda c: c.output / 1e3),
         ("bytes of the manifest, a frame", "kB", lambda c: c.manifest / 1e3),
         ("join, a part", "ms", lambda c: c.join[0] * 1e3),
         ("join, a packet", "ms", lambda c: c.join[1] * 1e3),
         ("join, a MB of output", "ms", lambda c: c.join[2] * 1e9),
         ("bytes moved by the join, a frame", "kB", lambda c: c.join_moved / 1e3),
         ("audit, a packet", "ms", lambda c: c.audit[0] * 1e3),
         ("audit, a MB of output", "ms", lambda c: c.audit[1] * 1e9),
         ("audit, a sample", "ms", lambda c: c.sample * 1e3),
         ("bytes moved by the audit, a frame", "kB", lambda c: c.audit_moved / 1e3))


def cost_table(told):
    costs = [costs_of(told, clip) for clip in told["clips"]]
    return table(["cost", "in", *told["clips"]],
                 [[name, unit, *(f"{of(c):.3g}" for c in costs)] for name, unit, of in COSTS])


def name_of(storage):
    return f"{storage / 1e9:g} GB/s" if math.isfinite(storage) else "no limit"


def time_table(c, p):
    def cell(hours, nodes, storage):
        found = best(c, changed(p, storage=storage), hours, nodes)
        return f"{duration(found.total)}, {found.parts}, {found.limit}"
    return table(["hours", "nodes", *map(name_of, p.storages)],
                 [[f"{hours:,}", f"{nodes:,}", *(cell(hours, nodes, s) for s in p.storages)]
                  for hours in p.hours for nodes in p.nodes])


def limit_table(c, p):
    """Of files of several lengths: what no number of nodes shortens, and whom the storage feeds."""
    frames = 60 * p.rate
    each = part_bytes(c, p, frames) / frames + p.density * (c.join_moved + c.audit_moved)
    node = each * p.slots * frames / part_seconds(c, p, frames, p.slots)
    yield table(["shared storage", "is enough for nodes"],
                [[name_of(s), f"{s / node:.1f}"] for s in (1e8, 1e9, 1e10, 1e11)])
    free, rows = changed(p, storage=math.inf), []
    for hours in (0.1, 1, 10):
        one, many = (best(c, changed(free, file_hours=hours), hours, n) for n in (1, 1000))
        rows.append(map(duration, (hours * 3600, many.join, many.audit, one.total, many.total)))
    yield table(["one file of", "join", "audit", "on one node", "on 1,000"], rows)


def check_table(told):
    """Predicted and measured; "beside" it is how much more one of the costs took in those rounds."""
    then = next(r for r in told["rows"] if r["what"] == "part")
    again, rows = told.get("again", {key: then[key] for key in ("wall", "cpu")}), []
    busier = {key: again[key][0] / then[key][0] for key in ("wall", "cpu")}
    for row in [{"clip": "1080p, a third again", "parts": 1, "workers": 1, "predicted": then["wall"][0],
                 "predicted_cpu": then["cpu"][0], **again}, *told.get("check", [])]:
        wall, cpu = (row.get(key, [math.nan] * 3) for key in ("wall", "cpu"))
        error = (row["predicted"] / wall[0], row["predicted"] / wall[0] * busier["wall"],
                 row["predicted_cpu"] / cpu[0], row["predicted_cpu"] / cpu[0] * busier["cpu"])
        rows.append([row["clip"], str(row["parts"]), str(row["workers"]), f"{row['predicted']:.2f} s",
                     f"{wall[0]:.2f} s, {wall[1]:.2f} to {wall[2]:.2f}",
                     *(f"{100 * (ratio - 1):+.0f} %" for ratio in error)])
    return table(["clip", "parts", "at once", "predicted", "measured", "error", "beside the part",
                  "of processor time", "beside the part"], rows)


def tables(told, p):
    costs = costs_of(told, p.clip)
    return [cost_table(told), time_table(costs, p), *limit_table(costs, p), check_table(told)]


# ---- the figure ----

LEFT, TOP, WIDE, HIGH, LOWEST, DECADES = 70, 46, 560, 340, 1, 6  # from 10 s to 10^7 s
STEPS = (("10 s", 10), ("1 min", 60), ("10 min", 600), ("1 h", 3600), ("10 h", 36000),
         ("1 day", 86400), ("10 days", 864000), ("100 days", 8640000))


def place(nodes, seconds):
    return (LEFT + WIDE * math.log10(nodes) / 3,
            TOP + HIGH * (1 - (math.log10(seconds) - LOWEST) / DECADES))


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{words}</text>'


def line(points, more):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" points="{path}" {more}/>'


def draw(told, p):
    """Time over nodes, both by powers of ten, as SVG."""
    c, middle = costs_of(told, p.clip), 'text-anchor="middle"'
    about = ", ".join(f"{name}: {name_of(s)}" for name, s in
                      zip(("solid", "dashed", "dotted"), p.storages))
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 110} '
           f'{TOP + HIGH + 44}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 18, f"Predicted time; nodes of {p.cores} cores, files of {p.file_hours:g} h",
                'font-weight="bold"'),
           text(LEFT, 35, f"shared storage, {about}"),
           text(LEFT + WIDE / 2, TOP + HIGH + 36, "nodes", middle)]
    for nodes in (1, 10, 100, 1000):
        svg += [line([place(nodes, 10), place(nodes, 10 ** 7)], 'stroke="#ddd"'),
                text(place(nodes, 10)[0], TOP + HIGH + 16, f"{nodes:,}", middle)]
    for name, seconds in STEPS:
        svg += [line([place(1, seconds), place(1000, seconds)], 'stroke="#ddd"'),
                text(LEFT - 6, place(1, seconds)[1] + 4, name, 'text-anchor="end"')]
    counts = sorted({round(10 ** (k / 8)) for k in range(25)})
    for hours, color in zip(p.hours, ("#1b7837", "#2166ac", "#b2182b", "#762a83")):
        curves = [[place(n, best(c, changed(p, storage=storage), hours, n).total) for n in counts]
                  for storage in p.storages]
        svg += [line(curve, f'stroke="{color}" stroke-width="1.5" stroke-dasharray="{dashes}"')
                for curve, dashes in zip(curves, ("none", "6 4", "1 4"))]
        x, y = curves[0][-1]
        svg.append(text(x + 8, y + 4, f"{hours:,} h", f'fill="{color}"'))
    return "\n".join([*svg, "</svg>\n"])

"""Draw a stretch of a timeline that `sluice --trace` wrote, as SVG: draw-timeline.py TRACE.json
OUT.svg FROM_MS LENGTH_MS. One line a track; every frame has a colour, the same on all tracks."""
import collections
import html
import json
import sys

LEFT, WIDTH, LINE, TOP = 130, 770, 16, 26


def main():
    trace, out = sys.argv[1:3]
    begin, length = (float(text) * 1000 for text in sys.argv[3:5])
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["ts"] < begin + length and e["ts"] + e["dur"] > begin:
            spans[e["tid"]].append(e)
    tracks = [tid for tid in sorted(names) if spans[tid]]
    height = TOP + len(tracks) * LINE + 24
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" '
           f'font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>']
    for row, tid in enumerate(tracks):
        y = TOP + row * LINE
        svg.append(f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end">'
                   f'{html.escape(names[tid])}</text>')
        for e in spans[tid]:
            left = max(e["ts"], begin) - begin
            right = min(e["ts"] + e["dur"], begin + length) - begin
            x, w = LEFT + left / length * WIDTH, max((right - left) / length * WIDTH, 0.4)
            frame = e.get("args", {}).get("frame")
            fill = "#ccc" if frame is None else f"hsl({frame * 47 % 360},65%,60%)"
            svg.append(f'<rect x="{x:.1f}" y="{y + 1}" width="{w:.1f}" height="{LINE - 3}" '
                       f'fill="{fill}"/>')
            if frame is not None and w > 22:
                svg.append(f'<text x="{x + w / 2:.1f}" y="{y + 11}" text-anchor="middle" '
                           f'font-size="9">{frame}</text>')
    for tick in range(5):
        x = LEFT + tick / 4 * WIDTH
        svg.append(f'<line x1="{x}" x2="{x}" y1="{TOP - 4}" y2="{height - 20}" stroke="#888" '
                   f'stroke-width="0.4"/><text x="{x}" y="{TOP - 10}" text-anchor="middle">'
                   f'{tick * length / 4000:.3g} ms</text>')
    svg.append("</svg>")
    with open(out, "w") as file:
        file.write("\n".join(svg) + "\n")


if __name__ == "__main__":
    main()

"""Pictures in a GPU's memory through GStreamer's element: gstreamer_gpu.py FOLDER [NAME...]

FOLDER holds libgstsluice.so of a build with CUDA; GStreamer is that of the machine, with nvcodec of gst-plugins-bad.
A line a check, "N passed, N failed, N skipped" as the last one; NAMEs are words that a check's name must have.
Bytes equal those of the same pipeline in system memory on the CPU, and what is on the GPU stays there.
"""

import ctypes as c
import os
import re
import shlex
import subprocess
import sys
import tempfile

FRAMES = 5
CUDA = "video/x-raw(memory:CUDAMemory)"
FORMATS = ["NV12", "I420", "BGRA", "P010_10LE", "I420_10LE", "Y444", "RGB", "YUY2"]
SIZES = [(328, 184), (1920, 1080)]
CHAINS = ["gray,gaussian=2,sobel", "gaussian=1.5,brightness=9"]
DETOUR = "they go by way of host memory"
COUNT = {"passed": 0, "failed": 0, "skipped": 0}
NAMES = sys.argv[2:]


def launch(pipeline, debug="2", limit=40):
    """What gst-launch wrote to {out}; its exit status and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        line = pipeline.replace("{out}", f"filesink location={folder}/out")
        env = {**os.environ, "GST_DEBUG": debug, "GST_DEBUG_NO_COLOR": "1"}
        done = subprocess.run(["timeout", "-s", "KILL", str(limit), "gst-launch-1.0", "-q", *line.split()], env=env,
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, errors="replace")
        try:
            with open(f"{folder}/out", "rb") as file:
                written = file.read()
        except FileNotFoundError:
            written = b""
    return written, done.returncode, done.stdout + done.stderr


def report(name, failures, pipeline="", said=""):
    COUNT["failed" if failures else "passed"] += 1
    print("FAILED" if failures else "passed", name, flush=True)
    if failures:
        print("    " + "; ".join(failures))
        print(f"    {pipeline}")
        for line in said.splitlines()[-25:]:
            print("    | " + line[:300])


def difference(made, want):
    if len(made) != len(want):
        return f"{len(made)} bytes, wanted {len(want)}"
    first = next(k for k, (a, b) in enumerate(zip(made, want)) if a != b)
    wrong = sum(a != b for a, b in zip(made, want))
    frame = len(want) // FRAMES
    return f"{wrong} of {len(want)} bytes differ, the first is {first % frame} of frame {first // frame}: " \
           f"{made[first]}, wanted {want[first]}"


def equal(name, pipeline, reference, way):
    """Both write the same, and each frame goes that way through `s`, without a warning of a detour."""
    if not all(word in name for word in NAMES):
        return
    want, code, said = launch(reference)
    if code or not want:
        return report(name, [f"the reference exits with {code}"], reference, said)
    made, code, said = launch(pipeline, "2,sluice:6")
    failures = [f"it exits with {code}"] if code else []
    if made != want:
        failures.append(difference(made, want))
    if DETOUR in said:
        failures.append("it warns of a detour")
    if (there := re.findall(r"<s> from (\w+ to \w+) memory", said)) != [way] * FRAMES:
        failures.append(f"frames go from {there}, not from {way}")
    said = "\n".join(line for line in said.splitlines() if "sluice" not in line or " LOG " not in line)
    if failures and COUNT["failed"] < 4:
        said += launch(pipeline, "2,sluice:7,basetransform:5,cuda*:6,GST_CONTEXT:6,GST_CAPS:4")[2][-6000:]
    report(name, failures, pipeline, said)


def skip(name, why):
    COUNT["skipped"] += 1
    print("skipped", name, f"({why})", flush=True)


def has(element, words=""):
    done = subprocess.run(["gst-inspect-1.0", element], capture_output=True, text=True)
    return done.returncode == 0 and words in done.stdout


def source(format, width, height):
    return f"videotestsrc num-buffers={FRAMES} pattern=zone-plate kx2=20 ky2=13 kt=3 " \
           f"! video/x-raw,format={format},width={width},height={height},framerate=25/1 "


def sluice(chain, backend="cuda", name="s"):
    return f"! sluice name={name} chain={chain} backend={backend} "


def routes():
    """Every way between the two memories."""
    for format in FORMATS:
        for (width, height), chain in zip(SIZES, CHAINS):
            start, cuda = source(format, width, height), f"! {CUDA},format={format} "
            want = start + sluice(chain, "cpu") + f"! video/x-raw,format={format} ! {{out}}"
            end = f"! video/x-raw,format={format} ! {{out}}"
            about = f"{format} {width}x{height}"
            equal(f"GPU to GPU, {about}",
                  start + "! cudaupload " + cuda + sluice(chain) + cuda + "! cudadownload " + end,
                  want, "device to device")
            equal(f"GPU to system, {about}",
                  start + "! cudaupload " + cuda + sluice(chain) + end, want, "device to host")
            equal(f"system to GPU, {about}", start + sluice(chain) + cuda + "! cudadownload " + end, want,
                  "host to device")


def neighbours():
    """Elements around it, near and far."""
    start, cuda, stays = source("NV12", 328, 184), f"! {CUDA} ", "device to device"
    end, up, down = "! video/x-raw ! {out}", f"! cudaupload ! {CUDA} ", "! cudadownload "
    here = start + sluice("sobel", "cpu")
    equal("two elements", start + up + sluice("gaussian=2") + cuda + sluice("sobel", name="t") + cuda + down + end,
          start + sluice("gaussian=2", "cpu") + sluice("sobel", "cpu", "t") + end, stays)
    equal("another format", start + up + sluice("sobel") + f"! {CUDA},format=BGRA " + down + end,
          here + "! video/x-raw,format=BGRA ! {out}", stays)
    equal("gray, which GStreamer has in no GPU", start + up + sluice("sobel") + "! video/x-raw,format=GRAY8 ! {out}",
          here + "! video/x-raw,format=GRAY8 ! {out}", "device to host")
    equal("behind queues",
          start + up + "! queue " + sluice("sobel") + cuda + "! queue " + down + end, here + end, stays)
    equal("a tee leaves its pictures as they were", start + up + "! tee name=t t. ! queue " + sluice("sobel") + cuda +
          "! fakesink t. ! queue " + down + end, start + "! {out}", stays)
    fields = start.replace("framerate", "interlace-mode=interleaved,field-order=top-field-first,framerate")
    equal("interlaced", fields + up + sluice("gaussian=2") + cuda + down + end,
          fields + sluice("gaussian=2", "cpu") + end, stays)
    equal("backend=auto", start + up + sluice("sobel", "auto") + cuda + down + end, here + end, stays)
    if has("cudaconvert"):
        convert = f"! cudaconvert ! {CUDA},format=BGRA "
        equal("behind cudaconvert", start + up + convert + sluice("sobel") + cuda + down + end,
              start + up + convert + down + sluice("sobel", "cpu") + end, stays)
        equal("ahead of cudaconvert", start + up + sluice("sobel") + cuda + convert + down + end,
              here + up + convert + down + end, stays)
    else:
        skip("cudaconvert", "GStreamer has none: libnvrtc is missing or too new for it")
    if has("nvh264dec") and "H264" in os.environ:
        start = f"filesrc location={os.environ['H264']} ! h264parse ! nvh264dec "
        equal("behind nvh264dec", start + cuda + sluice("gaussian=2") + cuda + down + end,
              start + "! video/x-raw " + sluice("gaussian=2", "cpu") + end, stays)
    else:
        skip("behind nvh264dec", "no nvh264dec, or H264 names no clip of five frames")


class Error(c.Structure):
    _fields_ = [("domain", c.c_uint32), ("code", c.c_int), ("message", c.c_char_p)]


def played_in_context(line):
    """A pipeline that its application has given a context of its own; what it wrote, and its warnings."""
    gst, gst_cuda = c.CDLL("libgstreamer-1.0.so.0"), c.CDLL("libgstcuda-1.0.so.0")
    for library, names in ((gst, "gst_parse_launch gst_element_get_bus gst_bus_timed_pop_filtered"),
                           (gst_cuda, "gst_cuda_context_new gst_context_new_cuda_context")):
        for name in names.split():
            getattr(library, name).restype = c.c_void_p
    ended, failed, warned = 1 << 0, 1 << 1, 1 << 2
    gst.gst_init(None, None)
    error, said = c.POINTER(Error)(), []
    with tempfile.NamedTemporaryFile() as file:
        pipeline = c.c_void_p(gst.gst_parse_launch(line.replace("{out}", f"filesink location={file.name}").encode(),
                                                   c.byref(error)))
        gst_cuda.gst_cuda_load_library()
        context = gst_cuda.gst_context_new_cuda_context(c.c_void_p(gst_cuda.gst_cuda_context_new(0)))
        gst.gst_element_set_context(pipeline, c.c_void_p(context))
        gst.gst_element_set_state(pipeline, 4)
        bus = c.c_void_p(gst.gst_element_get_bus(pipeline))
        kind = warned
        while kind == warned:
            message = gst.gst_bus_timed_pop_filtered(bus, c.c_uint64(60 * 10**9), ended | failed | warned)
            kind = c.c_int.from_address(message + 64).value if message else 0  # behind GstMiniObject
            if kind in (failed, warned):
                parse = gst.gst_message_parse_error if kind == failed else gst.gst_message_parse_warning
                parse(c.c_void_p(message), c.byref(error), None)
                said.append(error.contents.message.decode())
        gst.gst_element_set_state(pipeline, 1)
        return file.read(), said + ([] if kind else ["it came to no end"])


def foreign_context():
    start, cuda, end = source("NV12", 328, 184), f"! {CUDA} ", "! video/x-raw ! {out}"
    want = launch(start + sluice("gaussian=2", "cpu") + end)[0]
    for name, into in (("GPU to GPU", cuda + "! cudadownload "), ("GPU to system", "")):
        if not all(word in f"{name} in a foreign context" for word in NAMES):
            continue
        line = start + "! cudaupload " + cuda + sluice("gaussian=2") + into + end
        made, said = played_in_context(line)
        failures = [difference(made, want)] if made != want else []
        if len(said) != 1 or DETOUR not in said[0]:
            failures.append(f"it says {said}")
        report(f"{name} in a foreign context", failures, line)


def document():
    """The commands of docs/hosts.md with a GPU's memory."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "hosts.md")
    with open(path, encoding="utf-8") as file:
        lines = [" ".join(shlex.split(line)) for line in file if line.startswith("    gst-launch") and "CUDAM" in line]
    for line in lines:
        _, code, said = launch(line.replace("gst-launch-1.0", "", 1), "2,sluice:6")
        ways = set(re.findall(r"from (\w+ to \w+) memory", said))
        failures = [f"it exits with {code}"] if code else []
        report("docs/hosts.md", failures + ([f"frames go {ways}"] if ways != {"device to device"} else []), line, said)


def main():
    os.environ["GST_PLUGIN_PATH"] = sys.argv[1]
    for command in ("gst-launch-1.0 --version", "gst-inspect-1.0 sluice | head -40", "gst-inspect-1.0 nvcodec",
                    "nvidia-smi -L"):
        print("$", command, flush=True)
        subprocess.run(command, shell=True, stdin=subprocess.DEVNULL)
    if not has("sluice", "memory:CUDAMemory"):
        report("the element knows memory:CUDAMemory", ["it does not, or it is not there"])
    elif not has("cudaupload"):
        skip("all", "GStreamer has no cudaupload here")
    else:
        routes()
        neighbours()
        foreign_context()
        document()
    print(f"{COUNT['passed']} passed, {COUNT['failed']} failed, {COUNT['skipped']} skipped")
    return COUNT["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())

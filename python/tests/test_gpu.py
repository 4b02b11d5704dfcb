"""Frames in a GPU's memory: torch's and CuPy's, on their streams. Skipped where there is none."""

import json
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest

import sluice
from conftest import noise

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

CHAIN = "gray,gaussian=2,sobel"
SHORT_WHILE = 200_000_000  # clocks of the GPU, a tenth of a second


def on_cpu(chain, frame, **more):
    return sluice.Filter(chain, backend="cpu", **more)(frame)


@pytest.mark.parametrize("shape", [(75, 101), (75, 101, 3), (33, 64, 4), (1080, 1920, 3), (4, 5)])
@pytest.mark.parametrize("chain", [CHAIN, "gaussian=2,sharpen=0.8", "invert"])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_equals_the_cpu(shape, chain, dtype):
    frame = noise(*shape, dtype=dtype)
    try:
        tensor = torch.from_numpy(frame).cuda()
    except TypeError:
        pytest.skip("this torch has no uint16")
    filter = sluice.Filter(chain)
    found, wanted = filter(tensor), on_cpu(chain, frame)
    assert found.is_cuda and filter.backend.startswith("cuda") and np.array_equal(found.cpu().numpy(), wanted)
    out = torch.empty_like(found)
    assert filter(tensor, out=out) is out and torch.equal(out, found)
    if found.shape == tensor.shape:
        assert filter(tensor, out=tensor) is tensor and torch.equal(tensor, found)


def test_parts_gaps_and_planes():
    picture = torch.from_numpy(noise(64, 80, 3)).cuda()
    blur = sluice.Filter("gaussian=2")
    for part in (picture[10:40, 20:60], picture[:, ::2], picture.permute(1, 0, 2)):
        wanted = on_cpu("gaussian=2", np.ascontiguousarray(part.cpu().numpy()))
        assert np.array_equal(blur(part).cpu().numpy(), wanted)
    with pytest.raises(sluice.UsageError, match="gaps"):
        blur(picture[:, ::2], stream=torch.cuda.Stream())
    planes = tuple(picture.permute(2, 0, 1).contiguous())
    found = sluice.Filter("gaussian=2", pixfmt="gbrp")(planes)
    wanted = on_cpu("gaussian=2", tuple(p.cpu().numpy() for p in planes), pixfmt="gbrp")
    assert all(np.array_equal(a.cpu().numpy(), b) for a, b in zip(found, wanted))


@pytest.mark.parametrize("calls", [1, 3])  # before it: from the third on Python does not look at tensors
@pytest.mark.parametrize("given", [False, True], ids=["current", "given"])
def test_a_stream_orders_producer_filter_and_consumer(given, calls):
    """The frame is written, and the result read, by a stream that is late; the calls do not wait for it."""
    frame = noise(270, 480)
    ready, tensor = torch.from_numpy(frame).cuda(), torch.zeros(270, 480, dtype=torch.uint8, device="cuda")
    filter, out, stream = sluice.Filter(CHAIN), torch.zeros_like(tensor), torch.cuda.Stream()
    for turn in range(calls):
        filter(ready, out=out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SHORT_WHILE)
        tensor.copy_(ready)
        start = time.perf_counter()
        if not given:
            filter(tensor, out=out)
    if given:
        filter(tensor, out=out, stream=stream)
    took = time.perf_counter() - start
    with torch.cuda.stream(stream):
        copy = out.clone()
    stream.synchronize()
    assert np.array_equal(copy.cpu().numpy(), on_cpu(CHAIN, frame))
    assert took < 0.05, f"{took} s: the call waited for the GPU"


def test_many_frames():
    filter = sluice.Filter(CHAIN)
    for turn in range(3): # the first finds out what the others repeat
        frames = torch.from_numpy(noise(70, 48, 64, seed=turn)).cuda()
        wanted = np.stack([on_cpu(CHAIN, frame.cpu().numpy()) for frame in frames])
        assert np.array_equal(filter.batch(frames).cpu().numpy(), wanted)
        out = torch.zeros_like(frames)
        assert filter.batch(frames, out=out) is out and np.array_equal(out.cpu().numpy(), wanted)
    assert np.array_equal(torch.stack(list(filter.map(frames))).cpu().numpy(), wanted)


def test_a_stream_orders_batches_that_python_does_not_look_at():
    frames = noise(5, 270, 480)
    ready, late, stream = torch.from_numpy(frames).cuda(), torch.zeros(5, 270, 480, dtype=torch.uint8, device="cuda"), torch.cuda.Stream()
    filter, out = sluice.Filter("gaussian=2"), torch.zeros_like(late)
    for turn in range(3):
        filter.batch(ready, out=out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SHORT_WHILE)
        late.copy_(ready)
        filter.batch(late, out=out)
        copy = out.clone()
    stream.synchronize()
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        assert filter._repeats.batch is not None
    assert np.array_equal(copy.cpu().numpy(), np.stack([on_cpu("gaussian=2", frame) for frame in frames]))


def test_analysis_and_changes():
    frame = noise(60, 80)
    filter = sluice.Filter("stats,gaussian=2")
    filter(torch.from_numpy(frame).cuda())
    assert filter.analysis[0].mean == pytest.approx(frame.mean())
    filter.set("gaussian.sigma=3")
    assert np.array_equal(filter(torch.from_numpy(frame).cuda()).cpu().numpy(), on_cpu("gaussian=3", frame))


def test_host_frames_on_the_gpu():
    frame, filter = noise(270, 480), sluice.Filter(CHAIN, backend="cuda")
    source, target = filter.buffers(frame)
    source[:] = frame
    assert np.array_equal(filter(source, out=target), on_cpu(CHAIN, frame))
    assert np.array_equal(filter(frame), target)


def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    frame = noise(75, 101, 3)
    found = sluice.Filter(CHAIN)(cupy.asarray(frame))
    assert isinstance(found, cupy.ndarray) and np.array_equal(found.get(), on_cpu(CHAIN, frame))


def test_memory_of_the_cuda_array_interface():
    tensor = torch.from_numpy(noise(20, 30)).cuda()

    class Interface:
        __cuda_array_interface__ = tensor.__cuda_array_interface__

    out = torch.empty_like(tensor)
    torch.cuda.synchronize()
    sluice.Filter("invert")(Interface(), out=out)
    assert torch.equal(out, 255 - tensor)


def test_benchmark(tmp_path):
    """All that are installed do the same: one that rounds twice, to eight bits in between, is up to 3 apart."""
    rows = tmp_path / "rows.json"
    subprocess.run([sys.executable, Path(__file__).parents[1] / "bench_gpu.py", "--rounds", "1", "--sizes",
                    "160x120x1,96x64x8", "--json", rows], check=True, timeout=200)
    found = json.loads(rows.read_text())["rows"]
    assert [row["frames"] for row in found] == [1] * 20 + [8] * 20
    assert all({"sluice", "sluice, 4 streams", "torch"} <= row["gpx"].keys() for row in found)
    assert all(apart <= 3 for row in found for apart in row["difference"].values())


def by_interface(tensor, stream):
    """Its memory with nothing but the array interface, which names the stream that uses it."""
    interface = {**tensor.__cuda_array_interface__, "version": 3, "stream": stream.cuda_stream}
    return type("ByInterface", (), {"__cuda_array_interface__": interface})()


@pytest.fixture
def late():
    """Two frames, the first of them filtered; and a stream that is late."""
    frames = noise(2, 270, 480)
    wanted = [on_cpu(CHAIN, frame) for frame in frames]
    old, new = torch.from_numpy(frames).cuda()
    filter, theirs, stream, out = sluice.Filter(CHAIN), torch.cuda.Stream(), torch.cuda.Stream(), torch.empty_like(old)
    torch.cuda.synchronize()
    filter(by_interface(old, theirs), out=by_interface(out, theirs), stream=stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        torch.cuda._sleep(SHORT_WHILE)
    return types.SimpleNamespace(filter=filter, theirs=theirs, stream=stream, out=out, old=old, new=new,
                                 wanted=wanted)


def filter_at_once(late, frame, out):
    start = time.perf_counter()
    late.filter(frame, out=out, stream=late.stream)
    took = time.perf_counter() - start
    late.stream.synchronize()
    assert took < 0.05, f"{took} s: the call waited for the GPU"
    assert np.array_equal(late.out.cpu().numpy(), late.wanted[1])


def test_the_stream_of_an_array_interface_makes_the_frame(late):
    with torch.cuda.stream(late.theirs):
        late.old.copy_(late.new)
    filter_at_once(late, by_interface(late.old, late.theirs), late.out)


def test_the_stream_of_an_array_interface_reads_the_target(late):
    with torch.cuda.stream(late.theirs):
        read = late.out.clone()
    filter_at_once(late, late.new, by_interface(late.out, late.theirs))
    late.theirs.synchronize()
    assert np.array_equal(read.cpu().numpy(), late.wanted[0])


def film(path, full):
    """Thirty moving pictures of noise, H.264, tagged BT.709."""
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    picture = noise(144, 192)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"crf": "20", "bf": "2"})
        stream.width, stream.height, stream.pix_fmt = 176, 144, "yuv420p"
        stream.codec_context.color_range, stream.codec_context.colorspace = 2 if full else 1, 1
        for k in range(30):
            luma = np.ascontiguousarray(picture[:, k % 16:k % 16 + 176])
            frame = av.VideoFrame.from_ndarray(np.concatenate([luma.ravel(), luma[::2, ::2].ravel(),
                                                               luma[::-2, ::2].ravel()]).reshape(216, 176), "yuv420p")
            frame.color_range, frame.colorspace = 2 if full else 1, 1
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def decoded_on_gpu(path, options=None):
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    hwaccel = pytest.importorskip("av.codec.hwaccel", reason="this PyAV decodes on no GPU")
    return av.open(str(path), hwaccel=hwaccel.HWAccel("cuda", allow_software_fallback=False, is_hw_owned=True,
                                                      options=options))


@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
def test_frames_that_pyav_decoded_on_the_gpu(full, tmp_path):
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    film(tmp_path / "film.mp4", full)
    gray, rgb = sluice.Filter(CHAIN), sluice.Filter("gaussian=2", output_pixfmt="rgb24")
    with av.open(str(tmp_path / "film.mp4")) as plain, decoded_on_gpu(tmp_path / "film.mp4") as fast:
        # All are begun before the first is looked at.
        found = [(gray(frame), rgb(frame)) for frame in fast.decode(video=0)]
        wanted = [(gray(frame).to_ndarray(), rgb(frame).to_ndarray()) for frame in plain.decode(video=0)]
    assert len(found) == len(wanted) == 30
    for of_gpu, of_cpu in zip(found, wanted):
        for tensor, array in zip(of_gpu, of_cpu):
            assert tensor.is_cuda and np.array_equal(tensor.cpu().numpy(), array)


@pytest.mark.parametrize("options", [None, {"primary_ctx": "0"}], ids=["primary context", "own context"])
@pytest.mark.parametrize("given", [False, True], ids=["current", "given"])
def test_the_decoder_of_pyav_gets_its_memory_back_when_it_was_read(given, options, tmp_path):
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    film(tmp_path / "film.mp4", False)
    stream, blur = torch.cuda.Stream(), sluice.Filter("gaussian=2")
    found = []
    with decoded_on_gpu(tmp_path / "film.mp4", options) as fast, torch.cuda.stream(None if given else stream):
        for frame in fast.decode(video=0):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(SHORT_WHILE // 10)  # frames are read long after they were handed over
            found.append(blur(frame, stream=stream) if given else blur(frame))
            del frame
            with torch.cuda.stream(torch.cuda.default_stream()):
                torch.cuda._sleep(SHORT_WHILE // 10)  # and the next is made long after that
    torch.cuda.synchronize()
    with av.open(str(tmp_path / "film.mp4")) as plain:
        wanted = [blur(frame).to_ndarray() for frame in plain.decode(video=0)]
    for (luma, chroma), array in zip(found, wanted):
        assert np.array_equal(luma.cpu().numpy(), array[:144])
        assert np.array_equal(chroma.cpu().numpy()[..., 0].ravel(), array[144:180].ravel())

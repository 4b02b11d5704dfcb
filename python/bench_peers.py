"""What bench.py, bench_gpu.py and tests/peers.py compare sluice with: the same filters in the words of other libraries.

Functions come by what they do, the names of `chains`; a library that has no such filter is left out there. They take
frames of their own kind, of one, three or four samples a pixel, and return results of it. sluice leaves alpha as it is
and the others filter it like a colour, so of RGBA results are compared in the colours alone; times are of all samples.
"""
import collections
import importlib
import itertools
from typing import NamedTuple, Optional

import numpy as np


class Border(NamedTuple):
    """What lies beyond the edges, in the words of each library."""

    name: str
    opencv: str
    scipy: str
    torch: Optional[str]
    cvcuda: str


BORDERS = {border.name: border for border in (
    Border("mirror", "BORDER_REFLECT_101", "mirror", "reflect", "REFLECT101"),
    Border("reflect", "BORDER_REFLECT", "reflect", None, "REFLECT"),
    Border("replicate", "BORDER_REPLICATE", "nearest", "replicate", "REPLICATE"))}
GAUSSIANS = {"gaussian 5x5": (0.8, 2), "gaussian 9x9": (1.4, 4), "gaussian 65x65": (10, 32)}  # sigma, radius
BOXES = {"box 5x5": 5, "box 41x41": 41}
LAPLACIAN = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
LUMA = (0.299, 0.587, 0.114)
FORMATS = {"gray": 1, "rgb": 3, "rgba": 4}  # samples of a pixel
MISSING = []


class Kind(NamedTuple):
    """A filter by what it does, a name of `chains`, and the format of its frames."""

    name: str
    format: str

    def result(self, frame):
        """The shape of a result, by that of a frame: `gray` leaves one sample of a pixel."""
        return frame[:-1] if self.name == "gray" else frame

    def compared(self, result, frame):
        """Samples of a result that are compared, in host memory: of RGBA the colours."""
        samples = to_numpy(result).reshape(self.result(frame))
        return samples[..., :3] if self.format == "rgba" else samples


def kinds(format):
    """Filters of frames of that format: of colours one of a sort, which keeps runs short."""
    both = ("gaussian 5x5", "gaussian 9x9", "sobel", "laplacian above 0", *BOXES, "brightness", "invert")
    names = {"gray": [name for name in chains("zero") if name != "gray"], "rgb": (*both, "gray"), "rgba": both}
    return [Kind(name, format) for name in names[format]]


def noise(width, height):
    """A frame of each format."""
    samples = np.random.default_rng(1).integers(0, 256, (height, width, 4), dtype=np.uint8)
    return {"gray": np.ascontiguousarray(samples[..., 3]), "rgb": np.ascontiguousarray(samples[..., :3]),
            "rgba": samples}


def apart(some, others):
    """The largest difference in code values."""
    return int((np.maximum(some, others) - np.minimum(some, others)).max())


def in_words(format):
    """A format as people write it."""
    return format if format == "gray" else format.upper()


def chains(border):
    """Chains of sluice by what they do."""
    return {"edges": f"gray,gaussian=1.4:4:{border},sobel=border={border},threshold=20:240",
            **{name: f"gaussian={sigma}:{radius}:{border}" for name, (sigma, radius) in GAUSSIANS.items()},
            "sobel": f"sobel=border={border}", "sobel l2": f"sobel=l2:border={border}",
            "laplacian": f"laplacian=border={border}",
            "laplacian above 0": f"convolve='0 1 0/1 -4 1/0 1 0':border={border}",
            **{name: f"box={side // 2}:{border}" for name, side in BOXES.items()},
            "brightness": "brightness=20", "invert": "invert", "gray": "gray"}


def library(name):
    """The module, or None where it is not installed or cannot work here."""
    try:
        return importlib.import_module(name)
    except Exception as problem:  # a GPU library without a GPU fails in many ways
        MISSING.append(f"{name} ({type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''})")
        return None


def gaussian_weights(sigma, radius):
    at = np.arange(-radius, radius + 1)
    weights = np.exp(-at * at / (2 * sigma * sigma))
    return (weights / weights.sum()).astype(np.float32)


def to_numpy(result):
    """A result of any of them, or several, as an array in host memory."""
    if isinstance(result, (list, tuple)):
        return np.stack([to_numpy(one) for one in result])
    if hasattr(result, "cpu"):  # torch, kornia-rs
        return result.cpu().numpy()
    return result.get() if hasattr(result, "get") else np.asarray(result)


# ---- OpenCV: the functions of tests/bench.py ----


def opencvs(cv2, shape, border):
    """Functions of frames of that shape. Results go where the last ones went, as sluice's do."""
    border = getattr(cv2, border.opencv)
    a, b, c = (np.empty(shape, np.uint8) for _ in range(3))
    x, y = (np.empty(shape, np.int16) for _ in range(2))
    gray = np.empty(shape[:2], np.uint8)

    def blur(sigma, radius):
        return lambda s: cv2.GaussianBlur(s, (2 * radius + 1,) * 2, sigma, a, borderType=border)

    def box(side):
        return lambda s: cv2.blur(s, (side, side), a, borderType=border)

    def sobel(source):
        gx = cv2.convertScaleAbs(cv2.Sobel(source, cv2.CV_16S, 1, 0, x, borderType=border), b)
        gy = cv2.convertScaleAbs(cv2.Sobel(source, cv2.CV_16S, 0, 1, y, borderType=border), c)
        return cv2.add(gx, gy, b)

    def threshold(source):
        white = cv2.threshold(source, 240, 255, cv2.THRESH_BINARY, c)[1]
        return cv2.max(cv2.threshold(source, 19, 0, cv2.THRESH_TOZERO, a)[1], white, a)

    first = blur(*GAUSSIANS["gaussian 9x9"])
    return {"edges": lambda s: threshold(sobel(first(s))), "sobel": sobel,
            **{name: blur(*values) for name, values in GAUSSIANS.items()},
            **{name: box(side) for name, side in BOXES.items()},
            "laplacian": lambda s: cv2.convertScaleAbs(cv2.Laplacian(s, cv2.CV_16S, x, borderType=border), a),
            "laplacian above 0": lambda s: cv2.Laplacian(s, cv2.CV_8U, a, borderType=border),
            "brightness": lambda s: cv2.add(s, (20, 20, 20, 0), a), "invert": lambda s: cv2.bitwise_not(s, a),
            "gray": lambda s: cv2.cvtColor(s, cv2.COLOR_RGB2GRAY, gray)}


# ---- SciPy, and CuPy's module of the same functions ----


def ndimages(nd, xp, border):
    """Sobel and Laplace are what the modules' own are made of, along the directions of the picture alone."""
    mode, luma = border.scipy, xp.asarray(LUMA, xp.float32)
    difference, triangle, second = (xp.asarray(weights, xp.float64) for weights in ([-1, 0, 1], [1, 2, 1], [1, -2, 1]))

    def each(source, value, without):
        """A value for each direction, and what leaves the samples of a pixel apart."""
        return (value, value) + (without,) * (source.ndim - 2)

    def rounded(values):
        return xp.clip(xp.rint(values), 0, 255).astype(xp.uint8)

    def blur(sigma, radius):
        return lambda s: rounded(nd.gaussian_filter(s, each(s, sigma, 0), mode=mode, truncate=(radius + 0.5) / sigma,
                                                    output=xp.float32))

    def box(side):
        return lambda s: rounded(nd.uniform_filter(s, each(s, side, 1), mode=mode, output=xp.float32))

    def along(source, weights, axis):
        return nd.correlate1d(source, weights, axis, mode=mode)

    def sobel(source):
        deep = source.astype(xp.int16)
        gx, gy = (along(along(deep, difference, axis), triangle, 1 - axis) for axis in (1, 0))
        return xp.minimum(abs(gx) + abs(gy), 255).astype(xp.uint8)

    def laplacian(source):
        deep = source.astype(xp.int16)
        return along(deep, second, 0) + along(deep, second, 1)

    def threshold(source):
        return xp.where(source < 20, 0, xp.where(source > 240, 255, source)).astype(xp.uint8)

    first = blur(*GAUSSIANS["gaussian 9x9"])
    return {"edges": lambda s: threshold(sobel(first(s))), "sobel": sobel,
            **{name: blur(*values) for name, values in GAUSSIANS.items()},
            **{name: box(side) for name, side in BOXES.items()},
            "laplacian": lambda s: xp.minimum(abs(laplacian(s)), 255).astype(xp.uint8),
            "laplacian above 0": lambda s: xp.clip(laplacian(s), 0, 255).astype(xp.uint8),
            "brightness": lambda s: xp.minimum(s.astype(xp.uint16) + 20, 255).astype(xp.uint8),
            "invert": lambda s: 255 - s, "gray": lambda s: rounded(s.astype(xp.float32) @ luma)}


# ---- torch ----


def torches(torch, device, border, samples):
    """Frames are tensors of height x width, and samples where a pixel has more than one, or of several frames in
    front. Each sample of pixels is filtered as a picture of its own."""
    pad, conv = torch.nn.functional.pad, torch.nn.functional.conv2d

    def weights(values, *shape):
        return torch.tensor(np.asarray(values, np.float32), device=device).reshape(1, 1, *shape)

    def deep(source, radius):
        height, width = source.shape[-2:] if samples == 1 else source.shape[-3:-1]
        planes = source.reshape(-1, height, width, samples).movedim(3, 1).reshape(-1, 1, height, width)
        return pad(planes.to(torch.float32), (radius,) * 4, mode=border.torch)

    def rounded(values, source):
        planes = values.round().clamp(0, 255).to(torch.uint8)
        return planes.reshape(-1, samples, *planes.shape[2:]).movedim(1, 3).reshape(source.shape)

    def separable(row, column):
        row, column = weights(row, 1, -1), weights(column, -1, 1)
        return lambda s: conv(conv(deep(s, row.shape[3] // 2), row), column)

    def smooth(values):
        both = separable(values, values)
        return lambda s: rounded(both(s), s)

    across, down = separable([-1, 0, 1], [1, 2, 1]), separable([1, 2, 1], [-1, 0, 1])
    second, luma = weights(LAPLACIAN, 3, 3), torch.tensor(LUMA, device=device)

    def sobel(source):
        return rounded(across(source).abs() + down(source).abs(), source)

    def threshold(source):
        return torch.where(source < 20, 0, torch.where(source > 240, 255, source)).to(torch.uint8)

    first = smooth(gaussian_weights(*GAUSSIANS["gaussian 9x9"]))
    return {"edges": lambda s: threshold(sobel(first(s))), "sobel": sobel,
            **{name: smooth(gaussian_weights(*values)) for name, values in GAUSSIANS.items()},
            **{name: smooth([1 / side] * side) for name, side in BOXES.items()},
            "laplacian": lambda s: rounded(conv(deep(s, 1), second).abs(), s),
            "laplacian above 0": lambda s: rounded(conv(deep(s, 1), second), s),
            "brightness": lambda s: (s.to(torch.int16) + 20).clamp(max=255).to(torch.uint8),
            "invert": lambda s: 255 - s, "gray": lambda s: (s.to(torch.float32) @ luma).round().to(torch.uint8)}


# ---- CV-CUDA ----


def cvcudas(cvcuda, border):
    """Functions of a target, a source and a stream: tensors of NHWC, of 1, 3 or 4 samples."""
    border, to_gray = getattr(cvcuda.Border, border.cvcuda), cvcuda.ColorConversion.RGB2GRAY

    def blur(sigma, radius):
        sides = (2 * radius + 1,) * 2
        return lambda t, s, stream=None: cvcuda.gaussian_into(t, s, sides, (sigma, sigma), border, stream=stream)

    def box(side):
        return lambda t, s, stream=None: cvcuda.averageblur_into(t, s, (side, side), (-1, -1), border, stream=stream)

    def laplacian(target, source, stream=None):
        return cvcuda.laplacian_into(target, source, 1, 1.0, border, stream=stream)

    def times_and_plus(factor, summand):
        return lambda t, s, stream=None: cvcuda.convertto_into(t, s, factor, summand, stream=stream)

    return {**{name: blur(*GAUSSIANS[name]) for name in ("gaussian 5x5", "gaussian 9x9")}, "box 5x5": box(5),
            "laplacian above 0": laplacian, "brightness": times_and_plus(1.0, 20.0),
            "invert": times_and_plus(-1.0, 255.0),
            "gray": lambda t, s, stream=None: cvcuda.cvtcolor_into(t, s, to_gray, stream=stream)}


# ---- kornia-rs: arrays of height x width x samples, or its images in the memory of a GPU ----


def kornias(kornia):
    """Its borders of 8-bit blurs are replicated, and its Sobel takes 32-bit floats only."""
    def blur(sigma, radius):
        return lambda s: kornia.imgproc.gaussian_blur(s, (2 * radius + 1,) * 2, (sigma, sigma))

    def box(side):
        return lambda s: kornia.imgproc.box_blur(s, (side, side))

    return {**{name: blur(*values) for name, values in GAUSSIANS.items()},
            **{name: box(side) for name, side in BOXES.items()},
            "brightness": lambda s: kornia.imgproc.adjust_brightness(s, 20 / 255), "gray": kornia.imgproc.gray_from_rgb}


def kornias_with_zeros(kornia):
    """What has zeros beyond the edges: its Sobel, of floats, which are made and rounded here."""
    def sobel(source):
        return np.minimum(np.rint(kornia.imgproc.sobel(source.astype(np.float32))), 255).astype(np.uint8)

    return {"sobel l2": sobel}


# ---- kornia: tensors of torch, as floats of 1 x samples x height x width ----


def torch_kornias(torch, kornia, border):
    """Tensors come and go as those of `torches`; floats between, of 0 to 255, but for colours."""
    filters, enhance = kornia.filters, kornia.enhance

    def deep(source):
        planes = source[..., None] if source.dim() == 2 else source
        return planes.permute(2, 0, 1)[None].to(torch.float32).contiguous()

    def rounded(values):
        planes = values.round().clamp(0, 255).to(torch.uint8)[0]
        return planes[0] if len(planes) == 1 else planes.permute(1, 2, 0).contiguous()

    def blur(sigma, radius):
        sides = (2 * radius + 1,) * 2
        return lambda s: rounded(filters.gaussian_blur2d(deep(s), sides, (sigma, sigma), border.torch))

    def box(side):
        return lambda s: rounded(filters.box_blur(deep(s), (side, side), border.torch, separable=True))

    second = torch.tensor([LAPLACIAN], dtype=torch.float32)

    def laplacian(source):
        return filters.filter2d(deep(source), second.to(source.device), border.torch)

    return {**{name: blur(*values) for name, values in GAUSSIANS.items()},
            **{name: box(side) for name, side in BOXES.items()},
            "sobel l2": lambda s: rounded(filters.sobel(deep(s), normalized=False, eps=0)),
            "laplacian": lambda s: rounded(laplacian(s).abs()), "laplacian above 0": lambda s: rounded(laplacian(s)),
            "brightness": lambda s: rounded(255 * enhance.adjust_brightness(deep(s) / 255, 20 / 255)),
            "invert": lambda s: rounded(enhance.invert(deep(s), torch.tensor(255.0, device=s.device))),
            "gray": lambda s: rounded(kornia.color.rgb_to_grayscale(deep(s)))}


# ---- VapourSynth ----


class Clip:
    """What comes out of VapourSynth's filters: frame after frame, with nothing kept and some on their way."""

    def __init__(self, clip, ahead):
        clip.std.SetVideoCache(mode=0)
        self._clip, self._ahead, self._numbers = clip, ahead, itertools.count()

    def __call__(self, _):
        with self._clip.get_frame(next(self._numbers)) as frame:
            return np.array(frame[0])

    def many(self, calls):
        under_way = collections.deque()
        for _ in range(calls):
            under_way.append(self._clip.get_frame_async(next(self._numbers)))
            if len(under_way) > self._ahead:
                under_way.popleft().result().close()
        for frame in under_way:
            frame.result().close()


def vapoursynths(vapoursynth, frame, border):
    """Chains of one gray frame that is repeated: its formats of colours are planes. Beyond the edges the box repeats
    the last sample, and the others reflect, which over 3x3 is the same."""
    core = vapoursynth.core
    blank = core.std.BlankClip(width=frame.shape[1], height=frame.shape[0], format=vapoursynth.GRAY8, length=1)

    def fill(n, f):
        made = f.copy()
        np.copyto(np.asarray(made[0]), frame)
        return made

    one = blank.std.ModifyFrame(blank, fill)
    one.std.SetVideoCache(mode=1, fixedsize=1, maxsize=2)
    source = one.std.Loop(times=1 << 30)

    def convolved(clip, matrix, **more):
        return clip.std.Convolution(matrix, **more)

    def blur(clip, sigma, radius):
        weights = gaussian_weights(sigma, radius)
        return convolved(clip, [int(w) for w in np.rint(weights * 1023 / weights.max())], mode="hv")

    def sobel(clip):
        both = [convolved(clip, matrix, divisor=1, saturate=False)
                for matrix in ([-1, 0, 1, -2, 0, 2, -1, 0, 1], [-1, -2, -1, 0, 0, 0, 1, 2, 1])]
        return core.std.Expr(both, "x y +")

    first = blur(source, *GAUSSIANS["gaussian 9x9"])
    clips = {"edges": sobel(first).std.Expr("x 20 < 0 x 240 > 255 x ? ?"), "sobel": sobel(source),
             "sobel l2": source.std.Sobel(), "gaussian 9x9": first,
             "gaussian 5x5": blur(source, *GAUSSIANS["gaussian 5x5"]),
             "laplacian": convolved(source, sum(LAPLACIAN, []), divisor=1, saturate=False),
             "laplacian above 0": convolved(source, sum(LAPLACIAN, []), divisor=1),
             **{name: source.std.BoxBlur(hradius=side // 2, vradius=side // 2) for name, side in BOXES.items()},
             "brightness": source.std.Expr("x 20 +"), "invert": source.std.Invert()}
    other = BOXES if border.name == "reflect" else ("edges", *GAUSSIANS)
    return {name: Clip(clip, 2 * core.num_threads) for name, clip in clips.items() if name not in other}

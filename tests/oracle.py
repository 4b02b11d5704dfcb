"""The stages in double precision, from their documented formulas and nothing else.

Pictures are float64 arrays in full-range 8-bit code values, 0 black and 255 white; results are
real-valued, limited to 0..255, not rounded.
"""

import functools

import numpy as np

BORDERS = ("replicate", "zero", "reflect", "mirror", "wrap")


def source_index(border, i, length):
    """Which of `length` samples stands at index i (an array); -1 where there is only black."""
    if border == "replicate":
        return np.clip(i, 0, length - 1)
    if border == "zero":
        return np.where((i < 0) | (i >= length), -1, i)
    if border == "wrap":
        return i % length
    if border == "reflect":
        i = i % (2 * length)
        return np.where(i < length, i, 2 * length - 1 - i)
    if length == 1:
        return np.zeros_like(i)
    i = i % (2 * length - 2)
    return np.where(i < length, i, 2 * length - 2 - i)


@functools.lru_cache(maxsize=64)
def axis_matrix(weights, length, border):
    """The square matrix that correlates `length` samples with centred weights (doubles' bytes)."""
    weights = np.frombuffer(weights)
    radius = len(weights) // 2
    row = np.arange(length)[:, None]
    at = source_index(border, row + np.arange(-radius, radius + 1), length)
    flat = np.where(at < 0, length * length, row * length + at)
    sums = np.bincount(flat.ravel(), np.tile(weights, length), length * length + 1)
    return sums[:-1].reshape(length, length)


def separable(x, column, row, border):
    """Correlate with column * row', both of odd length."""
    column, row = (np.asarray(weights, float).tobytes() for weights in (column, row))
    return (axis_matrix(column, x.shape[0], border) @ x @
            axis_matrix(row, x.shape[1], border).T)


def limit(y):
    return np.clip(y, 0, 255)


# ---- Gaussians ----


def gaussian_radius(sigma):
    return int(np.floor(6 * sigma + 1 + 0.5)) // 2


def gaussian_weights(sigma, radius):
    k = np.arange(-radius, radius + 1)
    weights = np.exp(-k**2 / (2 * sigma**2))
    return weights / weights.sum()


def gaussian(x, sigma, radius=None, border="replicate"):
    weights = gaussian_weights(sigma, gaussian_radius(sigma) if radius is None else radius)
    return separable(x, weights, weights, border)


def sharpen(x, amount=1, sigma=1, radius=None, border="replicate"):
    return limit(x + amount * (x - gaussian(x, sigma, radius, border)))


def box(x, radius, border="replicate"):
    weights = np.full(2 * radius + 1, 1 / (2 * radius + 1))
    return separable(x, weights, weights, border)


# ---- derivatives ----

DIFFERENCE = np.array([-1.0, 0, 1])
SMOOTH = {"sobel": (1, 2, 1), "prewitt": (1, 1, 1), "scharr": (3, 10, 3)}


def derivatives(x, name, border):
    smooth = np.array(SMOOTH[name], float)
    return separable(x, smooth, DIFFERENCE, border), separable(x, DIFFERENCE, smooth, border)


def edges(x, name, mode="l1", scale=None, border="replicate"):
    scale = scale if scale is not None else 0.25 if name == "scharr" else 1
    gx, gy = derivatives(x, name, border)
    norm = {"l1": abs(gx) + abs(gy), "l2": np.hypot(gx, gy), "x": abs(gx), "y": abs(gy)}[mode]
    return limit(scale * norm)


def laplacian(x, neighbours=4, scale=1, sign="absolute", border="replicate"):
    one, three = np.array([0, 1.0, 0]), np.ones(3)
    if neighbours == 4:
        total = separable(x, one, three, border) + separable(x, three, one, border) - 2 * x
    else:
        total = separable(x, three, three, border) - x
    value = scale * (total - neighbours * x)
    return limit(abs(value) if sign == "absolute" else 128 + value)


def emboss(x, amount=1, angle=135, border="replicate"):
    gx, gy = derivatives(x, "prewitt", border)
    turn = np.radians(angle)
    return limit(x - amount * (gx / 3 * np.cos(turn) - gy / 3 * np.sin(turn)))


# ---- points ----

POINTS = []  # stages that look at one sample: (chain, tolerance, formula, *values)


def point(*chains, tolerance=0):
    """The formula of such a stage, and chains by which test_stages.py compares the stage with it."""
    def note(formula):
        for chain in chains:
            values = [float(value) for value in chain.partition("=")[2].split(":") if value]
            POINTS.append((chain, tolerance, formula, *values))
        return formula
    return note


@point(*(f"brightness={v}" for v in (-255, -31.5, -1, 0, 0.5, 20, 255)), tolerance=1)
def brightness(x, offset):
    return limit(x + offset)


@point(*(f"contrast={v}" for v in (0, 0.25, 1, 1.5, 7.3, 100)), tolerance=1)
def contrast(x, gain):
    return limit((x - 127.5) * gain + 127.5)


@point(*(f"gamma={v}" for v in (0.01, 0.45, 1, 2.2, 100)), tolerance=0.5)
def gamma(x, gamma):
    return 255 * (x / 255)**(1 / gamma)


@point("invert")
def invert(x):
    return 255 - x


@point("threshold=20:240", "threshold=0:255", "threshold=100:100", "threshold=0:-1", "threshold=256:255",
       "threshold=31.5:31.5", "threshold=100")
def threshold(x, t1, t2=255):
    return np.where(x < t1, 0, np.where(x > t2, 255, x))


@point("binarize", *(f"binarize={v}" for v in (0, 0.5, 77.25, 255, 256)))
def binarize(x, level=128):
    return np.where(x >= level, 255.0, 0)


# ---- colours ----

MATRIX = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020nc": (0.2627, 0.0593)}


def luma_of_rgb(r, g, b, matrix="bt601"):
    kr, kb = MATRIX[matrix]
    return kr * r + (1 - kr - kb) * g + kb * b


def mean_of_yuv(y, cb, cr, matrix):
    """(R + G + B) / 3 of full-range values, chroma about 0 (ITU-R BT.601, BT.709)."""
    kr, kb = MATRIX[matrix]
    r = y + 2 * (1 - kr) * cr
    b = y + 2 * (1 - kb) * cb
    g = (y - kr * r - kb * b) / (1 - kr - kb)
    return limit((r + g + b) / 3)


def upsample(chroma, factor, length, axis, centred):
    """Chroma at every luma place along an axis: linear, the last samples repeating."""
    place = (np.arange(length) - ((factor - 1) / 2 if centred else 0)) / factor
    below = np.floor(place).astype(int)
    part = place - below
    last = chroma.shape[axis] - 1
    a = np.take(chroma, np.clip(below, 0, last), axis)
    b = np.take(chroma, np.clip(below + 1, 0, last), axis)
    part = part.reshape((-1, 1) if axis == 0 else (1, -1))
    return a * (1 - part) + b * part


# ---- convolutions ----


def convolve(x, kernel, scale=None, bias=0, border="replicate"):
    """By the definition: a dot becomes the kernel, whose middle is at (height // 2, width // 2)."""
    kernel = np.atleast_2d(np.asarray(kernel, float))
    total, sizes = kernel.sum(), abs(kernel).sum()
    if scale is None:
        scale = 1 / total if abs(total) > 1e-9 * sizes else 1
    (height, width), (rows, columns) = x.shape, kernel.shape
    black = np.zeros((height + 1, width + 1)) # beyond the last row and column
    black[:height, :width] = x
    j = source_index(border, np.arange(width + columns - 1) + columns // 2 - columns + 1, width)
    wide = black[:, np.where(j < 0, width, j)]
    y = np.zeros((height, width))
    for row in np.flatnonzero(kernel.any(axis=1)):
        i = source_index(border, np.arange(height) + rows // 2 - row, height)
        windows = np.lib.stride_tricks.sliding_window_view(wide[np.where(i < 0, height, i)], columns, axis=1)
        y += windows @ kernel[row, ::-1]
    return limit(bias + scale * y)


def blobs(difference, scale, sign):
    value = scale * difference
    return limit(abs(value) if sign == "absolute" else 127.5 + value)


def dog(x, sigma1=1, sigma2=None, scale=1, sign="absolute", border="replicate"):
    sigma2 = 1.6 * sigma1 if sigma2 is None else sigma2
    return blobs(gaussian(x, sigma1, None, border) - gaussian(x, sigma2, None, border), scale, sign)


def log(x, sigma=1.4, scale=1, sign="absolute", border="replicate"):
    radius = gaussian_radius(sigma)
    k, g = np.arange(-radius, radius + 1), gaussian_weights(sigma, radius)
    h = (k**2 - (k**2 * g).sum()) * g / sigma**4
    return blobs(separable(x, g, h, border) + separable(x, h, g, border), scale, sign)


# ---- wavelets ----


def hat(scale, support=6):
    """The two lines of which (|u|^2 - 2) exp(-|u|^2 / 2) is the sum of products."""
    k = np.arange(-np.floor(support * scale), np.floor(support * scale) + 1)
    u2 = (k / scale)**2
    return np.exp(-u2 / 2), (u2 - 1) * np.exp(-u2 / 2)


def wavelet_factor(scale, norm="l2"):
    return 1 / np.sqrt(2 * np.pi) / (scale if norm == "l2" else np.sqrt(scale))


def wavelet(x, scale, norm="l2", border="replicate", support=6):
    """W of one scale, not limited."""
    smooth, bent = hat(scale, support)
    return wavelet_factor(scale, norm) * (separable(x, bent, smooth, border) +
                                          separable(x, smooth, bent, border))


def wavelet_kernel(scale, norm="l2", support=6):
    smooth, bent = hat(scale, support)
    return wavelet_factor(scale, norm) * (np.outer(bent, smooth) + np.outer(smooth, bent))


def wavelet_full(scale, norm="l2"):
    """The largest |W| that a picture of 0..255 can give far from its edges."""
    kernel = wavelet_kernel(scale, norm)
    return 255 * max(kernel[kernel > 0].sum(), -kernel[kernel < 0].sum())


def wavelet_edge(scale, norm="l2"):
    """The largest |W| beside an edge from black to white; of large scales the integral's."""
    if scale > 16:
        return 255 * wavelet_factor(scale, norm) * scale**2 * np.sqrt(2 * np.pi) * np.exp(-0.5)
    columns = wavelet_kernel(scale, norm, np.ceil(6 * scale) / scale + 1e-9).sum(axis=0)
    return 255 * abs(np.cumsum(columns)).max()


# ---- template matching ----


def match_scores(f, t, mask=None):
    """Normalised cross-correlation of a gray picture's windows with a template, in single precision:
    whole numbers until the quotient."""
    f, t = f.astype(np.int64), t.astype(np.int64)
    mask = np.ones_like(t) if mask is None else mask.astype(np.int64)
    rows, columns = (a - b + 1 for a, b in zip(f.shape, t.shape))
    if rows < 1 or columns < 1:
        return np.zeros((0, 0), np.float32)
    t = t * mask
    n, products, samples, squares = mask.sum(), 0, 0, 0
    for j, i in zip(*np.nonzero(mask)):
        window = f[j:j + rows, i:i + columns]
        products = products + window * t[j, i]
        samples = samples + window
        squares = squares + window**2
    variance = n * squares - samples**2
    norm = np.sqrt(float(n * (t**2).sum() - t.sum()**2))
    quotient = (n * products - samples * t.sum()) / (np.sqrt(np.maximum(variance, 1)) * norm)
    return np.where(variance > 0, quotient, 0).astype(np.float32)


def match_refine(scores, y, x):
    """The place, refined by a parabola through the neighbours along each axis."""
    place = []
    for axis, k in enumerate((y, x)):
        line = (scores[:, x] if axis == 0 else scores[y]).astype(float)
        if 0 < k < len(line) - 1:
            before, after = line[k - 1] - line[k], line[k + 1] - line[k]
            top = before <= 0 and after <= 0 and before + after < 0 # the middle one is
            k += 0.5 * (before - after) / (before + after) if top else 0
        place.append(k)
    return place[1], place[0]


def match(f, templates, least=0.9, most=100):
    """The matches: (score, template, x, y), best first. Templates are (samples, mask)."""
    found = []
    for number, (t, mask) in enumerate(templates):
        scores = match_scores(f, t, mask)
        far_y, far_x = t.shape[0] // 2, t.shape[1] // 2
        for y, x in zip(*np.nonzero(scores >= np.float32(least))):
            top, left = max(y - far_y, 0), max(x - far_x, 0)
            around = scores[top:y + far_y + 1, left:x + far_x + 1]
            first = np.unravel_index(np.argmax(around), around.shape)
            if (top + first[0], left + first[1]) == (y, x):
                found.append((-scores[y, x], number, y, x, *match_refine(scores, y, x)))
    return [(-score, number, x, y) for score, number, _, _, x, y in sorted(found)[:most]]


# ---- reports ----


def statistics(x):
    """Of a component, and how many samples there are of each of 256 values."""
    return {"min": x.min(), "max": x.max(), "mean": x.mean(),
            "deviation": np.sqrt(((x - x.mean())**2).mean()),
            "histogram": [int((np.floor(x) == value).sum()) for value in range(256)]}


# ---- all stages ----


def wavelet_shown(x, scale):
    """As a picture: an upright edge from black to white is white."""
    return limit(255 * abs(wavelet(x, scale)) / wavelet_edge(scale))


BINOMIAL = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]

# Of each stage that is no point(): a chain, what it makes of a gray picture, and the tolerance.
STAGES = {
    "gray": ("gray", lambda x: luma_of_rgb(x, x, x), 0),
    "gaussian": ("gaussian=1.4", lambda x: gaussian(x, 1.4), 1),
    "box": ("box=2", lambda x: box(x, 2), 0.5),
    "sharpen": ("sharpen=1.5:2", lambda x: sharpen(x, 1.5, 2), 1),
    "sobel": ("sobel", lambda x: edges(x, "sobel"), 1),
    "prewitt": ("prewitt", lambda x: edges(x, "prewitt"), 1),
    "scharr": ("scharr", lambda x: edges(x, "scharr"), 1),
    "laplacian": ("laplacian", laplacian, 1),
    "emboss": ("emboss", emboss, 1),
    "dog": ("dog=1.5:4", lambda x: dog(x, 1.5, 4), 1),
    "log": ("log=2", lambda x: log(x, 2), 1),
    "convolve": ("convolve=1 2 1/2 4 2/1 2 1", lambda x: convolve(x, BINOMIAL), 1),
    "sepconvolve": ("sepconvolve=1 2 1:1 2 1", lambda x: convolve(x, np.outer([1, 2, 1], [1, 2, 1])), 1),
    "wavelet": ("wavelet=2", lambda x: wavelet_shown(x, 2), 0.6),
    "stats": ("stats=report.jsonl", lambda x: x, 0),
    "match": ("match=template.pam:report=report.jsonl:draw=none", lambda x: x, 0),
    "tee": ("tee=tee.y4m", lambda x: x, 0),
    "null": ("null", lambda x: x, 0),
}

# What stages tell beside the picture: of a gray picture, and of the templates.
REPORTS = {
    "stats": lambda x, _: statistics(x),
    "match": match,
}


def stages():
    """The same of all. test_oracles.py asks the program for its stages, and fails for one that is missing."""
    points = {}
    for chain, tolerance, formula, *values in POINTS:
        row = (chain, functools.partial(lambda x, formula, values: formula(x, *values), formula=formula,
                                        values=values), tolerance)
        points.setdefault(chain.partition("=")[0], []).append(row)
    return {**{name: rows[len(rows) // 2] for name, rows in points.items()}, **STAGES}

"""What NVDEC decodes while the rest of a job keeps many frames: it has 32 surfaces, and FFmpeg 5 fails beyond them."""

import pytest

import tools
from test_cli import hashes


@pytest.fixture(scope="module")
def film(tmp_path_factory, cuda):
    """Pictures of H.264 that refer to as many others as there may be, and of HEVC."""
    if not cuda:
        pytest.skip("no GPU")
    folder = tmp_path_factory.mktemp("films")
    codecs = {"h264": ["libx264", "-x264-params", "ref=16:bframes=8:b-adapt=0"],
              "hevc": ["libx265", "-x265-params", "ref=5:bframes=4:log-level=none"]}
    for name, options in codecs.items():
        done = tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25",
                              "-frames:v", "90", "-pix_fmt", "yuv420p", "-c:v", *options, folder / f"{name}.mkv"])
        assert done.code == 0, done.stderr
    return folder


@pytest.mark.parametrize("devices", ["0", "all"])
@pytest.mark.parametrize("ring", [1, 8, 16, 40])
@pytest.mark.parametrize("codec", ["h264", "hevc"])
@pytest.mark.parametrize("chain", ["gray,gaussian=2", "brightness=9"])
def test_frames_of_any_ring(film, tmp_path, codec, ring, devices, chain):
    common = ["-f", chain, "-q"]
    for to, options in (("gpu", ["--device", devices, "--ring", ring, "--hwdec", "require"]),
                        ("cpu", ["--backend", "cpu", "--hwdec", "off"])):
        done = tools.execute([tools.SLUICE, film / f"{codec}.mkv", f"hash:{tmp_path / to}", *common,
                              *map(str, options)])
        assert done.code == 0, done.stderr
    assert hashes(tmp_path / "gpu") == hashes(tmp_path / "cpu") and len(hashes(tmp_path / "cpu")) == 90

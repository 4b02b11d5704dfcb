"""What is told of damage: all that is damaged, and nothing that is whole."""

import pytest

import tools
from test_outputs import Folder

# ---- MPEG transport streams ----

SIZE = 188
ENCODERS = {
    "hevc": ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=8"],
    "h264": ["-c:v", "libx264", "-preset", "medium", "-g", "8"],
    "mpeg2": ["-c:v", "mpeg2video", "-q:v", "6", "-bf", "2"],
    "mpeg4": ["-c:v", "mpeg4", "-q:v", "6"],
}


def transport(file, codec, start=10, suffix=".ts", frames=25):
    """A second of picture and sound."""
    file = file.with_suffix(suffix)
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25", *tools.SOUND, "-frames:v",
                 str(frames), *ENCODERS[codec], "-c:a", "mp2", "-shortest", "-output_ts_offset",
                 str(start), file)
    return file


def lost_packets(data, size=SIZE):
    """(where, the bytes without it) for each packet of the video, but for the first (a recording may
    begin in the middle of a picture) and the last (behind which no counter tells)."""
    lead = size - SIZE
    parts = [data[at:at + size] for at in range(0, len(data), size)]
    pid = 0x100 if size == SIZE else 0x1011
    video = [k for k, part in enumerate(parts)
             if int.from_bytes(part[lead + 1:lead + 3], "big") & 0x1fff == pid
             and part[lead + 3] & 0x10]
    for k in video[1:-1]:
        yield k, b"".join(parts[:k] + parts[k + 1:])


@pytest.mark.parametrize("suffix", [".ts", ".m2ts"])
@pytest.mark.parametrize("codec", ENCODERS)
def test_a_lost_packet_of_video_is_damage_wherever_it_was(run, tmp_path, codec, suffix):
    file = transport(tmp_path / "whole", codec, suffix=suffix)
    assert run("-q", file, "null:", "-f", "null").code == 0
    lost = list(lost_packets(file.read_bytes(), 192 if suffix == ".m2ts" else SIZE))
    for where, data in lost[::-(-len(lost) // 24)]:
        (tmp_path / "lost.ts").write_bytes(data)
        result = run("-q", "lost.ts", "null:", "-f", "null", "--json", "told.json", "-y")
        frames = tools.load(tmp_path / "told.json")["frames"]
        assert result.code == 3, f"packet {where}: {result.stderr}"
        assert frames["damaged_packets"] + frames["damaged_frames"] > 0, where


@pytest.mark.parametrize("codec", ENCODERS)
@pytest.mark.parametrize("starts", [(10, 11), (10, 10), (10, 70), (70, 10)],
                         ids=["goes-on", "again", "ahead", "back"])
def test_transport_streams_that_were_joined_are_whole(run, tmp_path, codec, starts):
    parts = [transport(tmp_path / f"{k}", codec, start) for k, start in enumerate(starts)]
    (tmp_path / "joined.ts").write_bytes(b"".join(part.read_bytes() for part in parts))
    result = run("joined.ts", "null:", "-f", "null")
    assert result.code == 0, result.stderr
    assert "50 in = 50 out" in result.stderr


@pytest.mark.parametrize("codec", ["hevc", "h264"])
def test_what_is_missing_where_transport_streams_were_joined_is_damage(run, tmp_path, codec):
    """The end of a picture, and a picture."""
    whole = [transport(tmp_path / f"{k}", codec, start).read_bytes() for k, start in enumerate((10, 11))]
    early = transport(tmp_path / "early", codec, frames=24).read_bytes()
    video = [at for at in range(0, len(whole[0]), SIZE) if whole[0][at + 1] & 0x1f == 1
             and whole[0][at + 2] == 0 and not whole[0][at + 3] & 0x20]
    for first in (whole[0][:video[-1]], early):
        (tmp_path / "joined.ts").write_bytes(first + whole[1])
        result = run("-q", "joined.ts", "null:", "-f", "null")
        assert result.code == 3, result.stderr


def test_segments_of_a_playlist_that_count_anew_are_whole(tmp_path, run):
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1"]
    for k in range(3):
        transport(tmp_path / f"{k}", "h264", 10 + k)
        lines += ["#EXTINF:1.0,", f"{k}.ts"]
    (tmp_path / "list.m3u8").write_text("\n".join([*lines, "#EXT-X-ENDLIST", ""]))
    with Folder(tmp_path) as server:
        result = run(f"{server.url}/list.m3u8", "null:", "-f", "null")
    assert result.code == 0, result.stderr
    assert "75 in = 75 out" in result.stderr


# ---- the same again ----


@pytest.mark.parametrize("name, encoder", [
    ("o.avi", ["-c:v", "mjpeg"]), ("o.mp4", ["-c:v", "libx264", "-bf", "2"]),
    ("o.mp4", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"]),
    ("o.avi", ["-c:v", "mpeg4", "-bf", "2"]), ("o.webm", ["-c:v", "libvpx", "-deadline", "realtime"]),
], ids=["mjpeg", "h264", "hevc", "mpeg4", "vp8"])
def test_repeatable_gives_the_same_frames_of_damage_in_every_run(run, tmp_path, name, encoder):
    """What the decoder lacks is in memory that depends on the pace of the rest, as is its order."""
    whole, damaged = tmp_path / f"whole-{name}", tmp_path / f"damaged-{name}"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=3,noise=alls=20:allf=t",
                 *encoder, "-pix_fmt", "yuvj420p" if "mjpeg" in encoder else "yuv420p", whole)
    tools.flipped(whole, damaged, every=4999)
    texts = [run("-q", damaged, "hash:-", "-f", "null", "--repeatable", "--ring", 1 + k % 3,
                 "--threads", 1 + k % 2).text for k in range(6)]
    assert len(set(texts)) == 1
    assert len(tools.read_hashes(texts[0])) > 20


def test_repeatable_decodes_on_the_cpu(run, clips):
    result = run("--repeatable", "--hwdec", "require", clips["plain.mp4"], "null:")
    assert result.code == 2 and "--repeatable" in result.stderr and "--hwdec" in result.stderr

"""What is told of damage: all that is damaged, and nothing that is whole."""

import os
import socket
import struct
import subprocess
import time
import uuid

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


def test_a_hole_in_a_transport_stream_is_damage_and_not_its_end(run, tmp_path):
    """Larger than what the demuxer searches at once, 64 KiB."""
    whole = transport(tmp_path / "whole", "h264").read_bytes()
    middle = len(whole) // SIZE // 2 * SIZE
    (tmp_path / "hole.ts").write_bytes(whole[:middle] + bytes(500000) + whole[middle:])
    result = run("hole.ts", "null:", "-f", "null")
    assert result.code == 3 and "25 in = 25 out" in result.stderr, result.stderr
    assert "1 packet came damaged" in result.stderr and "breaks off" not in result.stderr, result.stderr


def stamped(ticks, mark):
    """A timestamp as the header of a PES packet has it (ISO/IEC 13818-1, 2.4.3.6)."""
    return bytes([mark << 4 | (ticks >> 30 & 7) << 1 | 1, ticks >> 22 & 255, (ticks >> 15 & 127) << 1 | 1,
                  ticks >> 7 & 255, (ticks & 127) << 1 | 1])


def stamp_of(data):
    return (data[0] >> 1 & 7) << 30 | data[1] << 22 | data[2] >> 1 << 15 | data[3] << 7 | data[4] >> 1


def stamps_of(data, pid):
    """Where in a transport stream pictures of this PID have their two timestamps, ten bytes each."""
    for at in range(0, len(data), SIZE):
        begins = (data[at + 1] << 8 | data[at + 2]) & 0x5fff == 0x4000 | pid
        header = at + 4 + (1 + data[at + 4] if data[at + 3] & 0x20 else 0)
        if begins and data[header + 7] >> 6 == 3:
            yield header + 9


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".ts"])
def test_a_copied_packet_to_be_shown_before_it_is_decoded_costs_nothing(run, tmp_path, suffix):
    """It is shown when it is decoded, and the packets around it keep their times."""
    film, bad = tmp_path / "film.ts", tmp_path / "bad.ts"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=2", "-map", "0", "-map", "0",
                 *ENCODERS["mpeg2"], film)
    data = bytearray(film.read_bytes())
    at = list(stamps_of(data, 0x101))[11]
    dts = stamp_of(data[at + 5:])
    data[at:at + 5] = stamped(dts - 9000, 3)
    bad.write_bytes(data)
    assert run(bad, f"out{suffix}").code == 0
    told = [tools.probe(file, "-select_streams", "v:1", "-show_packets", "-show_entries", "packet=pts_time,dts_time")
            for file in (film, tmp_path / f"out{suffix}")]
    was, now = ([float(packet["pts_time"]) for packet in one["packets"]] for one in told)
    moved = [1 for one, two in zip(was, now) if abs((one - was[0]) - (two - now[0])) > 0.002]
    assert len(was) == len(now) == 50 and len(moved) == 1


def test_sound_with_a_header_that_nobody_knows_costs_its_packet(run, tmp_path):
    """ADTS with a checksum and several blocks, which libavformat takes no header off."""
    tools.ffmpeg(*tools.SHORT, "-f", "lavfi", "-i", "sine=440:duration=2", "-shortest", *tools.X264, "-c:a", "aac",
                 tmp_path / "film.ts")
    data = bytearray((tmp_path / "film.ts").read_bytes())
    heads = [at for at in range(2000, len(data) - 8) if data[at] == 0xff and data[at + 1] == 0xf1 and data[at + 2] >> 6 == 1
             and data[at + 6] == 0xfc]
    data[heads[len(heads) // 2] + 1] &= 0xfe
    data[heads[len(heads) // 2] + 6] |= 1
    (tmp_path / "bad.ts").write_bytes(data)
    result = run("bad.ts", "out.mp4", "-f", "null")
    assert result.code in (0, 3) and "a damaged packet of stream 1 is left out" in result.stderr, result.stderr
    sound = tools.probe(tmp_path / "out.mp4", "-select_streams", "a", "-show_packets")["packets"]
    assert len(sound) > 10


def times_of(file, stream):
    told = tools.probe(file, "-select_streams", f"v:{stream}", "-show_packets", "-show_entries", "packet=pts_time,flags")
    times = sorted(float(packet["pts_time"]) for packet in told["packets"] if "D" not in packet["flags"])
    return [time - times[0] for time in times]


def shown(film):
    """Frames that FFmpeg decodes: its 7.1 writes an MP4 that ends before the last of 100 behind a gap."""
    told = tools.probe(film, "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames,nb_read_packets",
                       "-count_packets")["streams"][0]
    assert int(told["nb_read_packets"]) == 100
    return int(told["nb_read_frames"])


def moved(was, now, by=0.002):
    """Times that nothing has any more."""
    return [time for time in was if min(abs(time - other) for other in now) > by]


def with_a_damaged_time(film, stream, seconds):
    """The bytes of a film with two streams of video, of whose 12th picture both times are wrong."""
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=4", "-map", "0", "-map", "0",
                 *ENCODERS["mpeg2"], film)
    data = bytearray(film.read_bytes())
    at = list(stamps_of(data, 0x100 + stream))[11]
    for place, mark in ((at, 3), (at + 5, 1)):
        data[place:place + 5] = stamped(stamp_of(data[place:]) + int(90000 * seconds), mark)
    return bytes(data)


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("seconds", [-2000, -1, -0.3, 0.3, 4, 20, 2000])
def test_one_damaged_time_costs_nothing(run, tmp_path, seconds, stream):
    film, bad = tmp_path / "film.ts", tmp_path / "bad.ts"
    bad.write_bytes(with_a_damaged_time(film, stream, seconds))
    result = run(bad, "out.mkv", "-f", "null", "-c:v", "ffv1")
    assert result.code == 0 and "jumps" not in result.stderr, result.stderr
    for other in (0, 1):
        was, now = times_of(film, other), times_of(tmp_path / "out.mkv", other)
        assert len(was) == len(now) and not moved(was, now), (other, moved(was, now))


@pytest.mark.parametrize("suffix", [".ts", ".flv"])
def test_headers_with_a_wrong_frame_rate_change_no_time(run, tmp_path, suffix):
    """Packets say then that they last half a second each."""
    film = tmp_path / f"film{suffix}"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=4", *tools.X264, "-bf", 0,
                 "-bsf:v", "h264_metadata=tick_rate=4", film)
    result = run(film, "out.mkv", "-f", "null", "-c:v", "ffv1")
    assert result.code == 0 and "jumps" not in result.stderr, result.stderr
    was, now = times_of(film, 0), times_of(tmp_path / "out.mkv", 0)
    assert len(was) == len(now) == 100 and not moved(was, now)


@pytest.mark.parametrize("seconds, stream", [(-1, 0), (4, 0), (20, 0), (4, 1)])
def test_one_damaged_time_of_a_live_source_costs_nothing(tmp_path, seconds, stream):
    film = tmp_path / "film.ts"
    data = with_a_damaged_time(film, stream, seconds)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with subprocess.Popen([tools.SLUICE, address, tmp_path / "out.mkv", "-f", "null", "-c:v", "ffv1", "--reconnect", "no"],
                              stderr=subprocess.PIPE, env=tools.environment(), text=True) as job:
            with server.accept()[0] as source:
                for k in range(100):
                    source.sendall(data[len(data) * k // 100:len(data) * (k + 1) // 100])
                    time.sleep(0.04)
            said = job.communicate(timeout=30)[1]
    assert "jumps" not in said, said
    for other in (0, 1):
        was, now = times_of(film, other), times_of(tmp_path / "out.mkv", other)
        assert len(was) - len(now) <= 1 and len(moved(was, now, 0.02)) <= 1, (other, moved(was, now))


REORDERED = ["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=4", "-c:v", "libx264", "-preset", "ultrafast",
             "-pix_fmt", "yuv420p", "-g", "25", "-bf", "2"]


def damage_ts(data, seconds):
    at = list(stamps_of(data, 0x100))[30]
    data[at:at + 5] = stamped(stamp_of(data[at:]) + int(90000 * seconds), 3)


def damage_mkv(data, seconds):
    """The time of a SimpleBlock of track 1, signed and from that of its cluster on, in milliseconds."""
    blocks = [at for at in range(len(data) - 8) if data[at] == 0xa3 and data[at + 1] & 0x40 and data[at + 3] == 0x81
              and data[at + 6] in (0, 0x80)]
    at = blocks[30] + 4
    data[at:at + 2] = struct.pack(">h", struct.unpack_from(">h", data, at)[0] + int(1000 * seconds))


def damage_mp4(data, seconds):
    """A row of `ctts`: how many, and how far behind decoding they are shown, in 12800ths."""
    table = data.index(b"ctts") + 12
    for at in range(table + 8 * 20, len(data), 8):
        count, late = struct.unpack_from(">II", data, at)
        if count == 1:
            return struct.pack_into(">II", data, at, 1, late + int(12800 * seconds))


DAMAGE = {".ts": damage_ts, ".mkv": damage_mkv, ".mp4": damage_mp4}
WHOLE_TABLES = {".mp4": ["-use_editlist", "0"]}  # libavformat leaves out what is behind an edit's end


@pytest.mark.parametrize("seconds", [0.4, 5, 20])
@pytest.mark.parametrize("suffix", DAMAGE)
def test_a_frame_whose_time_is_damaged_costs_no_other(run, tmp_path, suffix, seconds):
    """Frames and times are those of the film without the damage, and an encoder gets all of them."""
    film, bad = tmp_path / f"film{suffix}", tmp_path / f"bad{suffix}"
    tools.ffmpeg(*REORDERED, *WHOLE_TABLES.get(suffix, []), film)
    data = bytearray(film.read_bytes())
    DAMAGE[suffix](data, seconds)
    bad.write_bytes(data)
    assert run("-q", film, "hash:was.txt").code == 0
    now = run(bad, "hash:now.txt", "-o", "out.mkv", "-c:v", "ffv1")
    assert now.code == 0 and "the time of a frame of " in now.stderr, now.stderr
    assert (tmp_path / "was.txt").read_text() == (tmp_path / "now.txt").read_text()
    assert not moved(times_of(film, 0), times_of(tmp_path / "out.mkv", 0))


@pytest.mark.parametrize("gap", ["gte(N,40)*5", "gte(N,40)*5+gte(N,41)*3", "gte(N,99)*5", "gte(N,20)*0.4+gte(N,21)*0.2"])
@pytest.mark.parametrize("suffix", DAMAGE)
def test_a_gap_is_no_damaged_time(run, tmp_path, suffix, gap):
    film = tmp_path / f"film{suffix}"
    tools.ffmpeg(*REORDERED, "-vf", f"setpts='PTS+({gap})/TB'", tools.SYNC, "passthrough", film)
    result = run(film, "out.mkv", "-f", "null", "-c:v", "ffv1")
    assert result.code == 0 and "time of a frame" not in result.stderr, result.stderr
    was, now = times_of(film, 0), times_of(tmp_path / "out.mkv", 0)
    assert len(was) == len(now) == shown(film) and not moved(was, now)


def test_a_stream_that_pauses_is_no_clock_that_jumps(run, tmp_path):
    """Two of 24 s, of which one has nothing for 15."""
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=24", "-map", "0", "-map", "0",
                 *ENCODERS["mpeg2"], "-bsf:v:1", "noise=drop='between(pts*tb,4,19)'", tmp_path / "film.ts")
    result = run("film.ts", "out.mkv", "-f", "null", "-c:v", "ffv1")
    assert result.code == 0 and "jumps" not in result.stderr, result.stderr
    for stream in (0, 1):
        was, now = times_of(tmp_path / "film.ts", stream), times_of(tmp_path / "out.mkv", stream)
        assert was[-1] > 22 and len(was) == len(now) and not moved(was, now)


@pytest.mark.parametrize("width,height", [(320, 240), (640, 480)])  # larger ones are read without a copy
@pytest.mark.parametrize("suffix", [".y4m", ".gray"])
def test_a_file_that_becomes_shorter_while_it_is_read_is_cut(tmp_path, suffix, width, height):
    file, frame = tmp_path / f"in{suffix}", width * height
    tools.ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate=25", "-frames:v", 50, "-pix_fmt",
                 "gray", "-f", "yuv4mpegpipe" if suffix == ".y4m" else "rawvideo", file)
    raw = [] if suffix == ".y4m" else ["-F", "rawvideo", "--size", f"{width}x{height}", "--pix-fmt", "gray"]
    job = subprocess.Popen([tools.SLUICE, *raw, file, "-", "-F", "rawvideo", "-f", "null", "--live"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tools.environment())
    job.stdout.read(frame)
    os.truncate(file, file.stat().st_size - 5 * frame)
    shown, said = job.communicate(timeout=20)
    assert job.returncode == 3 and b"shorter while it was read" in said, said


def raw_film(tmp_path, frames):
    file = tmp_path / "in.gray"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25", "-frames:v", frames, "-pix_fmt", "gray", "-f",
                 "rawvideo", file)
    return file


RAW = ["-F", "rawvideo", "--size", "640x480", "--pix-fmt", "gray"]


def test_frames_that_lost_their_file_are_damage_wherever_the_run_ends(tmp_path):
    """Nobody reads the output when it goes: the first 64 wait to be written, the others to be filtered."""
    file = raw_film(tmp_path, 100)
    job = subprocess.Popen([tools.SLUICE, *RAW, file, "-", "-F", "rawvideo", "-f", "invert", "--frames", "90",
                            "--threads", "2"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tools.environment())
    time.sleep(1)
    os.truncate(file, 0)
    shown, said = job.communicate(timeout=20)
    assert job.returncode == 3 and len(shown) == 90 * 640 * 480, said
    assert b"in.gray became shorter while it was read: frames that were being filtered have zeros" in said, said
    assert bytes([255]) * 640 in shown, "zeros, inverted"


def test_a_part_that_lost_its_file_is_not_kept(tmp_path):
    """Its chain is slow: some thirty frames have been read and wait when the file goes."""
    file = raw_film(tmp_path, 100)
    job = subprocess.Popen([tools.SLUICE, "-q", *RAW, file, "out.mkv", "--shard", "1/2", "-c:v", "ffv1", "-f",
                            "gaussian=200,wavelet=1..64,invert", "--threads", "1"], cwd=tmp_path,
                           stderr=subprocess.PIPE, env=tools.environment())
    while len(list(tmp_path.iterdir())) < 2 and job.poll() is None: # until the part is begun
        time.sleep(0.02)
    time.sleep(0.5)
    assert job.poll() is None, "it is over already"
    os.truncate(file, 0)
    _, said = job.communicate(timeout=60)
    assert job.returncode == 4 and b"in.gray became shorter while this part was made of it" in said, said
    assert [left.name for left in tmp_path.iterdir()] == ["in.gray"]


def test_a_part_whose_file_changes_is_not_kept(tmp_path):
    """Its manifest would say that it was made of another one."""
    file = raw_film(tmp_path, 12)
    job = subprocess.Popen([tools.SLUICE, "-q", *RAW, file, "out.mkv", "--shard", "1/2", "-c:v", "ffv1", "-f",
                            "wavelet=1..64", "--threads", "1"], cwd=tmp_path, stderr=subprocess.PIPE,
                           env=tools.environment())
    while len(list(tmp_path.iterdir())) < 2 and job.poll() is None: # until the part is begun
        time.sleep(0.005)
    with file.open("ab") as more:
        more.write(b"x")
    _, said = job.communicate(timeout=60)
    assert job.returncode == 4 and b"in.gray changed while this part was made of it" in said, said
    assert [left.name for left in tmp_path.iterdir()] == ["in.gray"]


def test_standard_input_may_be_in_the_middle_of_a_file(tmp_path):
    file = raw_film(tmp_path, 8)
    whole = file.read_bytes()
    with file.open("rb") as stdin:
        os.lseek(stdin.fileno(), 1000, os.SEEK_SET)
        done = subprocess.run([tools.SLUICE, "-q", *RAW, "-", "-", "-F", "rawvideo", "-f", "null"], stdin=stdin,
                              capture_output=True, env=tools.environment(), timeout=20, check=False)
    assert done.stdout == whole[1000:][:7 * 640 * 480], (done.returncode, done.stderr)


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


# Not in real time: an encoder that looks at the clock makes other files on a busy machine.
@pytest.mark.parametrize("name, encoder", [
    ("o.avi", ["-c:v", "mjpeg"]), ("o.mp4", ["-c:v", "libx264", "-bf", "2"]),
    ("o.mp4", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"]),
    ("o.avi", ["-c:v", "mpeg4", "-bf", "2"]), ("o.webm", ["-c:v", "libvpx", "-deadline", "good", "-cpu-used", "4"]),
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


# ---- ends of files ----


def make_end(clips, name, folder):
    if name != "plain.flv":
        return clips[name].read_bytes()
    tools.ffmpeg("-i", clips["plain.mp4"], "-c", "copy", folder / name)
    return (folder / name).read_bytes()


def with_duration(data, more):
    """The file with a header that says so many seconds more."""
    data = bytearray(data)
    flv = data[:3] == b"FLV"
    mark = b"duration\0" if flv else b"\x44\x89\x88"
    at = data.index(mark) + len(mark)
    seconds = struct.unpack(">d", data[at:at + 8])[0]
    data[at:at + 8] = struct.pack(">d", seconds + more * (1 if flv else 1000))
    return data


@pytest.mark.parametrize("more", [0, 1, 60])
@pytest.mark.parametrize("name", ["sound.webm", "plain.mkv", "film.mkv", "plain.flv"])
def test_a_whole_file_is_whole_whatever_its_duration(run, tmp_path, clips, name, more):
    (tmp_path / name).write_bytes(with_duration(make_end(clips, name, tmp_path), more))
    result = run("-q", name, "null:", "-f", "null")
    assert result.code == 0, result.stderr


@pytest.mark.parametrize("share", [0.4, 0.7, 0.999])
@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("name", ["sound.webm", "plain.mkv", "film.mkv"])
def test_a_cut_file_is_cut_whatever_its_duration(run, tmp_path, clips, name, share, more):
    data = with_duration(clips[name].read_bytes(), more)
    (tmp_path / name).write_bytes(data[:int(share * len(data))])
    result = run(name, "null:", "-f", "null")
    assert result.code == 3, result.stderr
    assert "ends before its own header or index says" in result.stderr


# ---- what cannot be decoded ----


def asf_object(guid, body):
    return uuid.UUID(guid).bytes_le + struct.pack("<Q", 24 + len(body)) + body


def with_asf_object(data, added):
    """A WMV with one object more in its header."""
    size, objects = struct.unpack("<QI", data[16:28])
    head = data[:16] + struct.pack("<QI", size + len(added), objects + 1) + data[28:size]
    return head + added + data[size:]


def text(*words):
    return b"".join(struct.pack("<I", len(word)) + word for word in words)


def element(mark, *parts):
    """An element of EBML, its size in eight bytes."""
    body = b"".join(parts)
    return mark + (1 << 56 | len(body)).to_bytes(8, "big") + body


def read_element(data, at):
    """The mark, where the content begins and how long it is."""
    first = 9 - data[at].bit_length()
    second = 9 - data[at + first].bit_length()
    size = int.from_bytes(data[at + first:at + first + second], "big") & (1 << 7 * second) - 1
    return data[at:at + first], at + first + second, size


def with_matroska_key(data):
    """A Matroska whose video says that it is encrypted (RFC 9559, 5.1.4.1.31)."""
    encryption = element(b"\x50\x35", b"\x47\xe1\x81\x05", element(b"\x47\xe2", b"a key"))
    encoding = element(b"\x62\x40", b"\x50\x33\x81\x01", encryption)
    at = data.index(b"\x16\x54\xae\x6b", data.index(b"\x16\x54\xae\x6b") + 4)  # an index is ahead
    tracks, track_at, tracks_size = read_element(data, at)
    track, content, size = read_element(data, data.index(b"\xae\1", track_at))
    rest = data[content + size:track_at + tracks_size]
    changed = element(tracks, element(track, data[content:content + size],
                                      element(b"\x6d\x80", encoding)), rest)
    _, segment, length = read_element(data, data.index(b"\x18\x53\x80\x67"))
    head = data[:data.index(b"\x18\x53\x80\x67")]
    return head + element(b"\x18\x53\x80\x67", data[segment:at], changed, data[track_at + tracks_size:])


def scrambled(data):
    data = bytearray(data)
    for at in range(0, len(data), SIZE):
        if data[at + 1] & 0x1f == 1 and data[at + 2] == 0 and data[at + 3] & 0x10:
            data[at + 3] |= 0x80
            begin = at + 4 + (1 + data[at + 4] if data[at + 3] & 0x20 else 0)
            data[begin:at + SIZE] = tools.random_picture(1, at + SIZE - begin, at).tobytes()
    return data


def renamed(data, mark):
    """An MP4 whose video is called something else."""
    at = data.index(b"avc1", data.index(b"stsd"))
    return data[:at] + mark + data[at + 4:]


@pytest.mark.parametrize("kind", ["wmv-drm", "wmv-playready", "ts", "mp4-fairplay", "mp4-other", "mkv"])
def test_encrypted_video_is_refused_in_any_container(run, tmp_path, clips, kind):
    name = f"locked.{kind.split('-')[0]}"
    wmv = tmp_path / "clear.wmv"
    tools.ffmpeg(*tools.SHORT, "-c:v", "wmv2", wmv)
    data = {
        "wmv-drm": lambda: with_asf_object(wmv.read_bytes(), asf_object(
            "2211B3FB-BD23-11D2-B4B7-00A0C955FC6E", text(b"secret", b"DRM\0", b"key\0", b"url\0"))),
        "wmv-playready": lambda: with_asf_object(wmv.read_bytes(), asf_object(
            "298AE614-2622-4C17-B935-DAE07EE9289C", text(b"license" * 6))),
        "ts": lambda: scrambled(clips["sound.ts"].read_bytes()),
        "mp4-fairplay": lambda: renamed(clips["plain.mp4"].read_bytes(), b"drmi"),
        "mp4-other": lambda: renamed(clips["plain.mp4"].read_bytes(), b"encv"),
        "mkv": lambda: with_matroska_key(clips["plain.mkv"].read_bytes()),
    }[kind]()
    (tmp_path / name).write_bytes(data)
    result = run(name, "o.mkv")
    assert result.code == 4, result.stderr
    assert f"{name} is encrypted; sluice needs the video in the clear" in result.stderr
    assert not (tmp_path / "o.mkv").exists()


@pytest.mark.parametrize("mark, words", [
    (b"m2v1", "the mpeg2video decoder makes no picture of its 50 packets"),
    (b"mp4v", "the mpeg4 decoder refuses its video: Invalid data"),
    (b"h263", "the h263 decoder refuses its video: Invalid data"),
])
def test_what_the_decoder_says_is_told(run, tmp_path, clips, mark, words):
    (tmp_path / "odd.mp4").write_bytes(renamed(clips["plain.mp4"].read_bytes(), mark))
    result = run("odd.mp4", "null:")
    assert result.code == 4, result.stderr
    assert words in result.stderr and "only" not in result.stderr


# ---- sizes that are damaged ----


def test_a_packet_that_claims_gigabytes_is_damage_and_not_a_lack_of_memory(run, tmp_path):
    """IVF writes the size of each packet ahead of it."""
    tools.ffmpeg(*tools.SHORT, "-c:v", "libvpx", "-deadline", "realtime", tmp_path / "whole.ivf")
    data = bytearray((tmp_path / "whole.ivf").read_bytes())
    at = 32
    for _ in range(5):
        at += 12 + struct.unpack("<I", data[at:at + 4])[0]
    for size in (0xffffffff, 0x80000000, 0x7fffffff, 0x7ffffff0, 0x70000000):
        data[at:at + 4] = struct.pack("<I", size)
        (tmp_path / "damaged.ivf").write_bytes(data)
        result = run("damaged.ivf", "null:", "-f", "null")
        assert result.code == 3, f"{size:x}: {result.stderr}"
        assert "memory" not in result.stderr.replace("memory    ", "")  # but for the summary's line

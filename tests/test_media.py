"""Files of every kind, real and generated: frames, timestamps, other streams, tags, exit codes."""

import functools
from pathlib import Path
from typing import NamedTuple

import pytest

import tools

FOLDER = tools.media_folder()
REAL = sorted(f.name for f in FOLDER.iterdir() if f.name != "INDEX.md") if FOLDER else []
MADE = [name for name in tools.RECIPES if name not in tools.NO_VIDEO | {"restarted.ts"}]
EVERY = [f"real/{name}" for name in REAL] + [f"made/{name}" for name in MADE]

# Exit codes other than 0: 3 for damage that decoding shows, 4 where there is nothing to filter.
EXIT = {
    "real/corrupted.mp4": 3,
    "real/sample_with_invalid_nalu.mp4": 3,
    "real/test-025.ts": 3,
    "real/av1_init.mp4": 4,
    "real/bbb_2ch_44kHz.wav": 4,
    "real/broken_data_stream.png": 4,
    "real/zero_byte_ffv1_gbrp10le.mkv": 4,
}
UNDECODABLE = {"real/sample_vvc.mp4": "vvc"}  # 4 where FFmpeg has no such decoder

# The stream that is filtered, where it is not the first video.
STREAM = {"real/nasa_13013.mp4": 3}

# Long files are compared by their first frames.
FRAMES = {"real/bbb_1080p_hls_40s.ts": 150, "real/vtest.avi": 150, "real/trailer.ogv": 300,
          "real/big_buck_bunny_0_30.webm": 150, "real/foreman-hevc-384.mp4": 100,
          "real/cockatoo.mp4": 100}

# ... and this one is filtered in part.
PART = {"real/bbb_1080p_hls_40s.ts": 250}

# Where filtered files go; all others to Matroska, which takes nearly everything.
SAME_KIND = {".mp4": ".mp4", ".mov": ".mov", ".ts": ".ts", ".flv": ".flv", ".mkv": ".mkv"}
IMAGES = (".png", ".jpg", ".tiff", ".webp", ".bmp")


@functools.lru_cache(None)
def has_decoder(name):
    return f" {name} " in tools.execute(["ffmpeg", "-v", "error", "-decoders"]).text


def exit_code(name):
    if name in UNDECODABLE:
        return 0 if has_decoder(UNDECODABLE[name]) else 4
    return EXIT.get(name, 0)


READABLE = [name for name in EVERY if exit_code(name) != 4]
MOVING = [name for name in READABLE if Path(name).suffix not in IMAGES]


@pytest.fixture
def file(request, clips):
    kind, name = request.param.split("/", 1)
    return FOLDER / name if kind == "real" else clips[name]


def every(names):
    return pytest.mark.parametrize("name, file", [(name, name) for name in names], ids=names,
                                   indirect=["file"])


def stream_of(name):
    """The filtered stream as ffmpeg's -map and ffprobe's -select_streams call it."""
    return (f"0:{STREAM[name]}", str(STREAM[name])) if name in STREAM else ("0:v:0", "v:0")


# ---- frames ----


@every([name for name in EVERY if name not in MOVING])
def test_exit_code_of_pictures_and_of_what_is_no_video(name, file, tmp_path):
    output = tmp_path / "out.png"
    result = tools.sluice("-q", file, output)
    assert result.code == exit_code(name), result.stderr
    assert output.exists() == (result.code == 0)
    if result.code == 4:
        assert file.name in result.stderr and len(result.stderr.splitlines()) == 1
    assert not tools.leftovers(tmp_path)


@every(READABLE)
def test_null_chain_is_ffmpegs_decode(name, file):
    """Samples, order and number of frames, and their timestamps."""
    limit = FRAMES.get(name)
    result = tools.sluice("-q", "-f", "null", *(["--frames", limit] if limit else []), file,
                          "hash:-", timeout=120)
    assert result.code == (0 if limit else exit_code(name)), result.stderr
    rows = tools.read_hashes(result.text)
    assert [row[0] for row in rows] == list(range(len(rows)))
    where, select = stream_of(name)
    theirs = tools.decode_hashes(file, where, limit)
    assert [(size, md5) for _, _, size, md5 in rows] == theirs
    times = tools.frame_times(file, select, 3 * limit if limit else None)[:limit]
    mine = [pts for _, pts, _, _ in rows]
    if None in times:
        assert all(a < b for a, b in zip(mine, mine[1:]))
    else:
        assert mine == times


# ---- the whole way to a file ----


def streams_and_packets(file):
    """Streams, each with its packets; chapters and tags of the file."""
    about = tools.probe(file, "-show_streams", "-show_format", "-show_chapters")
    for stream in about["streams"]:
        stream["packets"] = []
    packets = tools.probe(file, "-show_packets", "-show_data_hash", "md5", "-show_entries",
                          "packet=stream_index,pts_time,dts_time,data_hash")["packets"]
    for packet in packets:
        about["streams"][packet["stream_index"]]["packets"].append(packet)
    return about


def packet_times(stream):
    """AVI has decoding times only."""
    return sorted(float(packet.get("pts_time", packet.get("dts_time")))
                  for packet in stream["packets"])


def tick(stream):
    over, under = stream["time_base"].split("/")
    return float(over) / float(under)


def filtered_index(name, about):
    index = STREAM.get(name)
    return index if index is not None else next(
        k for k, stream in enumerate(about["streams"]) if stream["codec_type"] == "video")


class Done(NamedTuple):
    source: Path
    before: dict
    after: dict
    video: dict  # the filtered stream afterwards
    copies: list  # pairs of a copied stream before and after
    part: int  # so many frames were asked for; None: all


def is_chapter_track(stream):
    """QuickTime shows its chapters as a stream of data as well."""
    return stream.get("codec_name") == "bin_data" and not stream["packets"]


def describe(name, source, target, said):
    """Pair the streams; those that are left out have to be named in what was said."""
    before, after = streams_and_packets(source), streams_and_packets(target)
    rest = [stream for stream in after["streams"] if not is_chapter_track(stream)]
    filtered, video, copies = filtered_index(name, before), None, []
    for index, stream in enumerate(before["streams"]):
        if f"stream {index} " in said or is_chapter_track(stream):
            continue
        assert rest, f"stream {index} is missing"
        other = rest.pop(0)
        assert other["codec_type"] == stream["codec_type"], index
        if index == filtered:
            video = other
        else:
            copies.append((stream, other))
    assert video and not rest
    return Done(source, before, after, video, copies, PART.get(name))


@pytest.fixture(scope="module")
def done(clips, tmp_path_factory):
    """What the default chain makes of a file, made once."""
    folder = tmp_path_factory.mktemp("filtered")

    @functools.lru_cache(None)
    def make(name):
        kind, base = name.split("/", 1)
        source = FOLDER / base if kind == "real" else clips[base]
        target = folder / f"{kind}-{base}{SAME_KIND.get(source.suffix, '.mkv')}"
        limit = ["--frames", PART[name]] if name in PART else []
        result = tools.sluice("--preset", "ultrafast", *limit, source, target, timeout=120)
        assert result.code == exit_code(name), result.stderr
        return describe(name, source, target, result.stderr)

    return make


@pytest.mark.parametrize("name", MOVING)
def test_filtered_file_has_every_frame_at_its_time(name, done):
    it = done(name)
    _, select = stream_of(name)
    times = tools.frame_times(it.source, select, 3 * it.part if it.part else None,
                              "best_effort_timestamp_time")[:it.part]
    got = packet_times(it.video)
    assert len(got) == len(times)
    assert all(a < b for a, b in zip(got, got[1:]))
    if None in times:
        return
    # Times below zero, which some containers cannot say, move all streams together.
    starts = [packet_times(s)[0] for s in it.before["streams"]
              if s["packets"] and "pts_time" in s["packets"][0]]
    shift = max(0, -min(starts)) if abs(got[0] - times[0]) > tick(it.video) else 0
    worst = max(abs(a - b - shift) for a, b in zip(got, times))
    assert worst <= tick(it.video) * 0.501 + 1e-6, f"off by up to {worst:.6f} s"


@pytest.mark.parametrize("name", MOVING)
def test_other_streams_are_copied_byte_for_byte(name, done):
    it = done(name)
    for stream, other in it.copies:
        assert other.get("codec_name") == stream.get("codec_name")
        was, now = ([p["data_hash"] for p in s["packets"]] for s in (stream, other))
        assert now == (was[:len(now)] if it.part else was), stream["index"]
        assert len(now) >= 0.2 * len(was)
        for one, two in zip(packet_times(stream), packet_times(other)):
            assert abs(one - two) <= max(tick(stream), tick(other), 0.0045), stream["index"]


# Tags that containers write for themselves.
OWN_TAGS = {"encoder", "duration", "handler_name", "vendor_id", "creation_time", "major_brand",
            "minor_version", "compatible_brands", "alpha_mode"}


def tags_of(thing):
    return {key.lower(): value for key, value in thing.get("tags", {}).items()
            if key.lower() not in OWN_TAGS}


COMPARABLE = pytest.mark.parametrize(
    "name", [name for name in MOVING if Path(name).suffix in SAME_KIND])


@COMPARABLE
def test_tags_chapters_and_dispositions_come_along(name, done):
    it = done(name)
    assert ([(c["start_time"], c["end_time"], tags_of(c)) for c in it.before["chapters"]] ==
            [(c["start_time"], c["end_time"], tags_of(c)) for c in it.after["chapters"]])
    was = it.before["streams"][filtered_index(name, it.before)]
    for stream, other in [*it.copies, (was, it.video)]:
        assert other["disposition"] == stream["disposition"], stream["index"]
        assert tags_of(other).get("language", "und") == tags_of(stream).get("language", "und")
        assert tags_of(other).get("title") == tags_of(stream).get("title")
    assert it.video.get("sample_aspect_ratio", "1:1") == was.get("sample_aspect_ratio", "1:1")
    kept = tags_of(it.after["format"])
    lost = {key: value for key, value in tags_of(it.before["format"]).items()
            if kept.get(key) != value and not key.startswith("com.")}
    assert not lost


def rotation(stream):
    return [data["rotation"] for data in stream.get("side_data_list", []) if "rotation" in data]


@COMPARABLE
def test_colour_and_rotation_say_what_the_result_is(name, done):
    """Gray from the default chain: full range; matrix, primaries and transfer as before."""
    it = done(name)
    was = it.before["streams"][filtered_index(name, it.before)]
    assert it.video["color_range"] == "pc"
    frame = first_frame(it.source, stream_of(name)[1])
    for key in ("color_primaries", "color_transfer"):
        assert it.video.get(key) == was.get(key, frame.get(key)), key
    if was["pix_fmt"].startswith(("yuv", "gray")):
        assert it.video.get("color_space") == was.get("color_space", frame.get("color_space"))
    assert rotation(it.video) == rotation(was)


def first_frame(file, select):
    return tools.probe(file, "-select_streams", select, "-read_intervals", "%+#20",
                       "-show_frames")["frames"][0]


@pytest.mark.parametrize("name", ["made/hdr.mp4", "made/hdr.mkv"] + [
    name for name in REAL and ["real/hdr10-video-with-sdr-container.mp4"]])
def test_hdr_side_data_comes_along(name, done):
    it = done(name)
    frame = first_frame(it.source, "v:0")
    kinds = {data["side_data_type"]: data for data in it.video["side_data_list"]}
    for kind in ("Mastering display metadata", "Content light level metadata"):
        was, = (data for data in frame["side_data_list"] if data["side_data_type"] == kind)
        if kind.startswith("Mastering") and "max_luminance" not in was:
            continue  # values out of range, which newer FFmpeg does not pass on
        for key, value in was.items():
            assert number(kinds[kind][key]) == pytest.approx(number(value), abs=1e-4), key
    assert it.video["pix_fmt"] in ("yuv420p", "yuvj420p")  # H.264 of more bits plays in few places


def number(text):
    over, _, under = str(text).partition("/")
    return float(over) / float(under or 1) if over.replace(".", "").isdigit() else text


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".ts", ".avi", ".gif", ".y4m", ".png"])
def test_a_turned_picture_is_seen_upright_in_any_container(suffix, clips, tmp_path):
    output = tmp_path / f"out{suffix}"
    tools.sluice_whole("-q", "--frames", "1", "-f", "gray", clips["rotated.mp4"], output)
    seen = []
    for file in (clips["rotated.mp4"], output):
        tools.ffmpeg("-i", file, "-frames:v", "1", "-vf", "format=gray,setsar=1", "-f", "rawvideo",
                     "-bitexact", tmp_path / "seen.raw")
        (picture,), = tools.read_raw(tmp_path / "seen.raw", "gray", 120, 160)
        seen.append(picture.astype(float))
    assert abs(seen[0] - seen[1]).mean() < 12
    assert abs(seen[0] - seen[1][::-1, ::-1]).mean() > 25  # what a wrong turn would look like


@pytest.mark.parametrize("extra, message", [
    ("note.txt", "text/plain"), ("letters.ttf", "application/x-truetype-font")])
def test_attachments_come_along(extra, message, clips, tmp_path):
    output = tmp_path / "out.mkv"
    tools.sluice_whole("-q", clips["film.mkv"], output)
    found = {stream["tags"].get("filename"): stream["tags"].get("mimetype") for stream in
             tools.probe(output, "-show_streams")["streams"]
             if stream["codec_type"] == "attachment"}
    assert found.get(extra) == message


def track_of(folder, number):
    """A stream of a DASH presentation, as one file."""
    parts = [folder / f"init-stream{number}.m4s", *sorted(folder.glob(f"chunk-stream{number}-*.m4s"))]
    whole = folder / f"track{number}.mp4"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    return whole


@pytest.mark.parametrize("codec", ["aac", "mp2", "ac3"])
@pytest.mark.parametrize("name, options", [("out.mpd", []), ("out.m3u8", ["--option", "hls_segment_type=fmp4"])],
                         ids=["dash", "hls"])
def test_sound_of_a_transport_stream_goes_into_playlists_of_mp4(name, options, codec, tmp_path):
    """MPEG-TS has tags of its own, and AAC with headers that MP4 does not take."""
    source = tmp_path / "in.ts"
    tools.ffmpeg(*tools.VIDEO, *tools.SOUND, *tools.X264, "-c:a", codec, source)
    tools.sluice_whole("-q", source, tmp_path / name, *options)
    picture, sound = [track_of(tmp_path, k) for k in range(2)] if name == "out.mpd" else [tmp_path / name] * 2
    assert len(tools.decode_hashes(picture)) == 50
    told = [tools.probe(file, "-select_streams", "a", "-show_packets")["packets"] for file in (source, sound)]
    assert len(told[0]) == len(told[1])
    assert codec == "mp2" or tools.decode_hashes(sound, "0:a:0") == tools.decode_hashes(source, "0:a:0")


@pytest.mark.parametrize("sound, kept", [(["-c:a", "aac", "-mpegts_flags", "latm"], False), (["-c:a", "ac3"], True)])
@pytest.mark.parametrize("name, options", [("out.mpd", []), ("out.m3u8", ["--option", "hls_segment_type=fmp4"])],
                         ids=["dash", "hls"])
def test_playlists_of_mp4_take_the_sound_that_mp4_takes(name, options, sound, kept, tmp_path):
    """AAC in LATM is MPEG-TS's alone, and no filter makes plain AAC of it."""
    source = tmp_path / "in.ts"
    tools.ffmpeg(*tools.VIDEO, *tools.SOUND, *tools.X264, *sound, source)
    result = tools.sluice_whole(source, tmp_path / name, *options)
    kinds = [stream["codec_type"] for stream in tools.probe(tmp_path / name, "-show_streams")["streams"]]
    assert kinds == ["video", "audio"][:1 + kept]
    told = "stream 1 (audio, aac_latm) is left out: the output's format does not take it"
    assert (told in result.stderr) == (not kept)


# ---- a lossless way there and back ----


PHONE, WIDE = ["-ar", "8000", "-ac", "1"], ["-ar", "16000", "-ac", "1"]
SOUNDS = {  # of an encoder: its options, and a container that holds it
    "pcm_mulaw": (PHONE, "mkv"), "pcm_alaw": (PHONE, "mkv"), "adpcm_ms": ([], "mkv"),
    "adpcm_ima_wav": ([], "mkv"), "adpcm_yamaha": ([], "mkv"), "g722": (WIDE, "mkv"),
    "g726": (PHONE, "mkv"), "g723_1": ([*PHONE, "-b:a", "6300"], "mkv"), "wmav1": ([], "mkv"),
    "wmav2": ([], "mkv"), "libgsm_ms": (PHONE, "mkv"), "libspeex": (WIDE, "mkv"),
    "aac": (["-mpegts_flags", "latm"], "ts"), "pcm_s16le": ([], "mkv"), "flac": ([], "mkv"),
}


KEPT = [(encoder, ".mkv") for encoder in SOUNDS] + [("g722", ".mov"), ("adpcm_yamaha", ".mov"),
                                                     ("pcm_mulaw", ".avi"), ("aac", ".avi"),
                                                     ("aac", ".ts")]
LOST = [("pcm_mulaw", ".ts"), ("pcm_mulaw", ".m3u8"), ("flac", ".ts"), ("pcm_mulaw", ".mp4"),
        ("aac", ".mpd"), ("libgsm_ms", ".webm")]


@pytest.mark.parametrize("encoder, suffix", KEPT + LOST)
def test_sound_is_kept_where_it_can_be_read_again_and_else_its_loss_is_told(encoder, suffix, tmp_path):
    if not tools.has_encoder(encoder):
        pytest.skip(f"this FFmpeg has no {encoder}")
    options, held = SOUNDS[encoder]
    source, target = tmp_path / f"in.{held}", tmp_path / f"out{suffix}"
    tools.ffmpeg(*tools.SHORT, *tools.SOUND, *tools.X264, "-c:a", encoder, *options, "-shortest",
                 source)
    result = tools.sluice_whole(source, target, "-f", "null")
    before, after = ([stream["codec_name"] for stream in tools.probe(
        file, "-show_streams", "-select_streams", "a")["streams"]] for file in (source, target))
    assert len(before) == 1
    assert after == (before if (encoder, suffix) in KEPT else [])
    assert ("is left out: the output's format does not take it" in result.stderr) == (not after)


@pytest.mark.parametrize("name", ["tagged.mp4", "full.mp4", "deep.mp4", "hdr.mp4", "odd.mkv",
                                  "rotated.mp4", "anamorphic.mp4", "vfr.mkv",
                                  *[f"format-{p}.mkv" for p in tools.PIXEL_FORMATS]])
def test_null_chain_through_ffv1_changes_nothing(name, clips, tmp_path):
    output = tmp_path / "out.mkv"
    tools.sluice_whole("-q", "-f", "null", clips[name], output, "-c:v", "ffv1")
    assert (tools.decode_hashes(output, upright=True) ==
            tools.decode_hashes(clips[name], upright=True))
    before, after = (tools.probe(f, "-show_streams")["streams"][0] for f in (clips[name], output))
    for key in ("color_space", "color_primaries", "color_transfer"):
        assert after.get(key) == before.get(key), key
    assert after["pix_fmt"] == before["pix_fmt"].replace("yuvj", "yuv")
    assert (after.get("color_range") or "tv") == (before.get("color_range") or "tv")
    assert after.get("sample_aspect_ratio", "1:1") == before.get("sample_aspect_ratio", "1:1")


@pytest.mark.parametrize("name", ["film.mkv", "sound.ts", "late.mkv", "late.mp4", "late.ts",
                                  "vfr.mp4", "sound.avi"])
@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".mov", ".ts", ".avi"])
def test_sound_and_picture_stay_in_step_in_any_container(name, suffix, clips, tmp_path):
    """The distance from the first frame to the first sound, and the length of both."""
    output = tmp_path / f"out{suffix}"
    tools.sluice_whole("-q", "--preset", "ultrafast", clips[name], output)
    before, after = streams_and_packets(clips[name]), streams_and_packets(output)
    frames = [len(next(s for s in about["streams"] if s["codec_type"] == "video")["packets"])
              for about in (before, after)]
    assert frames[0] == frames[1] or suffix == ".avi"  # AVI fills gaps with empty packets
    starts = [[packet_times(s)[0] for s in about["streams"] if s["codec_type"] in ("video", "audio")]
              for about in (before, after)]
    for was, now in zip(*starts):
        assert now - starts[1][0] == pytest.approx(was - starts[0][0], abs=0.03)


def heard(file):
    """The packets of sound that players do not skip."""
    return [packet for packet in tools.probe(file, "-select_streams", "a", "-show_packets")["packets"]
            if "D" not in packet["flags"]]


@pytest.mark.parametrize("output", ["out.mkv", "out.mp4", "out.mov", "out.ts"])
def test_nothing_is_hidden_of_a_clock_that_begins_below_zero(output, tmp_path):
    """MPEG-TS whose clock comes to its end and wraps. What is below zero in MP4 is skipped."""
    source, target = tmp_path / "early.ts", tmp_path / output
    tools.ffmpeg(*tools.VIDEO, *tools.SOUND, *tools.X264, "-c:a", "aac", "-output_ts_offset", 95441.3, source)
    before = streams_and_packets(source)["streams"]
    assert float(before[0]["start_time"]) < -0.9
    tools.sluice_whole("-q", "--preset", "ultrafast", source, target)
    assert len(tools.decode_hashes(target)) == 50 and len(heard(target)) == len(heard(source))
    assert len(tools.decode_hashes(target, "0:a:0")) == len(tools.decode_hashes(source, "0:a:0"))
    was, now = ([packet_times(s)[0] for s in streams] for streams in (before, streams_and_packets(target)["streams"]))
    assert now[1] - now[0] == pytest.approx(was[1] - was[0], abs=0.002)


@pytest.mark.parametrize("name", ["film.mp4", "sound.webm", "opus.webm"])
def test_an_encoders_delay_stays_ahead_of_the_beginning(name, clips, tmp_path):
    """Sound that is there for the decoder only, below zero; a picture at zero or above stays where it is."""
    source = clips[name] if name != "opus.webm" else tmp_path / name
    if name == "opus.webm":
        tools.ffmpeg(*tools.VIDEO, *tools.SOUND, "-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libopus", source)
    tools.sluice_whole("-q", "--preset", "ultrafast", source, tmp_path / "out.mp4")
    was, now = (streams_and_packets(file)["streams"] for file in (source, tmp_path / "out.mp4"))
    for k in range(2):
        assert packet_times(now[k])[0] == pytest.approx(packet_times(was[k])[0], abs=0.002), k


def test_a_stream_that_restarts_its_clock_plays_on(clips, tmp_path):
    """Two recordings joined byte for byte: 0.8 s of video, not 0.4 s and a burst."""
    output = tmp_path / "out.mkv"
    tools.sluice("-q", clips["restarted.ts"], output)
    times = packet_times(streams_and_packets(output)["streams"][0])
    assert len(times) == 20
    assert min(b - a for a, b in zip(times, times[1:])) > 0.02


# ---- one result, however it is computed ----

SAME = [name for name in READABLE if name in (
    "real/amve.mp4", "real/bear-vp9-odd-dimensions.webm", "real/apple-prores-422-hq.mov",
    "real/photo-jpeg.mov", "real/newtonscradle.gif", "real/iss634.apng", "real/cfhd_odd.mov",
    "real/test-025.ts", "real/test_res_change.h264", "real/xdcam-ex-1080i50.mov",
    "real/cockatoo.mp4", "real/hdr10-video-with-sdr-container.mp4", "real/blue-go-video.mp4",
    "real/planar.tiff", "made/film.mkv", "made/deep.mp4", "made/full.mp4", "made/odd.mkv",
    "made/interlaced-h264.mkv", "made/resized.ts", "made/format-yuva420p.mkv",
    "made/format-yuv411p.mkv", "made/format-yuv440p.mkv", "made/format-gbrp10le.mkv",
    "made/still-palette.png", "made/animated.gif")]


@every(SAME)
def test_every_backend_gives_the_same_frames(name, file, cuda):
    runs = [["--backend", "scalar"], *[["--backend", "cpu", "--threads", n] for n in "127"]]
    runs += [["--backend", "cuda", "--ring", n] for n in "148"] if cuda else []
    frames = 2 if "1080" in name or "hdr10" in name else 6
    lists = [tools.sluice("-q", "--frames", frames, file, "hash:-", *run, "-f",
                          "brightness=10,gaussian=1.4,gray=mean,sobel").text for run in runs]
    still = Path(name).suffix in IMAGES
    assert len(tools.read_hashes(lists[0])) == (1 if still else frames)
    for run, got in zip(runs, lists):
        assert got == lists[0], run

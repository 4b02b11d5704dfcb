"""What an input may reach: a stranger's file reaches nothing but itself, a playlist from HTTP nothing
but its own host. Every file and every address that is opened is seen by strace."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

import live
import tools
from test_faults import Listener, playlists

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(
    not STRACE or subprocess.run([STRACE, "-o", "/dev/null", "true"], capture_output=True).returncode,
    reason="no strace that may trace")


def traced(folder, *args, **more):
    """Run sluice; what it opened and whom it called."""
    calls = folder / "calls"
    result = tools.execute([STRACE, "-f", "-qq", "-s", "4096", "-e", "trace=open,openat,connect,sendto",
                            "-o", calls, tools.SLUICE, *args], cwd=folder, **more)
    text = calls.read_text()
    return result, text, re.findall(r"connect\([^{]*{sa_family=AF_INET6?, .*?}", text)


def list_in(folder, kind, other):
    name = folder / ("list.ffconcat" if kind == "ffconcat" else "list.mpd" if kind == "dash" else "list.m3u8")
    name.write_text(playlists(other)[kind])
    return name


NAMES = ["{0}", "file:{0}", "file://{0}", "async:{0}", "async://{0}", "cache://{0}", "cache:{0}",
         "concat://{0}", "concat:{0}", "subfile://{0}", "subfile,,start,0,end,0,,:{0}", "crypto://{0}",
         "hls+file://{0}", "concatf://{0}", "FILE://{0}"]


@needs_strace
@pytest.mark.parametrize("format", [[], ["-F"]])
@pytest.mark.parametrize("kind", ["hls", "hls-key", "ffconcat", "dash"])
@pytest.mark.parametrize("name", NAMES)
def test_lists_in_files_reach_nothing(tmp_path, clips, name, kind, format):
    shutil.copy(clips["sound.ts"], tmp_path / "other.ts")
    with Listener() as listener:
        for other in (tmp_path / "other.ts", "other.ts", f"{listener.url}/x.ts"):
            file = list_in(tmp_path, kind, other)
            more = ["-F", {"ffconcat": "concat", "dash": "dash"}.get(kind, "hls")] if format else []
            result, opened, connects = traced(tmp_path, *more, name.format(file), "null:")
            assert result.code == 4, result.stderr
            assert "other.ts" not in opened and not connects, result.stderr
        assert listener.calls == 0


@needs_strace
@pytest.mark.parametrize("suffix", ["m3u8", "png", "txt"])
@pytest.mark.parametrize("kind", ["hls", "hls-key", "ffconcat", "dash", "sdp"])
def test_lists_as_templates_reach_nothing(tmp_path, clips, kind, suffix):
    shutil.copy(clips["sound.ts"], tmp_path / "other.ts")
    for other in (tmp_path / "other.ts", "other.ts", "http://127.0.0.1:9/x"):
        (tmp_path / f"t.{suffix}").write_text(playlists(other)[kind])
        result, opened, connects = traced(tmp_path, clips["plain.mp4"], "null:", "-f", f"match=t.{suffix}")
        assert result.code == 2 and f"t.{suffix}; it is no picture" in result.stderr, result.stderr
        assert "other.ts" not in opened and not connects


@pytest.mark.parametrize("name", ["concat://x", "async://x", "cache://http://h/x", "gopher://h/x", "hls://h",
                                  "hls+http://h/x", "crypto+http://h/x", "ipfs://x", "data://x"])
def test_addresses_of_other_kinds_are_refused(run, name):
    result = run(name, "null:")
    assert result.code == 4 and "is no address that sluice opens" in result.stderr


@pytest.mark.parametrize("name", ["{}/x", "lavfi:testsrc", "v4l2:/dev/video0", "-"])
def test_a_file_is_a_file_whatever_its_name(run, tmp_path, clips, name):
    """Scripts write file: ahead of names that they do not know."""
    with Listener() as listener:
        result = run("file:" + name.format(listener.url), "null:", "--frames", 1, timeout=20)
        assert result.code == 4 and "No such file" in result.stderr, result.stderr
        assert listener.calls == 0


def test_an_output_that_is_to_be_a_file_is_one(run, tmp_path, clips):
    for name, file in ("-", "-"), ("null:", "file:null:"):
        result = run("-q", clips["plain.mp4"], f"file:{name}", "-F", "matroska", "--frames", 1)
        assert result.code == 0 and not result.stdout, result.stderr
        assert (tmp_path / file).stat().st_size > 500


# ---- HTTP ----


class Site:
    """Serves playlists and a clip: what a path answers is in `pages`."""

    def __init__(self, clips):
        self.pages, self.asked = {"/clip.ts": clips["sound.ts"].read_bytes()}, []
        self.http = live.Http(self.answer)
        self.url = self.http.url.rsplit("/", 1)[0]

    def answer(self, handler):
        self.asked.append(handler.path)
        page = self.pages.get(handler.path)
        handler.send_response(404 if page is None else 302 if isinstance(page, str) else 200)
        if isinstance(page, str):
            handler.send_header("Location", page)
            page = b""
        handler.send_header("Content-Type", "application/vnd.apple.mpegurl" if "m3u8" in handler.path else
                            "application/octet-stream")
        handler.send_header("Content-Length", str(len(page or b"")))
        handler.end_headers()
        handler.wfile.write(page or b"")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.__exit__()


@pytest.fixture
def site(clips):
    with Site(clips) as made:
        yield made


def hls(*segments, ends=True, key=""):
    text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n" + key
    return (text + "".join(f"#EXTINF:2,\n{one}\n" for one in segments) +
            ends * "#EXT-X-ENDLIST\n").encode()


def test_a_playlist_from_http_is_read_from_its_own_host(run, site):
    site.pages["/a/list.m3u8"] = hls("../clip.ts", f"{site.url}/clip.ts")
    site.pages["/master.m3u8"] = b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\na/list.m3u8\n"
    site.pages["/moved.m3u8"] = "/master.m3u8"
    for name in ("a/list", "master", "moved"):
        result = run(f"{site.url}/{name}.m3u8", "null:", "-q")
        assert result.code == 0, result.stderr
    assert site.asked.count("/clip.ts") >= 6


OTHERS = {
    "a segment": lambda o: hls("clip.ts", f"{o}/clip.ts"),
    "the first segment": lambda o: hls(f"{o}/clip.ts"),
    "of a broadcast": lambda o: hls("clip.ts", f"{o}/clip.ts", ends=False),
    "a key": lambda o: hls("clip.ts", key=f'#EXT-X-KEY:METHOD=AES-128,URI="{o}/key"\n'),
    "the encrypted": lambda o: hls(f"{o}/clip.ts", key='#EXT-X-KEY:METHOD=AES-128,URI="data:,0123456789abcdef"\n'),
    "a list": lambda o: f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n{o}/x.m3u8\n".encode(),
    "a start": lambda o: hls("clip.ts", key=f'#EXT-X-MAP:URI="{o}/init"\n'),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_playlist_from_http_reaches_no_other_host(run, site, what):
    with Listener() as listener:
        other = listener.url.replace("127.0.0.1", "localhost")
        site.pages["/list.m3u8"] = OTHERS[what](other)
        result = run(f"{site.url}/list.m3u8", "null:", "--stall-timeout", 2, "--reconnect", "no")
        assert listener.calls == 0
    assert result.code in (3, 4), result.stderr
    if what == "the encrypted" and tools.ffmpeg_version() >= (8, 0):
        return # FFmpeg refuses its key before it comes to the host
    assert "--playlist-hosts" in result.stderr
    assert f"({other}/" in result.stderr or f"({'crypto+' + other}/" in result.stderr


@needs_strace
@pytest.mark.parametrize("other", ["file:///etc/hostname", "/etc/hostname", "concat:/etc/hostname",
                                   "subfile,,start,0,end,9,,:/etc/hostname", "tcp://127.0.0.1:9",
                                   "async:file:/etc/hostname", "hls+file:///etc/hostname"])
def test_a_playlist_from_http_reaches_no_file_and_no_port(tmp_path, site, other):
    site.pages["/list.m3u8"] = hls("clip.ts", other)
    for more in ([], ["--playlist-hosts", "any"]):
        result, opened, connects = traced(tmp_path, f"{site.url}/list.m3u8", "null:", *more)
        assert "/etc/hostname\"" not in opened.replace("GET /etc/hostname", ""), result.stderr
        assert not any("htons(9)" in connect for connect in connects)


@pytest.mark.skipif(tools.ffmpeg_version() < (5, 0), reason="this FFmpeg redirects without asking")
def test_a_redirected_segment_reaches_no_other_host(run, site):
    with Listener() as listener:
        site.pages["/clip2.ts"] = listener.url.replace("127.0.0.1", "localhost") + "/x"
        site.pages["/list.m3u8"] = hls("clip.ts", "clip2.ts")
        result = run(f"{site.url}/list.m3u8", "null:")
        assert listener.calls == 0 and "/clip2.ts" in site.asked, result.stderr


def knows_localhost():
    try:
        return bool(socket.getaddrinfo("localhost", 80))
    except socket.gaierror:
        return False


# A base system has no /etc/hosts.
NEEDS_LOCALHOST = pytest.mark.skipif(not knows_localhost(), reason="localhost is not known here")


@NEEDS_LOCALHOST
@pytest.mark.parametrize("hosts", ["localhost", "example.org,local*", "any"])
def test_hosts_that_are_allowed_are_reached(run, site, hosts):
    site.pages["/list.m3u8"] = hls(site.url.replace("127.0.0.1", "localhost") + "/clip.ts")
    assert run(f"{site.url}/list.m3u8", "null:", "--playlist-hosts", "example.org").code == 4
    assert site.asked == ["/list.m3u8"]
    result = run(f"{site.url}/list.m3u8", "null:", "-q", "--playlist-hosts", hosts)
    assert result.code == 0 and site.asked[-1] == "/clip.ts", result.stderr


@pytest.mark.parametrize("kind", ["ffconcat", "dash", "sdp"])
@pytest.mark.parametrize("format", [[], ["-F"]])
def test_other_lists_from_http_are_refused(run, site, kind, format):
    with Listener() as listener:
        site.pages["/list"] = playlists(f"{listener.url}/x.mp4")[kind].encode()
        more = ["-F", {"ffconcat": "concat"}.get(kind, kind)] if format else []
        result = run(*more, f"{site.url}/list", "null:")
        assert result.code == 4, result.stderr
        assert "list of other" in result.stderr or (kind == "dash" and "Invalid data" in result.stderr)
        assert listener.calls == 0


# ---- TLS ----


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    made = tools.execute(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                          folder / "key", "-out", folder / "cert", "-days", "2", "-subj", "/CN=localhost",
                          "-addext", "subjectAltName=DNS:localhost"])
    assert made.code == 0, made.stderr
    return folder


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
@NEEDS_LOCALHOST
def test_who_is_on_the_other_side_of_tls_is_said(run, clips, certificate):
    with Site(clips) as site:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "cert", certificate / "key")
        server = site.http.server
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = site.url.replace("http://127.0.0.1", "https://localhost")
        site.pages["/list.m3u8"] = hls("clip.ts")
        site.pages["/down.m3u8"] = hls(url.replace("https", "http") + "/clip.ts")
        for name in ("clip.ts", "list.m3u8"):
            asked = len(site.asked)
            result = run(f"{url}/{name}", "null:")
            assert result.code == 0 and "not verified" in result.stderr, result.stderr
            result = run(f"{url}/{name}", "null:", "--ca-file", certificate / "cert", "--json", "-")
            assert result.code == 0 and "certificate is valid" in result.stderr, result.stderr
            assert json.loads(result.text)["input"]["tls"] == "verified"
            asked = len(site.asked)
            result = run(f"{url}/{name}", "null:", "--tls-verify")
            assert result.code == 4 and len(site.asked) == asked, result.stderr
            assert "certificate" in result.stderr, result.stderr
            result = run(f"{url}/{name}".replace("localhost", "127.0.0.1"), "null:", "--ca-file",
                         certificate / "cert")
            assert result.code == 4 and len(site.asked) == asked, result.stderr
        result = run(f"{url}/clip.ts", "null:", "--ca-file", "nosuch.pem")
        assert result.code == 2 and "--ca-file: nosuch.pem cannot be read" in result.stderr, result.stderr
        result = run(f"{url}/down.m3u8", "null:")
        assert result.code == 4 and "by https only" in result.stderr, result.stderr
        with Site(clips) as plain:
            site.pages["/moved.ts"] = f"{plain.url}/clip.ts"
            result = run(f"{url}/moved.ts", "null:", "--json", "-")
            assert result.code == 0 and "encrypted" not in result.stderr, result.stderr
            assert json.loads(result.text)["input"]["tls"] is None


def test_whom_ffmpeg_cannot_verify_is_not_called(run):
    with Listener() as listener:
        result = run(listener.url.replace("http", "rtmpts") + "/x", "null:", "--tls-verify")
        assert result.code == 4 and "cannot verify rtmpts" in result.stderr, result.stderr
        assert listener.calls == 0

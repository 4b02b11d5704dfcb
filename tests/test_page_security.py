"""The control page and those who mean it ill: other sites, strangers, slow, greedy and broken clients."""

import html.parser
import http.client
import json
import random
import re
import socket
import time

import pytest

import tools
from test_outputs import until
from test_serve import Shown, media, serve  # noqa: F401, media is a fixture

WEB = tools.ROOT / "web"
FILES = ["/", "/app.js", "/style.css"]
LOOKED_AT = ["/api/stages", "/api/chain", "/api/stats", "/api/histogram", "/api/timeline", "/api/command",
             "/api/player", "/api/inputs", "/api/snapshot", "/api/recordings/none.mkv"]
STREAMS = ["/api/events", "/api/video?codec=mjpeg"]
CHANGES = [
    # method, path, a body that is fine
    ("PUT", "/api/chain", {"chain": "invert"}),
    ("PATCH", "/api/options", {"gaussian.sigma": 3}),
    ("POST", "/api/undo", {}),
    ("POST", "/api/redo", {}),
    ("POST", "/api/player", {"action": "pause"}),
    ("POST", "/api/input", {"kind": "media", "name": "plain.mp4"}),
    ("POST", "/api/compare", {}),
    ("POST", "/api/record", {"action": "start"}),
    ("POST", "/api/upload?name=stolen.mp4", {}),
]
NAMES = [f"{method} {path}" for method, path, _ in CHANGES]
FREE = ("upload", "compare")  # what takes any body


def raw(page, text, seconds=5):
    """(code, headers, body) of what is sent as it stands; code 0: none."""
    with socket.create_connection(page.host.replace("0.0.0.0", "127.0.0.1").split(":"), timeout=seconds) as line:
        line.sendall(text if isinstance(text, bytes) else text.encode())
        answer = http.client.HTTPResponse(line)
        try:
            answer.begin()
            return answer.status, answer.headers, answer.read()
        except (http.client.HTTPException, OSError):
            return 0, {}, b""


def asked(page, method, path, body=None, **headers):
    """The text of a request; a header that is None is left out."""
    data = b"" if body is None else json.dumps(body).encode()
    fields = {"Host": page.host, "Connection": "close", "Content_Length": str(len(data)) if data else None,
              "Content_Type": "application/json" if data else None, **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + data


def is_refusal(headers, body):
    """Whether it is a refusal as the interface has them."""
    told = json.loads(body) if headers.get("Content-Type", "").startswith("application/json") else {}
    return told.get("ok") is False and len(told.get("error", "")) > 5


@pytest.fixture
def page(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"], "-f", "gray,gaussian=2") as shown:
        shown.await_input(state="running")
        yield shown
        assert shown.process.poll() is None
        assert shown.stop()[0] == 128 + 15


def test_every_change_of_the_interface_is_tried_here():
    told = json.loads((WEB / "openapi.json").read_text())["paths"]
    changes = {(method.upper(), path) for path, methods in told.items() for method in methods if method != "get"}
    assert changes - {("POST", "/login")} == {(method, path.split("?")[0]) for method, path, _ in CHANGES}


# ---- other sites ----


@pytest.mark.parametrize("path", FILES + LOOKED_AT + ["/none", "/api/none"])
def test_every_answer_has_its_walls(page, path):
    code, headers, _ = raw(page, asked(page, "GET", path, Origin="http://evil.example"))
    assert code, path
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    assert rules["default-src"] == "'self'" and rules["frame-ancestors"] == "'none'"
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & set(" ".join(rules.values()).split())
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Referrer-Policy"] == "no-referrer"
    assert not [name for name in headers if name.lower().startswith("access-control")]


STRANGE = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"},
           {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}]


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_pages_of_other_sites_change_nothing(page, change):
    for headers in STRANGE:
        code, answer, body = raw(page, asked(page, *change, **headers))
        assert code == 403 and is_refusal(answer, body), (headers, body)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None):
        code, answer, body = raw(page, asked(page, *change[:2], {"a": 1}, Content_Type=kind))
        assert code == 415 or "upload" in change[1], (kind, body)  # what forms can send
    assert page.chain() == "gray,gaussian=sigma=2" or page.chain() == "gray,gaussian=2"
    assert page.fine("/api/player")["mode"] == "live"


def test_pages_of_other_sites_see_and_cost_nothing(page):
    for path in LOOKED_AT + STREAMS:
        for site in ("cross-site", "same-site"):
            code, headers, body = raw(page, asked(page, "GET", path, Sec_Fetch_Site=site))
            assert code == 403 and is_refusal(headers, body), path
    assert raw(page, asked(page, "GET", "/", Sec_Fetch_Site="cross-site"))[0] == 200  # a link


@pytest.mark.parametrize("change", CHANGES + [("GET", path, None) for path in FILES + LOOKED_AT + STREAMS],
                         ids=NAMES + FILES + LOOKED_AT + STREAMS)
def test_other_names_are_not_ours(page, change):
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80", ""):
        code, answer, body = raw(page, asked(page, *change, Host=host, Origin=f"http://{host}"))
        assert code == 421, (host, body)
        assert not change[1].startswith("/api/") or is_refusal(answer, body)


# ---- the token ----


def test_without_the_token_there_is_nothing(tmp_path, media):
    with serve(tmp_path, "--media", media, "--token", "geheim123", token="geheim123") as page:
        for path in FILES:
            code, _, body = raw(page, asked(page, "GET", path))
            assert code == 200 and b"geheim" not in body
        for method, path, body in CHANGES + [("GET", path, None) for path in LOOKED_AT + STREAMS + ["/api/none"]]:
            code, headers, told = raw(page, asked(page, method, path, body))
            assert code == 401 and is_refusal(headers, told), path
            code, headers, told = raw(page, asked(page, method, path + "?token=geheim123", body))
            assert code == 401, path
        assert not [path for path in media.iterdir() if "stolen" in path.name]
        login = asked(page, "POST", "/login", Content_Length="9") + b"geheim123"
        code, headers, told = raw(page, login)
        cookie = headers["Set-Cookie"]
        assert code == 200 and {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; ")) and "geheim" not in cookie
        assert raw(page, asked(page, "GET", "/api/chain", Cookie=cookie.split(";")[0]))[0] == 200
        wrong = cookie.split("=")[0] + "=geheim123"
        assert raw(page, asked(page, "GET", "/api/chain", Cookie=wrong))[0] == 401
        login = login.replace(b"123", b"124")
        assert raw(page, login)[0] == 401


# ---- paths ----


CLIMBS = ["/../../../../../../etc/passwd", "/api/recordings/../../../../../../etc/passwd",
          "/api/recordings/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/api/recordings/..%2f..%2f..%2f..%2fetc%2fpasswd",
          "/api/recordings//etc/passwd", "/api/recordings/%2fetc%2fpasswd", "//etc/passwd", "/./etc/passwd",
          "/api/recordings/..", "/api/recordings/.", "/api/recordings/", "/api/recordings/%00", "/%", "/%zz",
          "/api/recordings/..\\..\\outside.mkv", "/web/index.html", "/api", "/api/", "*", "/api/recordings/.hidden.mkv",
          "/api/recordings/link.mkv", "/api/recordings/up/outside.mkv", "/api/recordings/" + 5000 * "x"]


def test_nothing_outside_is_read(tmp_path, media):
    with serve(tmp_path, "--media", media) as page:
        for path in CLIMBS:
            code, _, body = raw(page, asked(page, "GET", path))
            assert code in (400, 404), (path, code)
            assert b"root:" not in body and b"matroska" not in body
        page.take("media", "plain.mp4")
        page.await_input(state="running")
        assert raw(page, asked(page, "GET", "/api/recordings/plain.mp4"))[0] == 404  # is not of this run
        page.fine("/api/record", {"action": "start"})
        until(lambda: page.fine("/api/stats")["recording"]["frames"] > 2)
        name = page.fine("/api/record", {"action": "stop"})["name"]
        until(lambda: not page.fine("/api/stats")["recording"]["finishing"])
        code, headers, body = raw(page, asked(page, "GET", "/api/recordings/" + name))
        assert code == 200 and body == (media / name).read_bytes()
        assert headers["Content-Disposition"].startswith("attachment") and headers["Content-Type"] == "video/mp4"


# ---- the page itself ----


class Look(html.parser.HTMLParser):
    """What a page asks for, and what its policy would not let it do."""

    def __init__(self):
        super().__init__()
        self.inline, self.asks, self.within = [], [], None

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.within = tag
        self.inline += [f"{tag} {name}" for name in told if name.startswith("on") or name == "style"]
        self.asks += [told[name] for name in ("src", "href") if told.get(name)]

    def handle_data(self, data):
        if self.within in ("script", "style") and data.strip():
            self.inline.append(data.strip()[:40])

    def handle_endtag(self, tag):
        self.within = None


def test_the_page_asks_nobody_else():
    look = Look()
    look.feed((WEB / "index.html").read_text())
    assert look.inline == []
    assert all(not re.match(r"[a-z]+:|//", address) for address in look.asks), look.asks
    for file in WEB.glob("*.js"):
        assert not re.search(r"\beval\(|new Function|https?://(?!www\.w3\.org)|document\.write|\bimport\(['\"]http",
                             file.read_text()), file
    for file in WEB.glob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", file.read_text()), file


# ---- bodies ----


BROKEN = [b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}", b"\0", b"\xff\xfe", b'{"chain":1}', b'{"chain":null}',
          b'{"chain":"' + 3000 * b"gray," + b'gray"}', b'{"chain":"gray\\u0000invert"}', b'{"chain":"\xff"}',
          50000 * b"[", 20000 * b'{"a":', b'{"a":1e999}', b'{"gaussian.sigma":1e308}', b'{"gaussian.sigma":"x"}',
          b'{"gaussian#99999999999.sigma":1}', b'{"action":"seek","at":-1e308}', b'{"action":"seek","at":"x"}',
          b'{"action":"step","frames":99999999999999999999}', b'{"action":"play","rate":-1}', b'{"action":[]}',
          b'{"kind":"media","name":{}}', b'{"kind":"media","name":"' + 60000 * b"x" + b'"}',
          b'{"chain":"tee=/tmp/x"}', b'{"chain":"stats=/tmp/sluice-stolen"}']


@pytest.mark.parametrize("change", [change for change in CHANGES if not any(word in change[1] for word in FREE)],
                         ids=[name for name in NAMES if not any(word in name for word in FREE)])
def test_broken_bodies_are_refused_in_words(page, change):
    for body in BROKEN:
        text = asked(page, *change[:2], Content_Type="application/json", Content_Length=str(len(body))) + body
        code, headers, told = raw(page, text)
        assert code == 200 or 400 <= code < 500 and is_refusal(headers, told), (body[:50], code, told)
    page.fine("/api/chain")


def test_bodies_have_an_end(page):
    head = asked(page, "PUT", "/api/chain", Content_Type="application/json", Content_Length="99999999999")
    code, headers, body = raw(page, head)
    assert code == 413 and is_refusal(headers, body)
    head = asked(page, "PUT", "/api/chain", Content_Type="application/json", Transfer_Encoding="chunked")
    chunk = b"fffff\r\n" + 0xfffff * b"x" + b"\r\n"
    assert raw(page, head + chunk + b"0\r\n\r\n")[0] in (413, 0)
    with pytest.raises(OSError):
        with socket.create_connection(page.host.split(":"), timeout=10) as line:
            line.sendall(head)
            for _ in range(1000):
                line.sendall(chunk)
    assert page.fine("/api/chain")


def test_an_upload_that_is_too_large_is_refused_before_it_comes(tmp_path, media):
    with serve(tmp_path, "--media", media, "--upload-max", "1M") as page:
        for size in ("1000001", "99999999999", "9999999999999999999"):
            head = asked(page, "POST", "/api/upload?name=large.mp4", Content_Length=size, Expect="100-continue")
            code, headers, body = raw(page, head)
            assert code == 413 and is_refusal(headers, body)
    assert not [path for path in media.iterdir() if "upload" in path.name or "large" in path.name]


def test_an_upload_that_breaks_off_leaves_nothing(tmp_path, media, clips):
    data, before = clips["plain.mp4"].read_bytes(), sorted(media.iterdir())
    with serve(tmp_path, "--media", media) as page:
        head = asked(page, "POST", "/api/upload?name=half.mp4", Content_Length=str(len(data)))
        with socket.create_connection(page.host.split(":")) as line:
            line.sendall(head + data[: len(data) // 2])
            until(lambda: sorted(media.iterdir()) != before)
        until(lambda: sorted(media.iterdir()) == before)
        with socket.create_connection(page.host.split(":")) as line:
            line.sendall(head + data[: len(data) // 2])
            until(lambda: sorted(media.iterdir()) != before)
            page.stop()
    assert sorted(media.iterdir()) == before


# ---- those who come in numbers ----


def test_crowds_hold_up_nothing(tmp_path, clips):
    """500 connections that ask nothing, half a request or a stream, in a run that goes at its source's pace."""
    with Shown(tmp_path, clips["plain.mp4"], "hash:out.txt", "--live", "--json", "run.json", "--page",
               "127.0.0.1:0") as page:
        start, crowd = time.monotonic(), []
        texts = [b"", b"GET /api/st", asked(page, "GET", "/api/events"), asked(page, "GET", "/api/video?codec=mjpeg"),
                 asked(page, "PUT", "/api/chain", Content_Type="application/json", Content_Length="100"),
                 asked(page, "POST", "/api/upload?name=x.mp4", Content_Length="100000")]
        for k in range(500):
            line = socket.create_connection(page.host.split(":"), timeout=5)
            line.sendall(texts[k % len(texts)])
            crowd.append(line)
        assert page.process.wait(20) == 0
        assert time.monotonic() - start < 6
    told = tools.load(tmp_path / "run.json")
    assert told["frames"]["out"] == 50 and told["frames"]["dropped_late"] == 0, told


def test_one_is_answered_among_a_crowd(page):
    crowd = []
    for k in range(200):
        crowd.append(socket.create_connection(page.host.split(":"), timeout=5))
        crowd[-1].sendall([b"", b"G", b"GET /api/stats HTTP/1.1\r\nHost: "][k % 3])
        if k % 20 == 0:
            start = time.monotonic()
            assert raw(page, asked(page, "GET", "/api/chain"))[0] == 200
            assert time.monotonic() - start < 1
    for line in crowd:
        line.close()


# ---- anything at all ----


def test_random_requests_are_survived(page):
    """Requests of the interface with parts exchanged, cut, doubled and made up."""
    dice = random.Random(15)
    paths = FILES + LOOKED_AT + STREAMS + [path for _, path, _ in CHANGES] + CLIMBS
    words = ["kind=split", "stage=-1", "stage=99999999999", "other=%67ray", "codec=h265", "kind=", "x", "=", "&&", "%41",
             "at=nan", "stage=0x1", "other=" + 5000 * "a", "kind=difference&other=invert"]
    for k in range(400):
        method = dice.choice(["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE", "get", "X" * 300])
        path = dice.choice(paths) + dice.choice(["", "?" + "&".join(dice.sample(words, 3))])
        body = dice.choice([b"", dice.choice(BROKEN), dice.randbytes(dice.randrange(3000))])
        sizes = [str(len(body)), None, "-1", "1e3", "0x10", str(len(body) + 5), "18446744073709551616", "0"]
        text = asked(page, method, path, Content_Type=dice.choice(["application/json", "text/plain", "x" * 9000, None]),
                     Content_Length=dice.choices(sizes, [9, 1, 1, 1, 1, 1, 1, 1])[0],
                     Transfer_Encoding=dice.choices([None, "chunked", "gzip"], [9, 1, 1])[0],
                     Host=dice.choices([page.host, "[::1", "\0", "a" * 5000], [9, 1, 1, 1])[0],
                     Expect=dice.choices([None, "100-continue"], [9, 1])[0]) + body
        if dice.random() < 0.2:
            at = dice.randrange(len(text))
            text = text[:at] + dice.randbytes(dice.randrange(8)) + text[at + dice.randrange(8):]
        with socket.create_connection(page.host.split(":"), timeout=0.2) as line:
            try:
                line.sendall(text)
                line.recv(4096)
            except OSError:
                pass
        assert page.process.poll() is None, (k, text)
    assert page.fine("/api/chain")["ok"]

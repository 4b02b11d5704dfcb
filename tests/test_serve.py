"""`sluice serve` and --page: the control page's life, from its address to its end."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import tools
from live import end_with_us, free_port
from test_outputs import until


# ---- what is refused ----


SERVE_REFUSES = [
    # arguments, words
    (["in.mp4", "out.mp4"], ["serve writes no output", "--page 8080"]),
    (["-o", "out.mp4"], ["serve writes no output"]),
    (["in.mp4", "--page", "8080"], ["--listen"]),
    (["in.mp4", "--json", "-"], ["--json", "run with outputs"]),
    (["in.mp4", "--replay", "journal"], ["--replay"]),
    (["in.mp4", "--trace", "trace"], ["--trace"]),
    (["in.mp4", "-f", "gausian"], ["did you mean", "gaussian"]),
    (["--token", ""], ["--token takes up to 200 letters"]),
    (["--token", "ge heim"], ["--token takes"]),
    (["--token", "geheim" * 40], ["--token takes"]),
    (["--token", "@none"], ["none cannot be read"]),
    (["--tls-key", "key.pem"], ["stand together"]),
    (["--keep", "soon"], ["--keep", "soon"]),
    (["--upload-max", "0"], ["--upload-max", "500M"]),
]


@pytest.mark.parametrize("words, said", SERVE_REFUSES, ids=[" ".join(row[0])[:40] for row in SERVE_REFUSES])
def test_serve_refuses(run, tmp_path, words, said):
    result = run("serve", *words)
    assert result.code == 2 and not result.stdout, result.stderr
    assert all(word in result.stderr for word in said) and "heim" not in result.stderr, result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["plan", "doctor"])
def test_options_of_the_page_are_for_pages(run, command):
    result = run(command, "--upload-max", "1G")
    assert result.code == 2 and "--upload-max is of the control page" in result.stderr

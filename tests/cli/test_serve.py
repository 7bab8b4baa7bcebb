"""qkv serve as a process: the printed address, a clean end at SIGINT, and refusals."""

import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
from typer.testing import CliRunner

from qkv.cli import app


def refused(*words):
    with pytest.raises(Exception) as caught:
        CliRunner().invoke(app, ["serve", "--no-open", *words], catch_exceptions=False)
    return str(caught.value)


def test_it_serves_on_a_free_port_and_ends_at_ctrl_c():
    command = [sys.executable, "-m", "qkv", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
        for _ in range(200):
            try:
                assert httpx.get(f"{address}api/health").json()["status"] == "ok"
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        described = process.stdout.readline()  # before communicate, which does not see what is buffered
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "openapi.json" in described and "Traceback" not in err


def test_beyond_this_machine_the_token_is_printed_once():
    command = [sys.executable, "-m", "qkv", "serve", "--host", "0.0.0.0", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address, token = re.search(r"(http://127\.0\.0\.1:\d+/)\?token=(\S+)", process.stdout.readline()).groups()
        for _ in range(200):
            try:
                assert httpx.get(f"{address}api/health").status_code == 401
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        assert httpx.get(f"{address}api/health", headers={"authorization": f"Bearer {token}"}).status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert len(token) >= 24 and token not in out + err


def test_refusals_say_what_to_do(tmp_path):
    assert "no such folder" in refused("--model", "nothing") and "NAME=FOLDER" in refused("--model", "nothing")
    assert "NAME=FOLDER" in refused("--model", "=x")
    (tmp_path / ("long" * 11)).mkdir()
    assert "more than 40 letters" in refused("--model", str(tmp_path / ("long" * 11)))
    assert "of its own" in refused("--model", "a=x", "--model", "a=y")
    assert "0 to 65535" in refused("--port", "70000")
    (tmp_path / "file").write_text("x")
    assert "it is a file" in refused("--runs", str(tmp_path / "file"))
    assert str(tmp_path) in refused("--port", "0", "--model", f"a={tmp_path}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "--port" in refused("--port", str(taken.getsockname()[1]))
    assert "--host" in refused("--host", "no.such.host.invalid")


def test_a_missing_extra_gives_the_command_that_installs_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("qkv.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert 'pip install "fastapi' in refused("--port", "0")

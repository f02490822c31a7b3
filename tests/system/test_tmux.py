"""Tests of copying inside a real tmux on its own server: the text for the user's terminal, and the reported result."""

from __future__ import annotations

import base64
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resume_hooks.system import clipboard, terminal
from resume_hooks.system.copy_result import NOT_COPIED, CopyResult
from resume_hooks.system.terminal import ONLY_IN_TMUX_NOTE
from tests.e2e.harness.processes import end_process, wait_until
from tests.needs import need

TEXT = "/resume 0b5a41e6 → 🧵\nsecond line"
OSC_52 = b"\x1b]52;"
HANG_GUARD = 30.0
"""Seconds after which a test has hung; no measure of speed."""


class Server:
    """A private tmux server with one session. The user's own tmux and its socket are never used."""

    def __init__(self, folder: str) -> None:
        """Start it, detached, with a shell that does nothing."""
        self.socket = os.path.join(folder, "socket")
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "exec sleep 600")
        self.pid = int(self.run("display-message", "-p", "#{pid}"))
        self.pane = self.run("display-message", "-p", "#{pane_tty}")

    @property
    def inside(self) -> dict[str, str]:
        """Return the environment of a hook in the session's pane."""
        return {
            "PATH": os.environ["PATH"],
            "TMUX": f"{self.socket},{self.pid},0",
            "TMUX_PANE": "%0",
            "TERM": "dumb",
        }

    def run(self, *arguments: str) -> str:
        """Return the output of a tmux command."""
        command = ["tmux", "-S", self.socket, *arguments]
        return subprocess.run(
            command,
            env=self._env,
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=HANG_GUARD,
        ).stdout.strip("\n")

    def buffer(self) -> str:
        """Return the newest paste buffer, "" if there is none."""
        return self.run("show-buffer") if self.run("list-buffers") else ""

    @contextmanager
    def attached(self, **environ: str) -> Iterator[int]:
        """Attach a terminal, and yield the file of tmux's output on it."""
        screen, device = os.openpty()
        with subprocess.Popen(
            ["tmux", "-S", self.socket, "attach"],
            env={**self._env, **environ},
            stdin=device,
            stdout=device,
            stderr=device,
            start_new_session=True,
        ) as client:
            try:
                assert wait_until(lambda: self.run("list-clients") != "", HANG_GUARD)
                yield screen
            finally:
                end_process(client.pid)
                os.close(screen)
                os.close(device)


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a private tmux server, which ends with the test."""
    need("tmux", shutil.which("tmux"), "install the system package tmux")
    folder = tempfile.mkdtemp(prefix="rh-tmux-")  # short: a socket's path may have 107 bytes
    started = Server(folder)
    yield started
    end_process(started.pid)
    shutil.rmtree(folder)


def _terminal_output(screen: int, until: bytes = b"\0 never", seconds: float = HANG_GUARD) -> bytes:
    seen, deadline = b"", time.monotonic() + seconds
    while (
        until not in seen
        and select.select([screen], [], [], max(0.0, deadline - time.monotonic()))[0]
    ):
        seen += os.read(screen, 65536)
    return seen


@pytest.mark.parametrize("mode", ["on", "external", "off"])
def test_terminal_of_tmux_gets_the_text(server: Server, mode: str) -> None:
    """The attached terminal gets the text for any value of set-clipboard, and the buffer has it."""
    server.run("set", "-g", "set-clipboard", mode)
    with server.attached() as screen:
        assert clipboard.copy_text(TEXT, environ=server.inside) == CopyResult("copied", "tmux")
        assert base64.b64encode(TEXT.encode()) in _terminal_output(
            screen, base64.b64encode(TEXT.encode())
        )
    assert server.buffer() == TEXT


def test_detached_session_keeps_the_text_in_its_buffer(server: Server) -> None:
    """Without an attached terminal only tmux has the text, and the message says so."""
    copied = clipboard.copy_text(TEXT, environ=server.inside)
    assert copied.sentence("id") == "id copied (only in tmux: prefix ] pastes it)"
    assert server.buffer() == TEXT


def test_a_terminal_without_a_clipboard_is_reported(server: Server) -> None:
    """load-buffer succeeds although the terminal lacks the capability."""
    with server.attached(TERM="vt100") as screen:
        assert clipboard.copy_text(TEXT, method="tmux", environ=server.inside) == CopyResult(
            "copied", ONLY_IN_TMUX_NOTE
        )
        assert OSC_52 not in _terminal_output(screen, seconds=0.3)
    assert server.buffer() == TEXT


def test_tmux_accepts_a_large_text(server: Server) -> None:
    """It has 100 KB."""
    text = "0123456789" * 10_000
    assert clipboard.copy_text(text, environ=server.inside).how == "copied"
    assert server.buffer() == text


def test_a_missing_tmux_server_is_reported(server: Server) -> None:
    """TMUX is outdated. No server is started."""
    end_process(server.pid)
    assert clipboard.copy_text(TEXT, method="tmux", environ=server.inside) == NOT_COPIED
    assert clipboard.copy_text(TEXT, environ=server.inside) == NOT_COPIED


def test_the_tmux_session_knows_where_its_user_is(server: Server) -> None:
    """A pane's environment is as old as the pane, and the session's follows the last attached user."""
    deadline = time.monotonic() + HANG_GUARD
    with server.attached(SSH_CONNECTION="10.0.0.2 5 10.0.0.1 22"):
        assert terminal.is_attached_over_ssh(server.inside, deadline) is True
    with server.attached():
        assert terminal.is_attached_over_ssh(server.inside, deadline) is False
    assert (
        terminal.is_attached_over_ssh({**server.inside, "TMUX": "/missing,1,0"}, deadline) is None
    )


def test_a_remote_tmux_user_does_not_get_the_local_display(server: Server) -> None:
    """A pane opened locally names its display, but a user attached over ssh gets the text by tmux."""
    for tool in ("xclip", "xsel"):
        need(tool, shutil.which(tool), f"install the system package {tool}")
    environ = {**server.inside, "DISPLAY": ":987"}
    with server.attached():
        assert clipboard.list_clipboard_methods(environ) == ["xclip", "xsel", "tmux"]
    with server.attached(SSH_CONNECTION="10.0.0.2 5 10.0.0.1 22"):
        assert clipboard.list_clipboard_methods(environ) == ["tmux"]


@pytest.mark.parametrize(
    ("set_clipboard", "passthrough", "times"),
    [("on", "off", 1), ("external", "on", 1), ("on", "on", 2), ("external", "off", 0)],
)
def test_sequence_passes_tmux_by_either_setting(
    server: Server, set_clipboard: str, passthrough: str, times: int
) -> None:
    """OSC 52 in a pane needs one of two settings. The form for the other one is dropped invisibly."""
    server.run("set", "-g", "set-clipboard", set_clipboard)
    server.run("set", "-g", "allow-passthrough", passthrough)
    with server.attached() as screen:
        _terminal_output(screen, seconds=0.5)
        sequence = terminal.build_osc52_sequence(TEXT, {**server.inside, "TERM": "tmux-256color"})
        assert terminal.send_sequence(sequence, server.pane, time.monotonic() + HANG_GUARD)
        assert _terminal_output(screen, seconds=0.5).count(base64.b64encode(TEXT.encode())) == times
        assert server.run("capture-pane", "-p").strip() == ""

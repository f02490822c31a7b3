"""Tests of copying in a real tmux server, and of the reported result."""

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
from tests.needs import require_for_test

COPIED_TEXT = "/resume 0b5a41e6 → 🧵\nsecond line"
OSC_52_METHOD_NAME = b"\x1b]52;"
HANG_SECONDS = 30.0
"""Seconds after which a test is considered to hang."""


class Server:
    """A private tmux server with one session, apart from the user's own tmux."""

    def __init__(self, folder: str) -> None:
        """Start the server with a detached session that only sleeps."""
        self.socket = os.path.join(folder, "socket")
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.run_tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "exec sleep 600"
        )
        self.pid = int(self.run_tmux("display-message", "-p", "#{pid}"))
        self.pane = self.run_tmux("display-message", "-p", "#{pane_tty}")

    @property
    def hook_environment(self) -> dict[str, str]:
        """The environment of a hook in the session's pane."""
        return {
            "PATH": os.environ["PATH"],
            "TMUX": f"{self.socket},{self.pid},0",
            "TMUX_PANE": "%0",
            "TERM": "dumb",
        }

    def run_tmux(self, *arguments: str) -> str:
        """Return the output of a tmux command."""
        command = ["tmux", "-S", self.socket, *arguments]
        return subprocess.run(
            command,
            env=self._env,
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
        ).stdout.strip("\n")

    def read_newest_buffer(self) -> str:
        """Return the content of the newest paste buffer, or an empty string if there is none."""
        return self.run_tmux("show-buffer") if self.run_tmux("list-buffers") else ""

    @contextmanager
    def attach_terminal(self, **environ: str) -> Iterator[int]:
        """Attach a terminal to the server, and yield the descriptor from which its screen is read."""
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
                assert wait_until(lambda: self.run_tmux("list-clients") != "", HANG_SECONDS)
                yield screen
            finally:
                end_process(client.pid)
                os.close(screen)
                os.close(device)


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a private tmux server, which ends with the test."""
    require_for_test("tmux", shutil.which("tmux"), "install the system package tmux")
    # The name is short because a socket's path may have at most 107 bytes.
    folder = tempfile.mkdtemp(prefix="rh-tmux-")
    started = Server(folder)
    yield started
    end_process(started.pid)
    shutil.rmtree(folder)


def _read_terminal_output(
    screen_descriptor: int, until: bytes = b"\0 never", max_seconds: float = HANG_SECONDS
) -> bytes:
    seen, deadline = b"", time.monotonic() + max_seconds
    while (
        until not in seen
        and select.select([screen_descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
    ):
        seen += os.read(screen_descriptor, 65536)
    return seen


@pytest.mark.parametrize("mode", ["on", "external", "off"])
def test_the_terminal_of_tmux_gets_the_text(server: Server, mode: str) -> None:
    """The terminal attached to tmux gets the text with any value of ``set-clipboard``.

    The paste buffer has the text too.
    """
    server.run_tmux("set", "-g", "set-clipboard", mode)
    with server.attach_terminal() as screen:
        assert clipboard.copy_text(COPIED_TEXT, environ=server.hook_environment) == CopyResult(
            "copied", "tmux"
        )
        assert base64.b64encode(COPIED_TEXT.encode()) in _read_terminal_output(
            screen, base64.b64encode(COPIED_TEXT.encode())
        )
    assert server.read_newest_buffer() == COPIED_TEXT


def test_a_detached_tmux_session_keeps_the_text_in_its_buffer(server: Server) -> None:
    """Without an attached terminal, only tmux's buffer has the text, and the message says so."""
    copied = clipboard.copy_text(COPIED_TEXT, environ=server.hook_environment)
    assert copied.describe("id") == "id copied (only in tmux: prefix ] pastes it)"
    assert server.read_newest_buffer() == COPIED_TEXT


def test_a_terminal_without_a_clipboard_is_reported(server: Server) -> None:
    """If the attached terminal has no clipboard, the result says that only tmux has the text."""
    with server.attach_terminal(TERM="vt100") as screen:
        assert clipboard.copy_text(
            COPIED_TEXT, method="tmux", environ=server.hook_environment
        ) == CopyResult("copied", ONLY_IN_TMUX_NOTE)
        assert OSC_52_METHOD_NAME not in _read_terminal_output(screen, max_seconds=0.3)
    assert server.read_newest_buffer() == COPIED_TEXT


def test_tmux_accepts_a_large_text(server: Server) -> None:
    """Tmux accepts a text of 100 KB."""
    text = "0123456789" * 10_000
    assert clipboard.copy_text(text, environ=server.hook_environment).outcome == "copied"
    assert server.read_newest_buffer() == text


def test_a_missing_tmux_server_is_reported(server: Server) -> None:
    """If the tmux server has ended, the copy is reported as failed."""
    end_process(server.pid)
    assert (
        clipboard.copy_text(COPIED_TEXT, method="tmux", environ=server.hook_environment)
        == NOT_COPIED
    )
    assert clipboard.copy_text(COPIED_TEXT, environ=server.hook_environment) == NOT_COPIED


def test_tmux_knows_whether_its_user_is_remote(server: Server) -> None:
    """Tmux knows whether the user who attached to it last came over ssh.

    Without a server, the answer is unknown.
    """
    deadline = time.monotonic() + HANG_SECONDS
    with server.attach_terminal(SSH_CONNECTION="10.0.0.2 5 10.0.0.1 22"):
        assert terminal.is_attached_over_ssh(server.hook_environment, deadline) is True
    with server.attach_terminal():
        assert terminal.is_attached_over_ssh(server.hook_environment, deadline) is False
    assert (
        terminal.is_attached_over_ssh({**server.hook_environment, "TMUX": "/missing,1,0"}, deadline)
        is None
    )


def test_a_remote_tmux_user_does_not_get_the_local_display(server: Server) -> None:
    """A user who is attached over ssh gets the text by tmux, although the pane names a local display."""
    for tool in ("xclip", "xsel"):
        require_for_test(tool, shutil.which(tool), f"install the system package {tool}")
    environ = {**server.hook_environment, "DISPLAY": ":987"}
    with server.attach_terminal():
        assert clipboard.list_clipboard_methods(environ) == ["xclip", "xsel", "tmux"]
    with server.attach_terminal(SSH_CONNECTION="10.0.0.2 5 10.0.0.1 22"):
        assert clipboard.list_clipboard_methods(environ) == ["tmux"]


@pytest.mark.parametrize(
    ("set_clipboard", "passthrough", "copy_count"),
    [("on", "off", 1), ("external", "on", 1), ("on", "on", 2), ("external", "off", 0)],
)
def test_the_sequence_passes_tmux_with_either_setting(
    server: Server, set_clipboard: str, passthrough: str, copy_count: int
) -> None:
    """The OSC 52 sequence passes tmux if ``set-clipboard`` or ``allow-passthrough`` allows it.

    Nothing is printed in the pane, even if tmux drops the sequence.
    """
    server.run_tmux("set", "-g", "set-clipboard", set_clipboard)
    server.run_tmux("set", "-g", "allow-passthrough", passthrough)
    with server.attach_terminal() as screen:
        _read_terminal_output(screen, max_seconds=0.5)
        sequence = terminal.build_osc52_sequence(
            COPIED_TEXT, {**server.hook_environment, "TERM": "tmux-256color"}
        )
        assert terminal.send_sequence(sequence, server.pane, time.monotonic() + HANG_SECONDS)
        assert (
            _read_terminal_output(screen, max_seconds=0.5).count(
                base64.b64encode(COPIED_TEXT.encode())
            )
            == copy_count
        )
        assert server.run_tmux("capture-pane", "-p").strip() == ""

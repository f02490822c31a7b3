"""Tests of copying to real clipboards and with broken programs, and of the reported result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.system import clipboard
from resume_hooks.system.copy_result import NOT_COPIED, CopyResult
from resume_hooks.system.terminal import ONLY_IN_TMUX_NOTE
from tests.e2e.harness.processes import is_process_running, wait_until
from tests.e2e.harness.xvfb import XServer
from tests.needs import REPO, python39_path, require_for_test

SESSION = "0b5a41e6-57a7-4c5e-9a53-5b0f3f3c9f3e"
CLIPBOARD_TEXTS = {
    "id": SESSION,
    "unicode": "naïve → 日本語 🧵",
    "lines": "/resume x\nsecond line\r\n\n",
    "100 KB": "0123456789abcdef" * 6400,
}
DUMB_TERMINAL_ENVIRONMENT = {"TERM": "dumb"}
"""An environment with which no test queries the terminal in which the tests run."""

HANG_SECONDS = 30.0
"""Number of seconds after which a test is considered to hang."""


@pytest.fixture
def broken_display(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a display that has no server, and a folder ``bin`` first on PATH."""
    (tmp_path / "bin").mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "DISPLAY": ":987",
        **DUMB_TERMINAL_ENVIRONMENT,
    }


def _environment_of(server: XServer, **variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DISPLAY": server.display,
        **DUMB_TERMINAL_ENVIRONMENT,
        **variables,
    }


def _write_program(folder: Path, name: str, body: str) -> Path:
    """Write a shell script ``name`` on the PATH of the fixture ``broken_display``."""
    script = folder / "bin" / name
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def _path_with_only(folder: Path, *names: str) -> str:
    """Return a PATH with only the named programs, as links."""
    (folder / "only").mkdir()
    for name in names:
        (folder / "only" / name).symlink_to(shutil.which(name) or f"/missing/{name}")
    return str(folder / "only")


@pytest.mark.parametrize("method", ["auto", "pyperclip", "native"])
@pytest.mark.parametrize("text", CLIPBOARD_TEXTS.values(), ids=CLIPBOARD_TEXTS)
def test_the_x_clipboard_contains_the_text(xserver: XServer, method: str, text: str) -> None:
    """The X clipboard has the complete text, with and without pyperclip, and the result names xclip."""
    assert clipboard.copy_text(text, method=method, environ=_environment_of(xserver)) == CopyResult(
        "copied", "xclip"
    )
    out = subprocess.run(
        ["xclip", "-selection", "clipboard", "-o"],
        env=_environment_of(xserver),
        capture_output=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    assert out.stdout == text.encode()


@pytest.mark.parametrize("method", ["auto", "native"])
def test_xsel_is_used_without_xclip(xserver: XServer, tmp_path: Path, method: str) -> None:
    """Without xclip, xsel copies the text. It needs ``HOME`` for its log.

    xsel returns before it owns the selection, so reading the text back has to wait.
    """
    environ = _environment_of(xserver, PATH=_path_with_only(tmp_path, "xsel"), HOME=str(tmp_path))
    assert clipboard.copy_text(
        CLIPBOARD_TEXTS["unicode"], method=method, environ=environ
    ) == CopyResult("copied", "xsel")
    assert xserver.read_clipboard() == CLIPBOARD_TEXTS["unicode"]


def test_a_second_copy_replaces_the_first(xserver: XServer) -> None:
    """A second copy replaces the first, although a program still owns the first."""
    for text in ("first", "second", "third"):
        assert clipboard.copy_text(text, environ=_environment_of(xserver)).outcome == "copied"
        assert xserver.read_clipboard() == text


@pytest.mark.parametrize("method", ["auto", "native", "pyperclip"])
def test_a_copy_without_an_x_server_is_reported_as_failed(
    broken_display: dict[str, str], method: str
) -> None:
    """Without an X server, a copy is reported as failed, even with pyperclip."""
    for tool in ("xclip", "xsel"):
        require_for_test(tool, shutil.which(tool), f"install the system package {tool}")
    assert clipboard.copy_text(SESSION, method=method, environ=broken_display) == NOT_COPIED


@pytest.mark.parametrize("method", ["auto", "native", "pyperclip"])
def test_a_copy_without_a_wayland_compositor_is_reported_as_failed(
    tmp_path: Path, method: str
) -> None:
    """Without a Wayland compositor, a copy is reported as failed."""
    require_for_test("wl-copy", shutil.which("wl-copy"), "install the system package wl-clipboard")
    environ = {
        "PATH": os.environ["PATH"],
        "WAYLAND_DISPLAY": "wayland-7",
        "XDG_RUNTIME_DIR": str(tmp_path),
        **DUMB_TERMINAL_ENVIRONMENT,
    }
    assert clipboard.copy_text(SESSION, method=method, environ=environ) == NOT_COPIED


def test_the_next_program_is_tried_if_the_best_one_fails(xserver: XServer, tmp_path: Path) -> None:
    """If wl-copy fails, for example because of an outdated ``WAYLAND_DISPLAY``, xclip copies the text."""
    (tmp_path / "bin").mkdir()
    _write_program(tmp_path, "wl-copy", "exit 1")
    _write_program(tmp_path, "wl-paste", "exit 1")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environ = _environment_of(xserver, PATH=path, WAYLAND_DISPLAY="wayland-0")
    assert clipboard.copy_text(SESSION, environ=environ) == CopyResult("copied", "xclip")


@pytest.mark.parametrize("method", ["native", "pyperclip"])
@pytest.mark.parametrize("body", ["exit 1", "cat >/dev/null; exit 0"], ids=["fails", "lies"])
def test_an_exit_status_is_not_a_proof_of_a_copy(
    broken_display: dict[str, str], tmp_path: Path, method: str, body: str
) -> None:
    """A copy is reported as failed if the program fails, or if it exits with 0 but copies nothing."""
    for name in ("xclip", "xsel"):
        _write_program(tmp_path, name, body)
    assert clipboard.copy_text(SESSION, method=method, environ=broken_display) == NOT_COPIED


@pytest.mark.parametrize("method", ["native", "pyperclip"])
def test_a_program_that_hangs_is_ended_with_its_children(
    broken_display: dict[str, str], tmp_path: Path, method: str
) -> None:
    """A program that hangs is stopped with its children, and the copy is reported as failed."""
    pids = tmp_path / "pids"
    _write_program(tmp_path, "xclip", f"sleep 300 & echo $! $$ >>{pids}; wait")
    assert clipboard.copy_text(SESSION, method=method, environ=broken_display) == NOT_COPIED
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    assert wait_until(lambda: not any(map(is_process_running, started)), HANG_SECONDS)


@pytest.mark.parametrize("method", ["native", "pyperclip"])
def test_a_copy_that_cannot_be_read_back_is_unconfirmed(
    broken_display: dict[str, str], tmp_path: Path, method: str
) -> None:
    """If reading the text back hangs, the copy is unconfirmed, and the clipboard's owner keeps running."""
    owner = tmp_path / "owner"
    _write_program(
        tmp_path,
        "xclip",
        f'case "$*" in *-o) exec sleep 300;; esac; cat >/dev/null; sleep 300 & echo $! >{owner}',
    )
    copied = clipboard.copy_text(SESSION, method=method, environ=broken_display)
    pid = int(owner.read_text())
    assert is_process_running(pid)
    os.kill(pid, 9)
    assert copied == CopyResult("sent", "xclip")
    assert copied.describe("session id") == "session id sent to the clipboard"


def test_a_hung_program_leaves_time_for_other_methods(
    broken_display: dict[str, str], tmp_path: Path
) -> None:
    """If xclip hangs, tmux still gets the text."""
    _write_program(tmp_path, "xclip", "exec sleep 300")
    _write_program(
        tmp_path, "tmux", 'case "$1" in load-buffer) cat >"${0%tmux}got";; *) exit 1;; esac'
    )
    assert clipboard.copy_text(SESSION, environ={**broken_display, "TMUX": "x,1,0"}) == CopyResult(
        "copied", ONLY_IN_TMUX_NOTE
    )
    assert (tmp_path / "bin" / "got").read_text() == SESSION


@pytest.mark.parametrize("method", ["auto", "native", "pyperclip"])
def test_a_copy_in_the_background_does_not_keep_our_output_open(
    xserver: XServer, method: str
) -> None:
    """The output of this process ends immediately, although xclip keeps running in the background."""
    code = f"from resume_hooks.system.clipboard import copy_text; print(*copy_text({SESSION!r}, method={method!r}))"
    environ = _environment_of(xserver, PYTHONPATH=str(REPO / "src"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    assert (done.stdout, done.stderr) == (b"copied xclip\n", b"")
    assert xserver.read_clipboard() == SESSION


def test_the_output_of_clipboard_programs_is_hidden(
    xserver: XServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The output of a clipboard program is hidden, because it would break a hook's reply."""
    (tmp_path / "bin").mkdir()
    _write_program(
        tmp_path,
        "xclip",
        f'echo noise >&2; test "$3" || echo noise; exec {shutil.which("xclip")} "$@"',
    )
    environ = _environment_of(xserver, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert clipboard.copy_text(SESSION, environ=environ) == CopyResult("copied", "xclip")
    assert capfd.readouterr() == ("", "")


def test_a_program_in_the_project_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in the current folder is not run, even if PATH has a relative or empty entry."""
    (tmp_path / "bin").mkdir()
    ran = tmp_path / "ran"
    _write_program(tmp_path, "xclip", f"/usr/bin/touch {ran}")
    monkeypatch.chdir(tmp_path / "bin")
    for path in (".", ""):
        for method in ("native", "pyperclip"):
            environ = {"PATH": path, "DISPLAY": ":987", **DUMB_TERMINAL_ENVIRONMENT}
            assert clipboard.copy_text(SESSION, method=method, environ=environ) == NOT_COPIED
    assert not ran.exists()


@pytest.mark.parametrize(
    ("display", "method_names"),
    [
        ({"DISPLAY": ":0"}, []),
        ({"DISPLAY": "unix:0"}, []),
        ({"DISPLAY": "/private/tmp/com.apple.launchd.x/org.xquartz:0"}, []),
        ({"WAYLAND_DISPLAY": "wayland-0"}, []),
        ({"DISPLAY": "localhost:10.0"}, ["xclip", "xsel"]),
        ({"WAYLAND_DISPLAY": "wayland-kq3Xa1b2"}, ["wl-copy"]),
        ({}, []),
    ],
)
def test_over_ssh_only_a_forwarded_display_is_used(
    tmp_path: Path, display: dict[str, str], method_names: list[str]
) -> None:
    """Over ssh, only a forwarded display is used, because the user pastes on another machine."""
    (tmp_path / "bin").mkdir()
    for name in ("xclip", "xsel", "wl-copy", "clip.exe"):
        _write_program(tmp_path, name, "exit 1")
    environ = {
        "PATH": str(tmp_path / "bin"),
        "SSH_CONNECTION": "10.0.0.2 5 10.0.0.1 22",
        "TERM": "linux",
        **display,
    }
    assert (
        clipboard.list_clipboard_methods({**environ, "WSL_DISTRO_NAME": "Debian"}) == method_names
    )


def test_a_copy_to_the_windows_clipboard_is_unconfirmed_under_wsl(tmp_path: Path) -> None:
    """Under WSL, the text is sent to ``clip.exe`` as UTF-16, and the copy is unconfirmed."""
    (tmp_path / "bin").mkdir()
    _write_program(tmp_path, "clip.exe", f"/bin/cat >{tmp_path / 'got'}")
    environ = {"PATH": str(tmp_path / "bin"), "WSL_DISTRO_NAME": "Debian"}
    copied = clipboard.copy_text("é\n", environ=environ)
    assert copied == CopyResult("sent", "clip.exe")
    assert copied.describe("session id") == "session id sent to the clipboard"
    assert (tmp_path / "got").read_bytes() == "é\n".encode("utf-16-le")


def test_native_programs_are_used_without_pyperclip(xserver: XServer) -> None:
    """Without pyperclip, a program of the platform copies the text.

    An explicit request to copy with pyperclip fails.
    """
    code = (
        "import sys; sys.modules['pyperclip'] = None\n"
        "from resume_hooks.system.clipboard import copy_text\n"
        "print(*copy_text('bare')); print(*copy_text('bare', method='pyperclip'))"
    )
    environ = _environment_of(xserver, PYTHONPATH=str(REPO / "src"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    assert done.stdout == b"copied xclip\nnot copied \n"


@pytest.mark.parametrize("text", ["", "lone \ud800 surrogate"])
@pytest.mark.parametrize("method", clipboard.CLIPBOARD_METHODS)
def test_a_text_that_no_clipboard_accepts_is_not_copied(text: str, method: str) -> None:
    """An empty or invalid text is not copied."""
    assert clipboard.copy_text(text, method=method, environ={}) == NOT_COPIED


@pytest.mark.parametrize("method", clipboard.CLIPBOARD_METHODS)
def test_an_environment_without_a_method_copies_nothing(method: str) -> None:
    """Without a display, tmux or a capable terminal, no method copies and none raises an error."""
    assert (
        clipboard.copy_text(SESSION, method=method, environ=DUMB_TERMINAL_ENVIRONMENT) == NOT_COPIED
    )
    assert clipboard.list_clipboard_methods(DUMB_TERMINAL_ENVIRONMENT) == []


def test_an_unknown_method_is_refused() -> None:
    """An unknown method raises ``ValueError`` with the valid methods."""
    with pytest.raises(ValueError, match="auto, pyperclip, native, tmux, osc52, none"):
        clipboard.copy_text(SESSION, method="smoke signals")


@pytest.mark.parametrize(
    ("copied", "sentence"),
    [
        (CopyResult("copied", "xclip"), "session id copied (xclip)"),
        (CopyResult("sent", "OSC 52"), "session id sent to the clipboard"),
        (NOT_COPIED, "session id not copied"),
    ],
)
def test_the_sentence_states_the_result_of_a_copy(copied: CopyResult, sentence: str) -> None:
    """The result of a copy is described by one of three sentences."""
    assert copied.describe("session id") == sentence


def test_the_clipboard_module_runs_on_python_3_9() -> None:
    """The clipboard module runs on Python 3.9, because it is used before the engine is installed."""
    python = python39_path()
    code = (
        "import resume_hooks.system.clipboard_tools, resume_hooks.system.terminal\n"
        "from resume_hooks.system.clipboard import list_clipboard_methods, copy_text\n"
        "print(*copy_text('x'), list_clipboard_methods())"
    )
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPO / "src"),
        **DUMB_TERMINAL_ENVIRONMENT,
    }
    done = subprocess.run(
        [python, "-c", code], env=environ, capture_output=True, check=True, timeout=HANG_SECONDS
    )
    assert done.stdout == b"not copied  []\n"

"""Run the client in a private tmux server.

The user's own tmux server and its socket are not touched.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from tests.e2e.harness.keys import KEY_ALIASES
from tests.e2e.harness.processes import end_process, is_process_running
from tests.e2e.harness.terminal import Terminal

_PASTE_BUFFER_NAME = "typed-by-test"


class TmuxTui(Terminal):
    """The client in tmux with ``set-clipboard on``.

    With this option, tmux stores the text of OSC 52 sequences in its paste buffer.
    """

    _folder: Path | None = None
    _server_pid = 0
    _client_pid = 0

    def _launch(self, command: list[str], env: dict[str, str]) -> None:
        # A socket's path may have at most 107 bytes. The path of a test's folder is often longer,
        # so the socket is in a separate folder with a short path.
        self._folder = Path(tempfile.mkdtemp(prefix="rh-tmux-"))
        self._name = f"rh-{uuid.uuid4().hex[:8]}"
        self._env = env | {"TMUX_TMPDIR": str(self._folder)}
        config = self._folder / "tmux.conf"
        config.write_text("set -g set-clipboard on\nset -g escape-time 10\n", encoding="utf-8")
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        self._tmux(
            "-f",
            str(config),
            "new-session",
            "-d",
            *size,
            "-c",
            str(self.home.cwd),
            shlex.join(command),
        )
        pids = self._tmux("display-message", "-p", "#{pid} #{pane_pid}").split()
        self._server_pid, self._client_pid = int(pids[0]), int(pids[1])

    def _tmux(self, *args: str, stdin: str | None = None) -> str:
        if self._folder is None:
            msg = "the TUI is not running: call start()"
            raise RuntimeError(msg)
        done = subprocess.run(
            ["tmux", "-L", self._name, *args],
            env=self._env,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=10,
            check=False,
        )
        if done.returncode:
            msg = f"tmux {args[0]} failed: {done.stderr.strip()}"
            raise RuntimeError(msg)
        return done.stdout

    def type(self, text: str) -> None:
        """Type ``text`` without Enter at its end."""
        self._tmux("send-keys", "-l", "--", text)

    def key(self, name: str) -> None:
        """Press the key that tmux calls ``name``."""
        self._tmux("send-keys", KEY_ALIASES.get(name, name))

    def paste(self, text: str) -> None:
        """Paste ``text`` as a bracketed paste through a tmux buffer, and delete the buffer."""
        self._tmux("load-buffer", "-b", _PASTE_BUFFER_NAME, "-", stdin=text)
        self._tmux("paste-buffer", "-d", "-p", "-r", "-b", _PASTE_BUFFER_NAME)

    def screen(self) -> list[str]:
        """Return the visible lines from top to bottom, without trailing blanks."""
        return [line.rstrip() for line in self._tmux("capture-pane", "-p").split("\n")[: self.rows]]

    def paste_buffer(self) -> str:
        """Return tmux's newest paste buffer, or "" if there is none."""
        if not self._tmux("list-buffers"):
            return ""
        return self._tmux("show-buffer")

    def delete_buffer(self) -> None:
        """Delete tmux's newest paste buffer."""
        self._tmux("delete-buffer")

    def tty(self) -> Path:
        """The path of the client's terminal device."""
        return Path(self._tmux("display-message", "-p", "#{pane_tty}").strip())

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size. The client then redraws the screen."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.columns, self.rows = columns, rows

    @property
    def pid(self) -> int:
        """The id of the client's process."""
        return self._client_pid

    def is_running(self) -> bool:
        """Check whether the client still runs."""
        return bool(self._client_pid) and is_process_running(self._client_pid)

    def close(self) -> None:
        """End the client and then the tmux server. Do nothing if neither is running."""
        if self._folder is None:
            return
        for pid in (self._client_pid, self._server_pid):
            if pid:
                end_process(pid)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

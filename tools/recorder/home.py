"""The home folder in which a step runs on one session. It finds the files that each step changes.

The home folder has the same path in every run.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.recorder.driver import FROZEN_TIME
from tools.recorder.sessions import UUID_PATTERN, Session

HOMES_FOLDER = Path("/dev/shm/resume-hooks-recorder")  # noqa: S108 - locked, and nobody else's to read
"""The folder of all homes.

Its path has the same length in all runs, because the layout of tables and the sizes of files depend
on it.
"""

MOUNT_COMMAND = ("mount", "-t", "tmpfs", "-o", "mode=700", "recorder")
PRIVATE_MOUNT_VARIABLE = "RESUME_HOOKS_RECORDER_IS_PRIVATE"
"""If this variable is set, ``HOMES_FOLDER`` belongs to this process alone."""

INITIAL_FILE_TIME = FROZEN_TIME - 7_200
"""The modification time of the files that exist before a step."""

UNRECORDED_PATH_PATTERN = re.compile(r"/resume-hooks/(?:index/|index\.db)")
"""The files of the search index are not recorded, because they have random names. The results of
searches are recorded."""

UNCOMPARED_PATH_PATTERN = re.compile(r"/(?:[^/]*\.lock|lock|making|one-maker)$")
"""Files that are not compared, because their bytes depend on the process that uses them."""

MODEL_ANSWER = """{"type": "result", "subtype": "success", "is_error": false, "result": "", "total_cost_usd": 0.0125,
 "usage": {"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 50},
 "modelUsage": {"haiku-of-the-day": {"outputTokens": 50}},
 "structured_output": {"goal": "Mend the parser.", "state": "Half of it is done.", "next": "Run the tests.",
  "decisions": ["Keep the old names."], "files": ["src/parser.py"]}}
"""
CLAUDE_SCRIPT = """#!/bin/sh
case $1 in --version) echo '2.1.330 (Claude Code)'; exit ;; esac
cat >/dev/null
cat "{answer}"
"""
_NEW_ID_PATTERN = re.compile(
    rb"(?<![0-9a-f])f0f[0-9a-f]{5}(?:-0000-4000-8000-[0-9a-f]{12}|(?![0-9a-f]))"
)
_PROCESS_ID_PATTERN = re.compile(rb'("(?:pid|client_pid|writer)": ?)\d+')
_INODE_PATTERN = re.compile(rb'("inode": ?|\.jsonl":\[)\d+')
_START_TIME_PATTERN = re.compile(rb'("(?:procStart|start|since|started)": ?)"\d+"')


class RecorderHome:
    """A home folder for steps.

    Its path is always the same, because it is part of the contents that are hashed.
    """

    def __init__(self, tree: Path, store: Path) -> None:
        self.root, self._lock = HOMES_FOLDER / "1", _open_homes_lock()
        self.tree, self._store = tree, store
        self.work, self.streams = self.root / "work", self.root / "streams"
        self.key = re.sub("[^A-Za-z0-9]", "-", str(self.work))
        self.driver_pid = 0
        self._known: dict[str, tuple[int, ...]] = {}
        self._numbers: dict[bytes, int] = {}

    def empty_home(self) -> None:
        """Empty the home, except for the programs on PATH."""
        shutil.rmtree(self.root, ignore_errors=True)
        for name in (
            "home/.claude/projects",
            "home/.codex/sessions",
            "work",
            "bin",
            "tmp",
            "streams",
        ):
            (self.root / name).mkdir(parents=True, mode=0o700)
        (self.root / "tree").symlink_to(self.tree)
        answer = self.root / "bin" / "answer.json"
        answer.write_text(MODEL_ANSWER, encoding="utf-8")
        self._write_program("claude", CLAUDE_SCRIPT.format(answer=answer))
        self._write_program("resume-hooks", "#!/bin/sh\nexit 1\n")
        self._numbers = {}

    def _write_program(self, name: str, text: str) -> None:
        program = self.root / "bin" / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o700)

    def add_session(self, session: Session) -> str:
        """Write a session and the files beside it, and return the path of the session's file."""
        for place, source in session.companion_files.items():
            self._write_file(place, source.read_bytes())
        return self._write_file(session.path_in_home, session.content)

    def _write_file(self, path_in_home: str, content: bytes) -> str:
        path = self.root / "home" / path_in_home.format(key=self.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    def register_client(self) -> None:
        """Register the driver as a running client of this home.

        The entry point of the client's module answers only a registered client.
        """
        stat_line = Path(f"/proc/{self.driver_pid}/stat").read_bytes()
        start_time = stat_line.rpartition(b")")[2].split()[19].decode()
        entry = f'{{"pid": {self.driver_pid}, "procStart": "{start_time}"}}'
        self._write_file(f".claude/sessions/{self.driver_pid}.json", entry.encode())

    def environ(self) -> dict[str, str]:
        """Return all environment variables of a step."""
        return {
            "PATH": f"{self.root}/bin:/usr/bin:/bin",
            "HOME": f"{self.root}/home",
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "RESUME_HOOKS_CLIPBOARD": "none",
            "CLAUDE_PLUGIN_ROOT": f"{self.root}/tree",
            "CLAUDE_PID": str(self.driver_pid),
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def record_file_states(self) -> None:
        """Record the state of all files. Before that, give each file an old modification time."""
        self._known = {}
        for path in self._list_files():
            self._set_file_time(path, INITIAL_FILE_TIME)

    def _set_file_time(self, path: str, timestamp: float) -> None:
        os.utime(path, (timestamp, timestamp), follow_symlinks=False)
        self._known[path] = _read_file_state(path)

    def _list_files(self) -> Iterator[str]:
        for name in ("home", "work", "tmp"):
            for folder, folders, files in os.walk(self.root / name):
                links = [each for each in folders if os.path.islink(os.path.join(folder, each))]
                for each in (*files, *links):
                    path = os.path.join(folder, each)
                    if not UNRECORDED_PATH_PATTERN.search(path):
                        yield path

    def list_changes(self, step: int) -> list[str]:
        """Return the sorted paths of the files that a step wrote, changed or removed.

        The new states of the files are recorded for the next step.
        """
        present = {path: _read_file_state(path) for path in self._list_files()}
        changed = [
            path for path, signature in present.items() if self._known.get(path) != signature
        ]
        missing = [path for path in self._known if path not in present]
        for path in changed:
            self._set_file_time(path, FROZEN_TIME - 1_000 + step)
        for path in missing:
            del self._known[path]
        return sorted([*changed, *missing])

    def describe_file(self, path: str) -> dict[str, Any]:
        """Return the row of a changed file. Its normalized bytes are stored under their SHA-256."""
        place = re.sub(rf"(?<!\d){self.driver_pid}(?!\d)", "PID", path)
        row: dict[str, Any] = {
            "path": self.normalize_content(os.fsencode(place)).decode("utf-8", "replace")
        }
        if not os.path.lexists(path):
            return {**row, "sha256": "gone"}
        status = os.lstat(path)
        row["mode"] = f"{stat.S_IMODE(status.st_mode):o}"
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(os.readlink(path))
        elif UNCOMPARED_PATH_PATTERN.search(path):
            return {**row, "sha256": "not compared"}
        else:
            content = Path(path).read_bytes()
            if f"{self.root}/home/.claude/resume-hooks/" in path:
                content = _INODE_PATTERN.sub(rb"\1INODE", content)
        return {**row, "sha256": self._store_content(self.normalize_content(content))}

    def _store_content(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        place = self._store / name[:2] / f"{name}.z"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(zlib.compress(content, 1))
        return name

    def normalize_content(self, content: bytes) -> bytes:
        """Replace the parts that differ between two runs: paths, process ids, and new ids."""
        for path in (f"{self.root}/tree", str(self.tree)):
            content = content.replace(path.encode(), b"<TREE>")
        content = content.replace(str(self.root).encode(), b"<ROOT>")
        content = content.replace(self.key.removesuffix("-work").encode(), b"<KEY>")
        if b'pid":' in content or b'"writer"' in content:
            content = _START_TIME_PATTERN.sub(
                rb'\1"START"', _PROCESS_ID_PATTERN.sub(rb"\1PID", content)
            )
        return _NEW_ID_PATTERN.sub(self._replace_id, content) if b"f0f" in content else content

    def _replace_id(self, found: re.Match[bytes]) -> bytes:
        drawn = found[0][:8]
        number = self._numbers.setdefault(drawn, len(self._numbers) + 1)
        return b"id-%05d" % number if found[0] == drawn else b"id-%05d-uuid" % number


def find_new_session(paths: list[str]) -> str:
    """Return the path of the session that a step made, or "". Its name contains a new id."""
    for path in paths:
        if (
            find_session_id(path).startswith("f0f")
            and path.endswith(".jsonl")
            and os.path.exists(path)
        ):
            return path
    return ""


def find_session_id(path: str) -> str:
    """Return the session id in the name of a file, or ""."""
    found = UUID_PATTERN.findall(os.path.basename(path))
    return str(found[-1]) if found else ""


def _read_file_state(path: str) -> tuple[int, ...]:
    status = os.lstat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


def enter_private_mounts() -> None:
    """Restart this program with a private ``HOMES_FOLDER``, so that several runs can work at the same time.

    The function returns in the new process. If the system does not allow this, it returns in the
    old process, and runs wait for each other.
    """
    HOMES_FOLDER.mkdir(mode=0o700, exist_ok=True)
    if os.environ.get(PRIVATE_MOUNT_VARIABLE):
        subprocess.run([*MOUNT_COMMAND, str(HOMES_FOLDER)], check=True)
        return
    own_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = ["unshare", "--mount", *own_user]
    try:
        trial = subprocess.run(
            [*unshare, *MOUNT_COMMAND, str(HOMES_FOLDER)], capture_output=True, check=False
        )
    except FileNotFoundError:
        return
    if trial.returncode == 0:
        restart = [sys.executable, "-m", "tools.recorder", *sys.argv[1:]]
        os.execvpe(unshare[0], [*unshare, *restart], {**os.environ, PRIVATE_MOUNT_VARIABLE: "1"})  # noqa: S606


def _open_homes_lock() -> int:
    lock = os.open(HOMES_FOLDER / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock

"""Where things lie: the client's config home, its project folders, our state folder, and small JSON files in them.

Standard library only and readable by Python 3.9: the hooks' fallback imports it before the engine
is installed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import unicodedata
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional

from resume_hooks.untrusted_folders import may_be_a_projects, users_home

MAX_KEY = 200  # characters of a project key before the client cuts it and adds a hash
MAX_OBJECT = 1024 * 1024  # bytes of a small JSON file; a larger one is something else

ENDING = ".jsonl"  # what the name of every transcript ends with
TOOL_RESULTS = "tool-results"  # beside a session: the folder of outputs too long for its transcript
FILE_HISTORY = "file-history"  # in the config folder: a folder a session, of earlier states of the user's files
TASKS = "tasks"  # there, too: a folder a session, with the client's task list, a JSON file a task
DIR_NAME = "CLAUDE_CODE_PROJECT_DIR_NAME"  # the variable that names the project folder of every working directory

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
LONGEST_DIR_NAME = 64
_DIR_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
"""What no folder can be called on Windows, and the client therefore nowhere."""

_HEX = frozenset("0123456789abcdef")


class Where:
    """Where a run finds things: the client's config folder, its project folders and our state folder.

    Made once at the edge and handed down. ``environ`` is what it was made from, by default this
    process's own.
    """

    __slots__ = ("config", "environ", "file_history", "projects", "state")

    def __init__(self, environ: Optional[Mapping[str, str]] = None) -> None:
        env = os.environ if environ is None else environ
        home = env.get("CLAUDE_CONFIG_DIR") or os.path.join(
            env.get("HOME") or os.path.expanduser("~"), ".claude"
        )
        self.environ: Mapping[str, str] = env
        self.config: str = unicodedata.normalize("NFC", os.path.abspath(home))
        """``$CLAUDE_CONFIG_DIR``, else ``~/.claude`` (NFC, as the client has it)."""
        self.projects: str = os.path.join(self.config, "projects")
        """The folder that holds one folder a project."""
        self.file_history: str = os.path.join(self.config, FILE_HISTORY)
        """The folder that holds one folder a session, of earlier states of the user's files."""
        own = env.get("RESUME_HOOKS_HOME") or ""
        usual = os.path.join(self.config, "resume-hooks")
        self.state: str = os.path.abspath(own) if not why_not_state(own, env) else usual
        """Our own folder, which outlives the plugin: ``$RESUME_HOOKS_HOME`` or beside the client's projects."""


_TELLING = frozenset(["pending", "index.db.lock", "making", "one-maker", "vault-told"])
STATE_NAMES = _TELLING | {
    *(
        "audit.json",
        "backups",
        "data-rules.json",
        "held",
        "index",
        "index.db",
        "index.db-journal",
        "index.db-shm",
    ),
    *("index.db-wal", "lock", "log", "mirrors", "plugin", "scrub", "stats.json", "team", "trash"),
    *("unpacked", "vault", "links.jsonl", "settings.json"),
}
"""What lies in our state folder: with anything else in it a folder is not taken for that where a variable names it, nor
one that has neither ``MARK`` nor what only we would call so."""

MARK = ".resume-hooks-state"
"""A file that we leave in a state folder that a variable names."""


def why_not_state(folder: str, env: Mapping[str, str]) -> str:
    """Why a folder that a variable names can't be our state folder, as the end of a sentence; ``""`` if it can.

    A repository's settings can set a variable. What lies in our folder says which team is sent
    sessions and where documents go, and is ours to replace and to remove: so it may lie neither in
    the project nor in a repository.
    """
    if not os.path.isabs(folder):
        return "it is not an absolute path"  # it would put what sessions hold into whatever folder a hook runs in
    if may_be_a_projects(folder, env):
        return "it lies in the project, or in a repository"
    try:
        every = set(os.listdir(folder))
    except OSError:
        return ""  # not there yet, or nothing that we could change
    names = set()
    for name in every:
        if not name.startswith(".") and name != "lost+found":
            names.add(name)
    if every & {MARK, *_TELLING}:
        theirs = names - STATE_NAMES
    else:
        theirs = names
    if theirs:
        return f"{min(theirs)} in it is not ours"
    return ""


def is_projects_state(where: Where) -> bool:
    """Whether the state folder lies in the project: who is sent sessions, and where documents go, may be its word.

    ``~/.claude`` of the user's own home never does, whatever that leads to.
    """
    usual = os.path.join(users_home(), ".claude", "resume-hooks")
    return where.state != usual and may_be_a_projects(where.state, where.environ)


def private_folder(path: str, where: Where) -> str:
    """Make the folder ``path`` (mode 0700) if it is missing, and return it. OSError if that fails.

    Also, in the state folder, if a step of the way from there on is a link or another user's: what
    we write would lie somewhere else, or with somebody else.
    """
    steps = _steps_from(where.state, path)
    for step in [] if steps else _steps_from(where.config, path) or [path]:
        os.makedirs(step, mode=0o700, exist_ok=True)
    for step in steps:
        with contextlib.suppress(FileExistsError):  # checked next
            os.makedirs(step, mode=0o700, exist_ok=True)
        _require_own_folder(step)
    if steps and where.state == os.path.abspath(where.environ.get("RESUME_HOOKS_HOME") or "."):
        with contextlib.suppress(OSError):
            os.close(
                os.open(
                    os.path.join(where.state, MARK), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
                )
            )
    return path


def is_private(folder: str, where: Where) -> bool:
    """Whether a folder of our state exists and can be trusted: no step of the way is a link or another user's."""
    try:
        for step in _steps_from(where.state, folder) or [folder]:
            _require_own_folder(step)
    except OSError:
        return False
    return True


def is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's.

    To root every file is, since homes are often lent to a container's root.
    """
    return not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)


def _steps_from(top: str, path: str) -> List[str]:
    """The folders from ``top`` down to ``path``, both included; none if it lies elsewhere."""
    steps = [path]
    while steps[0] != top and len(steps[0]) > len(top):
        steps.insert(0, os.path.dirname(steps[0]))
    if steps[0] == top:
        return steps
    return []


def _require_own_folder(path: str) -> None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"{path} is a symbolic link", path)
    if not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(errno.EEXIST, f"{path} is not a folder", path)
    if not is_own(status):
        raise PermissionError(errno.EACCES, f"{path} belongs to another user", path)


def canonical(folder: str) -> str:
    """A folder as the client names it: real path, NFC.

    A string that can't be a path is only normalised.
    """
    try:
        return unicodedata.normalize("NFC", os.path.realpath(folder))
    except ValueError:
        return unicodedata.normalize("NFC", folder)


def project_key(folder: str) -> str:
    """The name of the project folder for a working directory.

    Every UTF-16 unit outside ``[A-Za-z0-9]`` becomes ``-``; past 200 characters the rest is a hash
    of the whole path, which differs between clients, so look long keys up by their first 200
    characters.
    """
    raw = canonical(folder).encode("utf-16-le", "surrogatepass")
    units = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    key = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in map(chr, units)
    )
    if len(key) <= MAX_KEY:
        return key
    return f"{key[:MAX_KEY]}-{_hash36(units)}"


def named_folder(where: Where) -> List[str]:
    """The one folder that ``CLAUDE_CODE_PROJECT_DIR_NAME`` names for every working directory, if it does.

    As 2.1.329 has it: only beside a ``CLAUDE_CONFIG_DIR``, and only a plain name. 2.1.112 does not
    know it.
    """
    name = where.environ.get(DIR_NAME, "")
    small = name.lower()
    sound = (
        0 < len(name) <= LONGEST_DIR_NAME and _DIR_NAME.issuperset(small) and small not in _DEVICES
    )
    if sound and where.environ.get("CLAUDE_CONFIG_DIR"):
        return [name]
    return []


def project_names(
    cwd: str, where: Where, known: Optional[Callable[[], List[str]]] = None
) -> List[str]:
    """The names of the project folders that may hold sessions of ``cwd``, the likeliest first.

    2.1.329 looks into the key's folder, too, if the variable names another. Of a long key every
    name with the same beginning counts, since clients hash the rest differently; ``known`` lists
    the folders that there are.
    """
    key = project_key(cwd)
    keyed = []
    if len(key) > MAX_KEY:
        listed = known() if known else _names_in(where.projects)
        keyed = [name for name in listed if name.startswith(key[: MAX_KEY + 1])]
    return list(dict.fromkeys([*named_folder(where), *(keyed or [key])]))


def project_folders(cwd: str, where: Where) -> List[str]:
    """The project folders that may hold sessions of ``cwd``: several if a long key was hashed differently."""
    folders = []
    for name in project_names(cwd, where):
        folders.append(os.path.join(where.projects, name))
    return folders


def is_session_id(text: object) -> bool:
    """Whether ``text`` is a lower-case UUID, the only shape of a session id that ever reaches a path."""
    if (
        not isinstance(text, str)
        or len(text) != 36
        or not text[8] == text[13] == text[18] == text[23] == "-"
    ):
        return False
    return _HEX.issuperset(text.replace("-", "", 4))


def session_id_of(path: str) -> Optional[str]:
    """The session id in a file name ``<uuid>.jsonl``; None for any other name."""
    if path.endswith(ENDING):
        stem = os.path.basename(path)[: -len(ENDING)]
    else:
        stem = ""
    if is_session_id(stem):
        return stem
    return None


def find_session(session_id: str, where: Where) -> Optional[str]:
    """The file of a session id in any project, or None.

    Only regular, non-empty files count: clients leave empty stubs, and a symbolic link could lead
    anywhere.
    """
    if not is_session_id(session_id):
        return None
    paths = []
    for folder in all_folders(where):
        paths.append(os.path.join(folder, session_id + ENDING))
    files = [path for path in paths if is_session_file(path)]
    if files:
        return max(files, key=_mtime)
    return None


def named_session(path: str, session_id: str, where: Where) -> Optional[str]:
    """``path`` if it is the file of ``session_id`` in a project folder, else None.

    A copy of a session may lie in several projects; the client says which one it writes.
    """
    folder = os.path.dirname(path)
    inside = os.path.dirname(folder) == where.projects and not os.path.islink(folder)
    if inside and session_id_of(path) == session_id and is_session_file(path):
        return path
    return None


def all_folders(where: Where) -> List[str]:
    """Every project folder, sorted; links are left out, since they could lead anywhere."""
    return folders_in(where.projects)


def folders_in(folder: str) -> List[str]:
    """The folders in a folder, sorted, links left out; none where it can't be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def open_regular(
    path: str, *, follow: bool = True, within: Optional[int] = None, buffering: int = -1
) -> BinaryIO:
    """Open a regular file for reading, through links if ``follow``. OSError for anything else.

    A pipe that nobody writes to, or an endless device behind a link, would block a prompt for ever.
    A relative ``path`` is relative to the open folder ``within``.
    """
    flags = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags, dir_fd=within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering)


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """Up to ``length`` bytes of an open file from ``offset`` on.

    Its position stays, except on Windows.
    """
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)


def read_regular(path: str, limit: int) -> bytes:
    """The bytes of a regular file.

    OSError if it is missing, anything else, or larger than ``limit`` bytes.
    """
    with open_regular(path) as stream:
        raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return raw


def read_object(path: str, limit: int = MAX_OBJECT) -> Dict[str, Any]:
    """The object in a JSON file; ``{}`` if it is missing, damaged, over ``limit`` bytes, nested too deep or another."""
    try:
        value = json.loads(read_regular(path, limit))
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict):
        return value
    return {}


def is_session_file(path: str) -> bool:
    """Whether ``path`` is a regular file with the name of a session, not empty and not a link."""
    if session_id_of(path) is None:
        return False
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # the latter for a NUL in a name
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _names_in(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _mtime(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0  # deleted since it was found


def _hash36(units: list[int]) -> str:
    """The client's 32-bit string hash in base 36."""
    value = 0
    for unit in units:
        value = ((value << 5) - value + unit) & 0xFFFFFFFF
    number = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _BASE36[rest] + digits
        if not number:
            return digits

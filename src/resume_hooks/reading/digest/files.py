"""Files as entries: which were changed, which were read, and what else was made."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.commands import ShellCommand
from resume_hooks.reading.digest.entries import DigestEntry, entry
from resume_hooks.reading.digest.facts import FileChange, RecordPlace, ShellRun
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.text import plain_line

PATH = 300  # characters of a path; of a longer one its end is told
LISTED = "listed by git"  # what is said of a file that nothing in the session names as written, but git as changed
UNSURE = "its command failed"  # what is said of a file that a command was to write which failed, before that or after

UNCOMMITTED, REMOVED = "uncommitted", "removed"

WRITES = 60  # files at most that one command is taken to name as what it changes
LISTINGS = 300  # files at most that git is taken to list after one command

_WINDOWS = late(r"[A-Za-z]:[\\/]|\\\\")
_COMMIT = late(r"\n\[([^\]\n]{1,80}) ([0-9a-f]{7,40})\] (.+)")
_URL = late(r"https://[^\s\"'<>)\]]{1,500}")
_LINK = late(r"https://.*/(?:(?:pull|merge_requests|issues|runs)/\d+|releases/tag/[\w.-]+)")
_MAKES = late(r"\b(?:create|push|release|publish|deploy)\b")


class Touch(NamedTuple):
    """A change of a file: where, and what has to be said of how sure it is, ``""`` for nothing.

    ``removed``: it is gone, as a command proves that worked.
    """

    place: RecordPlace
    doubt: str = ""
    removed: bool = False


class Paths:
    """Paths as told from the ``folder`` that a session is at home in, and what git says of them now."""

    def __init__(self, folder: str, git: RepositoryState) -> None:
        self.folder = folder
        self._git = git

    def relative(self, path: str, folder: str = "") -> str:
        """A path, relative to ``folder``, else to the home folder: without that where it lies in it."""
        home = self.folder
        kind = ntpath if _WINDOWS.match(home) or _WINDOWS.match(path) else posixpath
        whole = path if path.startswith("~") else kind.normpath(kind.join(home, folder, path))
        inside = home and whole.startswith(kind.join(home, ""))
        return str(whole[len(kind.join(home, "")) :] if inside else whole)

    def root_of(self, folder: str) -> str:
        """The folder that git tells paths from, in ``folder``: the home folder, where nothing else is known."""
        known = self._git.root or self.folder
        return known if f"{folder}/".startswith(f"{known}/") else folder

    def is_outside(self, path: str) -> bool:
        """Whether a relative path lies elsewhere than in the home folder."""
        return path.startswith(("/", "~", "..")) or _WINDOWS.match(path) is not None

    def is_dirty(self, path: str) -> bool:
        """Whether a relative path has changes that are not committed."""
        root, dirty = self._git.root, self._git.dirty
        return bool(dirty) and posixpath.relpath(posixpath.join(self.folder, path), root) in dirty


def touched_files(
    changes: Sequence[FileChange], commands: Sequence[ShellCommand], paths: Paths
) -> dict[str, list[Touch]]:
    """Files that were changed: by tools, by commands that name them, as git printed them."""
    found: dict[str, list[Touch]] = {}
    for change in changes:
        found.setdefault(paths.relative(change.path, change.folder), []).append(Touch(change.place))
    for command in commands:
        doubt = UNSURE if command.run.failed else ""
        proved = command.worked and shell.ends_with_all(command.run.command)
        for path, gone in islice(shell.changes_by(command.parts), WRITES):
            name, touch = paths.relative(path, command.run.folder), Touch(command.run.place, doubt, gone and proved)
            found.setdefault(name, []).append(touch)
            if touch.removed:
                for inner in (each for each in found if each.startswith(f"{name.rstrip('/')}/")):
                    earlier = [each for each in found[inner] if each.place.order < touch.place.order]
                    if earlier:  # where the file was named last, since this command names its folder
                        found[inner].append(max(earlier, key=lambda each: each.place.order)._replace(removed=True))
    # The first thing that may have changed a file; what git listed before that lay there already.
    works = (c.run.place.order for c in commands if c.program and not c.program.startswith(("git ", "gh ")))
    began = min((*(change.place.order for change in changes[:1]), *works), default=0)
    before: set[str] = set()
    for command in commands:
        listed = set(islice(_listed(command, paths), LISTINGS))
        if command.run.place.order < began:
            before |= listed
            continue
        for path in listed - before:
            found.setdefault(path, []).append(Touch(command.run.answered, LISTED))
    return found


def _listed(command: ShellCommand, paths: Paths) -> Iterator[str]:
    """Files that git printed, as told from the home folder."""
    if "git" not in command.run.command or (moved := shell.started_in(command.parts)) is None:
        return
    folder = posixpath.join(command.run.folder, moved)
    listed = shell.listed_by_git(command.parts, command.run.output)
    yield from (paths.relative(path, folder) for path in listed.here)
    yield from (paths.relative(path, paths.root_of(folder)) for path in listed.rooted)


def changed_files(found: dict[str, list[Touch]], paths: Paths) -> Iterator[DigestEntry]:
    """Files that were changed, with what git says of them now; those of the home folder, the sure, the latest first."""

    def rank(path: str) -> tuple[bool, bool, int, str]:
        latest = max(touch.place.order for touch in found[path])
        return paths.is_outside(path), all(touch.doubt for touch in found[path]), -latest, path

    for path in sorted(found, key=rank):
        sure = [touch for touch in found[path] if not touch.doubt]
        last = max(reversed(sure or found[path]), key=lambda touch: touch.place.order)
        notes = (
            REMOVED if last.removed else f"{len(sure)} changes" if len(sure) > 1 else "",
            last.doubt,
            UNCOMMITTED if paths.is_dirty(path) else "",
        )
        yield DigestEntry(_shown(path), str(last.place), ", ".join(filter(None, notes)))


def read_files(facts: LineageFacts, paths: Paths, found: dict[str, list[Touch]]) -> Iterator[DigestEntry]:
    """Files that were read and not changed, the latest first."""
    for (path, folder), place in reversed(facts.looked_at.items()):
        name = paths.relative(path, folder)
        if name not in found:
            yield DigestEntry(_shown(name), str(place))


def artefacts(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Commits, pull requests and the like, and the client's own summaries; the latest first."""
    for run in reversed(facts.runs):
        yield from _made(run)
    yield from (entry(link, place) for link, place in reversed(facts.links.items()))
    yield from (entry("the client's summary of what it compacted", place) for place in reversed(facts.summaries))


def _made(run: ShellRun) -> Iterator[DigestEntry]:
    if "git" in run.command and "[" in run.output:
        for branch, commit, subject in _COMMIT.findall(f"\n{run.output}"):
            yield entry(f"commit {commit} {subject}", run.answered, f"on {branch}")
    if not run.failed and "https://" in run.output and _MAKES.search(run.command):
        links = (_LINK.match(url) for url in _URL.findall(run.output))
        yield from (entry(link.group(), run.answered) for link in links if link)


def _shown(path: str) -> str:
    return plain_line(path if len(path) <= PATH else f"…{path[-PATH:]}")

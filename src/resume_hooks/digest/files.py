"""Files as entries: which were changed, which were read, and what else was made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from resume_hooks.digest import shell
from resume_hooks.digest.entries import Entry, entry
from resume_hooks.digest.repository import State
from resume_hooks.digest.story import Place, Run, Story
from resume_hooks.plain import plain_line

_NAMES_CHANGED = re.compile(r"git\b[^|;&\n]*\b(?:status|commit|add|mv|rm|merge|pull|stash|checkout|restore)\b")
_NAMES_COUNTED = re.compile(r"git\b[^|;&\n]*\b(?:diff|show|commit|merge|pull)\b")
_STATUS_ROWS = (
    re.compile(
        r"^[ \t]*(?:modified|new file|deleted|renamed|both modified|typechange): +(?:.+ -> )?(.+)$", re.MULTILINE
    ),
    re.compile(r"^(?:[ MADRCTU][MADRCTU]|[MADRCTU] ) (?:.+ -> )?(\S.*)$", re.MULTILINE),
)
_COUNTED_ROWS = (
    re.compile(r"^ (\S.*?) +\| +(?:\d+ [+-]*|Bin .*)$", re.MULTILINE),
    re.compile(r"^ (?:create|delete) mode \d+ (.+)$", re.MULTILINE),
)
_COMMIT = re.compile(r"^\[([^\]\n]{1,80}) ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_LINK = re.compile(r"https://[^\s\"'<>)\]]+/(?:pull|merge_requests|issues|releases/tag|runs)/[\w.-]+")
_MAKES = re.compile(r"\b(?:create|push|release|publish|deploy)\b")


def changed(story: Story, folder: str, git: State) -> Iterator[Entry]:
    """Files that were changed, by tools, by commands that name them, as git printed them; the latest first."""
    touched: dict[str, list[Place]] = {}
    for path, places in story.changed.items():
        touched.setdefault(_told(path, folder), []).extend(places)
    for run in story.runs:
        for path in () if run.failed else (*shell.changed_paths(run.command), *_printed(run)):
            touched.setdefault(_told(path, folder), []).append(run.place)
    for path, places in sorted(touched.items(), key=lambda row: max(place.order for place in row[1]), reverse=True):
        inside = os.path.relpath(os.path.join(folder, path), git.root) if git.root else ""
        notes = (f"{len(places)} changes" if len(places) > 1 else "", "uncommitted" if inside in git.dirty else "")
        yield Entry(plain_line(path), str(places[-1]), ", ".join(filter(None, notes)))


def read(story: Story, folder: str) -> Iterator[Entry]:
    """Files that were read and not changed, the latest first."""
    for path, place in reversed(story.looked_at.items()):
        if path not in story.changed:
            yield Entry(plain_line(_told(path, folder)), str(place))


def artefacts(story: Story) -> Iterator[Entry]:
    """Commits, pull requests and the like, and the client's own summaries; the latest first."""
    for run in reversed(story.runs):
        for branch, commit, subject in _COMMIT.findall(run.output) if "git" in run.command else ():
            yield entry(f"commit {commit} {subject}", run.place, f"on {branch}")
        if not run.failed and _MAKES.search(run.command):
            yield from (entry(link, run.place) for link in _LINK.findall(run.output))
    yield from (entry(link, place) for link, place in reversed(story.links.items()))
    yield from (entry("the client's summary of what it compacted", place) for place in reversed(story.summaries))


def _printed(run: Run) -> Iterator[str]:
    """Files that git named as changed."""
    if "git" not in run.command:
        return
    status = _STATUS_ROWS if _NAMES_CHANGED.search(run.command) else ()
    counted = _COUNTED_ROWS if _NAMES_COUNTED.search(run.command) else ()
    for pattern in (*status, *counted):
        for path in pattern.findall(run.output):
            if "=>" not in path and not path.startswith("..."):
                yield path.strip().strip('"')


def _told(path: str, folder: str) -> str:
    """A path as told from ``folder`` where it lies in it."""
    path = os.path.normpath(path)
    return path[len(folder) + 1 :] if folder and path.startswith(f"{folder}/") else path

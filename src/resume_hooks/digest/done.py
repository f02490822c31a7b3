"""What was done, as entries: files changed and read, commands that worked, what failed, what was made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from resume_hooks.digest import shell
from resume_hooks.digest.entries import Entry, entry
from resume_hooks.digest.prose import cut
from resume_hooks.digest.repository import State
from resume_hooks.digest.story import Place, Run, Story
from resume_hooks.plain import plain_line

COMMAND = 600
"""Characters of a command; a longer one carries a document and is cut."""

OFTEN = 5
"""Runs from which on a command counts as run often."""

SOON = 12
"""Commands after a failed one among which the one that replaced it is looked for."""

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
_TELLING = re.compile(
    r"error|fail|fatal|panic|denied|not found|cannot|can't|exception|refused|unknown|invalid", re.IGNORECASE
)


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


def commands(story: Story) -> Iterator[Entry]:
    """Commands that worked, in the form that did last: by how often and how lately they ran."""
    groups: dict[str, list[Run]] = {}
    for run in story.runs:
        if shell.is_work(run.command):
            groups.setdefault(shell.core(run.command), []).append(run)
    end = story.runs[-1].place.order or 1 if story.runs else 1
    rows = []
    for found in groups.values():
        worked = [run for run in found if not run.failed]
        if worked:
            weight = min(len(found), OFTEN) + OFTEN * found[-1].place.order / end
            rows.append(
                (-weight, -worked[-1].place.order, entry(worked[-1].command, worked[-1].place, _runs(found), COMMAND))
            )
    yield from (row[-1] for row in sorted(rows))


def _runs(found: list[Run]) -> str:
    """How often a command ran, and how it ended."""
    notes = [f"{len(found)} runs"] if len(found) > 1 else []
    if found[-1].waiting:
        notes.append("in the background")
    if found[-1].failed:
        notes.append(f"its last run failed, exit {found[-1].status}")
    elif any(run.failed for run in found):
        notes.append("failed before it worked")
    return ", ".join(notes)


def replaced(story: Story) -> Iterator[Entry]:
    """Commands that never worked, and the next one of the same program that did; the latest first."""
    worked = {shell.core(run.command) for run in story.runs if not run.failed}
    for index, run in reversed(list(enumerate(story.runs))):
        if not run.failed or shell.core(run.command) in worked:
            continue
        later = (other for other in story.runs[index + 1 : index + SOON] if not other.failed)
        name = shell.program(run.command)
        instead = next((other for other in later if shell.program(other.command) == name), None)
        said = f"`{cut(run.command, 160)}` exit {run.status}: {_telling_line(run.output)}"
        yield entry(f"{said}; then `{cut(instead.command, 120)}` worked" if instead else said, run.place)


def errors(story: Story) -> Iterator[Entry]:
    """Errors that stand at the end: commands whose last run failed, and no other one of their program worked since."""
    last = {shell.core(run.command): run for run in story.runs if shell.is_work(run.command)}
    worked = {shell.program(run.command): run.place.order for run in story.runs if not run.failed}
    for run in reversed(last.values()):
        if run.failed and worked.get(shell.program(run.command), -1) < run.place.order:
            yield entry(f"`{cut(run.command, 200)}` exit {run.status}: {_telling_line(run.output)}", run.place)


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


def _telling_line(output: str) -> str:
    """The line of an output that says most of what went wrong."""
    rows = [row.strip() for row in output.split("\n") if row.strip() and not row.startswith("Exit code")]
    return cut(next((row for row in rows if _TELLING.search(row)), rows[-1] if rows else "no output"), 160)

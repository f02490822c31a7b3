"""List every file that the client has of a session: its transcript and all that belongs to it. No link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import HISTORY, MAX_FILES, PROJECTS
from resume_hooks.sessions.archived.manifest import About
from resume_hooks.sessions.locator_candidates import titles_of
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import owning_session, subagent_name
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.head_tail import HeadTail

MOST_TITLES = 100
"""Titles, and pull requests, that a manifest names; more are no session's."""

MAX_DEPTH = 8
"""Folders below a session's own that are looked into."""


class ClientFile(NamedTuple):
    """A file of the client's. ``place`` is its path from the config home on, with slashes."""

    place: str
    path: str
    status: os.stat_result


class ClientFiles:
    """Finds what belongs to sessions; the sub-agents beside transcripts are looked up once a project folder."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._beside: dict[str, dict[str, list[str]]] = {}

    def of(self, session: SessionFile) -> tuple[list[ClientFile], list[str]]:
        """All files of a session, its transcript first, and those that can't be archived, as sentences.

        OSError where the transcript itself can't be looked at.
        """
        self._missed: list[str] = []
        folder = os.path.dirname(session.path)
        key = f"{PROJECTS}/{os.path.basename(folder)}"
        found = [ClientFile(f"{key}/{session.session_id}.jsonl", session.path, os.lstat(session.path))]
        own = session.path.removesuffix(".jsonl")
        found += self._in(own, f"{key}/{session.session_id}", MAX_DEPTH)
        for path in self._agents(folder).get(session.session_id, []):
            found += self._file(path, f"{key}/{os.path.basename(path)}")
        backups = os.path.join(self._where.config, HISTORY, session.session_id)
        found += self._in(backups, f"{HISTORY}/{session.session_id}", 0)
        if len(found) > MAX_FILES:
            self._missed.append(f"{own} holds more than {MAX_FILES:,} files")
        return found[:MAX_FILES], self._missed

    def _agents(self, folder: str) -> dict[str, list[str]]:
        """The transcripts of sub-agents beside the sessions of a folder, and their manifests, by session."""
        if folder not in self._beside:
            by_session: dict[str, list[str]] = {}
            for path in _agents_in(folder):
                note = f"{path.removesuffix('.jsonl')}.meta.json"
                by_session.setdefault(owning_session(path), []).extend(
                    [path, note] if os.path.lexists(note) else [path]
                )
            self._beside[folder] = by_session
        return self._beside[folder]

    def _in(self, folder: str, place: str, depth: int) -> Iterator[ClientFile]:
        if os.path.islink(folder):
            self._missed.append(f"{folder} is a symbolic link")
            return
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._missed.append(f"{folder} can't be listed: {error.strerror}")
            return
        for entry in listed:
            if not entry.is_dir(follow_symlinks=False):
                yield from self._file(entry.path, f"{place}/{entry.name}")
            elif depth:
                yield from self._in(entry.path, f"{place}/{entry.name}", depth - 1)
            else:
                self._missed.append(f"{entry.path} lies too deep")

    def _file(self, path: str, place: str) -> Iterator[ClientFile]:
        try:
            status = os.lstat(path)
        except OSError:
            return  # gone since it was listed
        if stat.S_ISREG(status.st_mode) and place == encodable(place):
            yield ClientFile(place, path, status)
        else:
            self._missed.append(f"{encodable(path)} is no file that can be kept")


def _agents_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path for entry in entries if subagent_name(entry.name) and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def about_of(path: str, parent: Sequence[str]) -> About:
    """What the transcript at ``path`` says; ``parent`` are the fields of the one it names. SessionNotFound if gone."""
    glance = HeadTail(path)
    return About(
        created=encodable(glance.created),
        ended=encodable(glance.ended),
        titles=tuple(sorted(map(encodable, titles_of(glance))))[:MOST_TITLES],
        tag=encodable(glance.tag),
        pulls=tuple(sorted(map(encodable, glance.pull_requests)))[:MOST_TITLES],
        listed=glance.is_listed,
        parent=tuple(map(encodable, parent)),
    )

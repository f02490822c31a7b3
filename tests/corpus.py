"""Read the real sessions of the corpus, each only once for all tests.

The fixture ``real_session`` has the scope "session", so that pytest runs all tests of one real
session together, in one process.
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

import pytest

from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.builders import SESSION
from tests.needs import corpus_folder, corpus_sessions

FOREIGN_EXPORT_NAME = "medium-conversation.jsonl"  # This file was exported by another program, and no verb accepts it.


class RealSession:
    """A session of the corpus, which no test changes. ``name`` is its path inside the corpus."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(corpus_folder()).as_posix()
        self.size = path.stat().st_size

    @cached_property
    def transcript(self) -> Transcript:
        """Return the scanned transcript.

        Raises NotATranscript if the file was exported by another program.
        """
        return scan_transcript(str(self.path))

    @cached_property
    def lines(self) -> list[bytes]:
        """Return the lines of the file without line breaks."""
        return self.path.read_bytes().split(b"\n")

    @cached_property
    def digest(self) -> Digest:
        """Return the session's digest, made without other sessions.

        It is empty if the file was exported by another program.
        """
        nowhere = Where({"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": "/nowhere"})
        return Digest() if self.is_foreign else build_digest(self.file, nowhere)

    @property
    def file(self) -> SessionFile:
        """Return the session in the form that verbs accept."""
        return SessionFile(self.path.stem, str(self.path), 0, self.size)

    @property
    def is_foreign(self) -> bool:
        """Check whether the file was exported by another program."""
        return self.path.name == FOREIGN_EXPORT_NAME

    @property
    def has_messages(self) -> bool:
        """Check whether the live chain contains messages. In some files of the corpus, it has none."""
        return any(node.is_message for node in self.transcript.chain)

    def copy_to(self, folder: Path) -> Path:
        """Copy the session into a project folder and return the copy.

        The copy has the session's id, or ``SESSION`` if the file's name is not an id.
        """
        copy = folder / f"{self.path.stem if is_session_id(self.path.stem) else SESSION}.jsonl"
        shutil.copyfile(self.path, copy)
        return copy


def _param_of_session(path: Path) -> object:
    name = f"{path.parent.name}/{path.stem[:13]}"
    return pytest.param(path, id=name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(scope="session", params=[_param_of_session(path) for path in corpus_sessions()])
def real_session(request: pytest.FixtureRequest) -> RealSession:
    """Return a session of the corpus. Each test runs once for every session."""
    return RealSession(request.param)

"""Real sessions of the corpus, each read once for all tests.

``real_session`` is a fixture of the whole run, so that pytest runs the tests of one session
together, in one process.
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

FOREIGN = "medium-conversation.jsonl"  # an export of another program, which no verb takes


class RealSession:
    """A session of the corpus; ``name`` is its path below the corpus. The file is only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(corpus_folder()).as_posix()
        self.size = path.stat().st_size

    @cached_property
    def transcript(self) -> Transcript:
        """Return the scanned file. NotATranscript for the foreign file."""
        return scan_transcript(str(self.path))

    @cached_property
    def lines(self) -> list[bytes]:
        """Return its lines without line feeds."""
        return self.path.read_bytes().split(b"\n")

    @cached_property
    def digest(self) -> Digest:
        """Return its digest as on a machine without other sessions; empty for the foreign file."""
        nowhere = Where({"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": "/nowhere"})
        return Digest() if self.is_foreign else build_digest(self.file, nowhere)

    @property
    def file(self) -> SessionFile:
        """Return the session as verbs take it."""
        return SessionFile(self.path.stem, str(self.path), 0, self.size)

    @property
    def is_foreign(self) -> bool:
        """Check whether the file is the export of another program."""
        return self.path.name == FOREIGN

    @property
    def has_talk(self) -> bool:
        """Check whether its live chain has messages; some files have none on purpose."""
        return any(node.is_message for node in self.transcript.chain)

    def copy_to(self, folder: Path) -> Path:
        """Copy it into a project folder under its own id, or under SESSION if its name is not an id."""
        copy = folder / f"{self.path.stem if is_session_id(self.path.stem) else SESSION}.jsonl"
        shutil.copyfile(self.path, copy)
        return copy


def _param(path: Path) -> object:
    name = f"{path.parent.name}/{path.stem[:13]}"
    return pytest.param(path, id=name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(scope="session", params=[_param(path) for path in corpus_sessions()])
def real_session(request: pytest.FixtureRequest) -> RealSession:
    """Return each session of the corpus in turn; skip the test without a corpus."""
    return RealSession(request.param)

"""Crashes: a rehome that was killed is finished by running it again, whole and once."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from resume_hooks.parts.moved import rehome
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.crashes import crashes


def test_a_rehome_killed_at_every_step(config_home: ConfigHome) -> None:
    """The next copies what has no copy yet, and nothing twice."""
    old, new = str(config_home.root / "old"), str(config_home.root / "new")

    def work() -> object:
        sessions = rehome.own_sessions(old, config_home.where)
        return rehome.rehome(sessions, new, config_home.where, lambda *_: None, dry_run=False)

    def prepare() -> Callable[[], object]:
        shutil.rmtree(config_home.root)
        (config_home.root / "new").mkdir(parents=True)
        for number in (1, 2):
            rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
            rows = [{**row, "cwd": old} for row in rows]
            write_session(config_home.project(old), session_id(number), rows)
            outputs = config_home.project(old) / session_id(number) / "tool-results"
            outputs.mkdir(parents=True)
            (outputs / "one").write_bytes(b"long output")
        return work

    for _ in crashes(prepare, every=5):
        work()
        copies = [*config_home.project(new).glob("*.jsonl")]
        assert len(copies) == 2
        assert all((path.with_suffix("") / "tool-results" / "one").exists() for path in copies)

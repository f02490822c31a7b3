"""Crashes: wherever a scrub in place is killed, each file is as it was or without secrets, and another run ends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from resume_hooks.parts.secrets import findings
from resume_hooks.parts.secrets.findings import LEFT, ScrubReach
from resume_hooks.parts.secrets.purge import clear_left, purge
from resume_hooks.sessions.session_files import session_file
from tests.builders import SESSION, ConfigHome
from tests.crashes import crashes
from tests.parts.secrets.scrub.planting import places_with, plant

SAMPLE = 149
"""Every so-manieth step is tried; all of them with RUN_ALL=1."""

WANTED = ScrubReach(parents=True, others=True, file_backups=True, documents=True, client=True)


def scrub(home: ConfigHome) -> list[str]:
    """Scrub the planted session in place; what could not be done."""
    clear_left(home.where)
    session = session_file(str(home.project() / f"{SESSION}.jsonl"))
    rows = purge(findings.look_everywhere(session, home.where, wanted=WANTED), home.where)
    return [f"{row.place.kind}: {row.why}" for row in rows if row.state == LEFT]


def states(home: ConfigHome) -> dict[str, bytes]:
    """Every file of a session that a client reads, by its path."""
    found = [*home.project().glob("*.jsonl"), *home.project().rglob("*/*.*")]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found if path.is_file()}


def test_killed_at_every_step(config_home: ConfigHome) -> None:
    """No transcript is anything but whole; the next run leaves no secret, no copy and no temporary file."""
    plant(config_home)
    model = config_home.root.with_name("model")
    config_home.root.rename(model)

    def prepare() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        shutil.copytree(model, config_home.root, symlinks=True)
        return lambda: scrub(config_home)

    prepare()
    before = states(config_home)
    assert scrub(config_home) == []
    after, tries = states(config_home), 0
    for _ in crashes(prepare, every=1 if os.environ.get("RUN_ALL") == "1" else SAMPLE):
        there = states(config_home)
        whole = {path: (before.get(path), after.get(path)) for path in there if ".resume-hooks-" not in path}
        assert [path for path, both in whole.items() if there[path] not in both] == []
        assert scrub(config_home) == []
        assert [path for path in places_with(config_home) if not path.endswith("settings.json")] == []
        assert states(config_home) == after, "a run that ends another one's work comes to the same files"
        tries += 1
    assert tries > 4

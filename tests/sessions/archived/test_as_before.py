"""What is told of a session, and made of it, before the client deleted it and after: the same but for path and status.

Real transcripts, copied; each verb in this process, in every form that the vault has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resume_hooks.cli.main import cli
from resume_hooks.derive import fork, untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import LineageFinder
from tests.builders import ConfigHome
from tests.needs import corpus
from tests.sessions.archived.away import archive_and_remove

SAMPLE = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__git-sync/5ed1d306-9e1c-4b64-9e67-10914f1bd82a.jsonl",
)
LAST = 1_700_000_000
CHANGED = {"session_file", "file", "status", "kept", "form", "kept_at", "warnings"}
"""The fields that speak of where a session lies."""


def copy_from_corpus(home: ConfigHome, name: str) -> str:
    """Copy a transcript of the corpus with its files to a project folder."""
    source = corpus() / name
    path = home.project() / source.name
    shutil.copyfile(source, path)
    if source.with_suffix("").is_dir():
        shutil.copytree(source.with_suffix(""), path.with_suffix(""))
    os.utime(path, (LAST, LAST))
    return str(path)


def verb_answer(home: ConfigHome, *words: str) -> Any:
    """Return a verb's answer, without the place of the session."""
    done = CliRunner().invoke(cli, [*words, "--json"], env=home.environ, catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["ok"], document
    assert words[0] != "search" or document["data"]["hits"], words
    return bare(document)


def bare(value: Any) -> Any:
    """A document without what may differ."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key not in CHANGED}
    return [bare(each) for each in value] if isinstance(value, list) else value


def answers(home: ConfigHome, parent: str, child: str) -> list[Any]:
    """All that reading verbs say of a session and of its trimmed child."""
    short = parent[:8]
    verbs = [
        ("lineage", child), ("lineage", child, "--original"), ("lineage", parent, "--derived"), ("info", short),
        ("info", parent),
        ("outline", parent), ("read", parent, "--turns", "1-2"), ("read", parent, "--page", "--limit", "5"),
        ("read", parent, "--errors"), ("read", parent, "--commands"), ("read", f"{short}:3", "--after", "2"),
        ("search", "the", "file", "--session", parent), ("search", "file", "--lineage", child),
        ("search", "--all", "file"), ("lineage", parent),
    ]  # fmt: skip
    return [verb_answer(home, *words) for words in verbs]


def neutral(home: ConfigHome, path: str) -> list[str]:
    """The lines of a child without its own id, instants and places."""
    own = Path(path).stem
    text = Path(path).read_text(encoding="utf-8", errors="surrogateescape").replace(own, "<child>")
    text = re.sub(r"\d{4}-\d\d-\d\d(?:T[\d:.]+Z| \d\d:\d\d)", "<instant>", text).replace(
        " (archived copy)", ""
    )
    return re.sub(
        r'"uuid":"[^"]*"|"(?:parentU|logicalParentU|leafU)uid":"[^"]*"', "", text
    ).splitlines()


def children(home: ConfigHome, parent: str, child: str) -> list[list[str]]:
    """Return a fork and an untrim, which are removed again."""
    made = []
    session = locate.resolve_locator(parent, "/", home.where)
    made.append(write_child(fork.plan_fork(session, home.where), home.where))
    reading = scan_trimmed_session(locate.resolve_locator(child, "/", home.where))
    made.append(write_child(untrim.plan_untrim(reading, home.where), home.where))
    lines = []
    for receipt in made:
        assert os.path.dirname(receipt.file) == str(home.project())
        lines.append(neutral(home, receipt.file))
        outputs = Path(receipt.file).with_suffix("") / "tool-results"
        lines.append(sorted(each.name for each in outputs.iterdir()) if outputs.is_dir() else [])
        if receipt.parent_session_id == parent and not os.path.lexists(receipt.parent_file):
            assert {each.stat().st_nlink for each in outputs.glob("*")} <= {1}, (
                "copies of what the vault has"
            )
        os.unlink(receipt.file)
        shutil.rmtree(Path(receipt.file).with_suffix(""), ignore_errors=True)
    (Path(home.config) / "resume-hooks" / "links.jsonl").unlink()
    return lines


@pytest.mark.parametrize("name", SAMPLE)
def test_nothing_but_the_place_is_told_otherwise(config_home: ConfigHome, name: str) -> None:
    """Of a parent that only the vault has, and of its trimmed child.

    Children go where the parent lay.
    """
    path = copy_from_corpus(config_home, name)
    options = Options(keep_recent=0, min_savings=0, threshold=40)
    session = locate.session_file(path)
    decided = plan.plan_trim(plan.scan_session(session), config_home.where, options)
    child = write_child(decided, config_home.where)
    os.utime(child.file, (LAST + 60, LAST + 60))
    (config_home.config / "resume-hooks" / "links.jsonl").unlink()
    before = answers(config_home, session.session_id, child.session_id)
    made = children(config_home, session.session_id, child.session_id)
    archive_and_remove(path, config_home.environ)
    assert locate.resolve_locator(session.session_id, "/", config_home.where).path != path
    after = answers(config_home, session.session_id, child.session_id)
    for one, other in zip(before, after, strict=True):
        assert one == other
    assert children(config_home, session.session_id, child.session_id) == made
    rows = LineageFinder(config_home.where).find_lineage(child.file)
    assert [(row.status, row.session_file) for row in rows] == [
        ("kept", path),
        ("present", child.file),
    ]

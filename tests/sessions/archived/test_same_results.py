"""Tests that a verb gives the same result before and after the client deletes a session.

Only paths and statuses may differ. The tests use real sessions.
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
from tests.sessions.archived.removed_sessions import archive_and_remove

SAMPLE_TRANSCRIPTS = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__git-sync/5ed1d306-9e1c-4b64-9e67-10914f1bd82a.jsonl",
)
OLD_FILE_TIME = 1_700_000_000
VARIABLE_FIELDS = {"session_file", "file", "status", "kept", "form", "kept_at", "warnings"}
"""The fields that contain a path or a status and may therefore differ."""


def copy_from_corpus(home: ConfigHome, relative_path: str) -> str:
    """Copy a transcript of the corpus with its files to the project, and return its path."""
    source = corpus() / relative_path
    path = home.project() / source.name
    shutil.copyfile(source, path)
    if source.with_suffix("").is_dir():
        shutil.copytree(source.with_suffix(""), path.with_suffix(""))
    os.utime(path, (OLD_FILE_TIME, OLD_FILE_TIME))
    return str(path)


def verb_answer(home: ConfigHome, *arguments: str) -> Any:
    """Return the JSON of a verb without the fields that change when a session is archived."""
    done = CliRunner().invoke(cli, [*arguments, "--json"], env=home.environ, catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["ok"], document
    assert arguments[0] != "search" or document["data"]["hits"], arguments
    return without_variable_fields(document)


def without_variable_fields(value: Any) -> Any:
    """Return a JSON value without the fields that change when a session is archived."""
    if isinstance(value, dict):
        return {
            key: without_variable_fields(each)
            for key, each in value.items()
            if key not in VARIABLE_FIELDS
        }
    return [without_variable_fields(each) for each in value] if isinstance(value, list) else value


def answers_of_read_only_verbs(home: ConfigHome, parent_id: str, child_id: str) -> list[Any]:
    """Return the JSON answers of the read-only verbs about a session and its trimmed child."""
    short = parent_id[:8]
    verbs = [
        ("lineage", child_id), ("lineage", child_id, "--original"), ("lineage", parent_id, "--derived"),
        ("info", short), ("info", parent_id),
        ("outline", parent_id), ("read", parent_id, "--turns", "1-2"), ("read", parent_id, "--page", "--limit", "5"),
        ("read", parent_id, "--errors"), ("read", parent_id, "--commands"), ("read", f"{short}:3", "--after", "2"),
        ("search", "the", "file", "--session", parent_id), ("search", "file", "--lineage", child_id),
        ("search", "--all", "file"), ("lineage", parent_id),
    ]  # fmt: skip
    return [verb_answer(home, *words) for words in verbs]


def lines_without_variable_values(home: ConfigHome, path: str) -> list[str]:
    """Return the lines of a child without the values that vary: its id, its times and its uuids."""
    own = Path(path).stem
    text = Path(path).read_text(encoding="utf-8", errors="surrogateescape").replace(own, "<child>")
    text = re.sub(r"\d{4}-\d\d-\d\d(?:T[\d:.]+Z| \d\d:\d\d)", "<instant>", text).replace(
        " (archived copy)", ""
    )
    return re.sub(
        r'"uuid":"[^"]*"|"(?:parentU|logicalParentU|leafU)uid":"[^"]*"', "", text
    ).splitlines()


def lines_of_children(home: ConfigHome, parent_id: str, child_id: str) -> list[list[str]]:
    """Make a fork and an untrimmed child, return the lines of both, and delete both."""
    made = []
    session = locate.resolve_locator(parent_id, "/", home.where)
    made.append(write_child(fork.plan_fork(session, home.where), home.where))
    reading = scan_trimmed_session(locate.resolve_locator(child_id, "/", home.where))
    made.append(write_child(untrim.plan_untrim(reading, home.where), home.where))
    lines = []
    for receipt in made:
        assert os.path.dirname(receipt.file) == str(home.project())
        lines.append(lines_without_variable_values(home, receipt.file))
        outputs = Path(receipt.file).with_suffix("") / "tool-results"
        lines.append(sorted(each.name for each in outputs.iterdir()) if outputs.is_dir() else [])
        if receipt.parent_session_id == parent_id and not os.path.lexists(receipt.parent_file):
            assert {each.stat().st_nlink for each in outputs.glob("*")} <= {1}, (
                "copies of what the vault has"
            )
        os.unlink(receipt.file)
        shutil.rmtree(Path(receipt.file).with_suffix(""), ignore_errors=True)
    (Path(home.config) / "resume-hooks" / "links.jsonl").unlink()
    return lines


@pytest.mark.parametrize("relative_path", SAMPLE_TRANSCRIPTS)
def test_verbs_give_the_same_results_before_and_after_archiving(
    config_home: ConfigHome, relative_path: str
) -> None:
    """Read-only verbs, ``fork`` and ``untrim`` give the same results before and after archiving.

    The children are written to the folder in which the client stored the session.
    """
    path = copy_from_corpus(config_home, relative_path)
    options = Options(keep_recent=0, min_savings=0, threshold=40)
    session = locate.session_file(path)
    decided = plan.plan_trim(plan.scan_session(session), config_home.where, options)
    child = write_child(decided, config_home.where)
    os.utime(child.file, (OLD_FILE_TIME + 60, OLD_FILE_TIME + 60))
    (config_home.config / "resume-hooks" / "links.jsonl").unlink()
    before = answers_of_read_only_verbs(config_home, session.session_id, child.session_id)
    made = lines_of_children(config_home, session.session_id, child.session_id)
    archive_and_remove(path, config_home.environ)
    assert locate.resolve_locator(session.session_id, "/", config_home.where).path != path
    after = answers_of_read_only_verbs(config_home, session.session_id, child.session_id)
    for one, other in zip(before, after, strict=True):
        assert one == other
    assert lines_of_children(config_home, session.session_id, child.session_id) == made
    rows = LineageFinder(config_home.where).find_lineage(child.file)
    assert [(row.status, row.session_file) for row in rows] == [
        ("kept", path),
        ("present", child.file),
    ]

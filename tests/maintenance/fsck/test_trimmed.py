"""Tests that a trim causes no defects, and that a missing original is reported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.derive import untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.trim_in_place import trim_in_place
from resume_hooks.maintenance.fsck import repair
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.paths import is_session_file
from resume_hooks.sessions.session_files import session_file
from resume_hooks.storage.backups import backup_folder
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    conversation,
    session_id,
    user,
    write_session,
)
from tests.derive.trim.sessions import Chain, write_project_session
from tests.needs import corpus_sessions
from tests.sessions.test_lineage import opened_paths

DEFAULT_OPTIONS = Options(min_savings=0)
TRIM_ALL_OPTIONS = Options(threshold=100, keep_recent=0, assistant=1_000, min_savings=0)
LONG_AGO = 1_000_000_000.0
SAMPLE_SIZE = 6
"""Number of files that are tested: the largest of the corpus, with calls, images and thinking."""

SESSION_FILES = [path for path in corpus_sessions() if is_session_file(str(path))]
LARGEST_FILES = sorted(SESSION_FILES, key=lambda path: path.stat().st_size)[-SAMPLE_SIZE:]
LONG_THINKING = {
    "type": "thinking",
    "thinking": "a long thought " * 100,
    "signature": "signed " * 200,
}


def errors_and_warnings(path: str, home: ConfigHome) -> dict[str, list[int | None]]:
    """Return for each code of an error or a warning the numbers of the records that have it."""
    groups = examine_session(session_file(path), home.where).groups
    return {
        g.kind.code: [f.record_number for f in g.defects]
        for g in groups
        if g.kind.severity != "note"
    }


def write_trimmed_child(path: str, home: ConfigHome, options: Options = TRIM_ALL_OPTIONS) -> str:
    """Write a trimmed child and return its path."""
    decided = plan.plan_trim(plan.scan_session(session_file(path)), home.where, options)
    return write_child(decided, home.where).file


def trim_file_in_place(
    path: str, home: ConfigHome, options: Options = TRIM_ALL_OPTIONS
) -> list[str]:
    """Trim the session in its own file, and return the paths of the backups."""
    os.utime(path, (LONG_AGO, LONG_AGO))
    outcome = trim_in_place(session_file(path), options, Caller(home.where))
    assert outcome.receipt.backup
    folder = backup_folder(session_file(path).session_id, home.where)
    return sorted(str(file) for file in Path(folder).glob("*.jsonl"))


def write_trim_results(path: str, home: ConfigHome) -> Iterator[str]:
    """Write the results of trims one after another, and yield their paths.

    These are trimmed children, untrimmed and repaired children of them, and the session's own file.
    """
    for options in (DEFAULT_OPTIONS, TRIM_ALL_OPTIONS):
        yield (child := write_trimmed_child(path, home, options))
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(child)), home.where)
    yield write_child(decided, home.where).file
    yield write_child(repair.plan_repair(session_file(child), home.where), home.where).file
    trim_file_in_place(path, home)
    yield path


@pytest.mark.parametrize("source", LARGEST_FILES, ids=lambda path: path.stem[:8])
def test_trims_have_no_new_defects(config_home: ConfigHome, source: Path) -> None:
    """A trim causes no new errors or warnings.

    This is tested for trimmed children, for untrimmed and repaired children of them, and for a file
    that was trimmed in place.
    """
    path = str(shutil.copy(source, config_home.project() / source.name))
    os.chmod(path, 0o600)
    of_parent = errors_and_warnings(path, config_home).keys()
    for made in write_trim_results(path, config_home):
        assert errors_and_warnings(made, config_home).keys() <= of_parent


def session_with_thinking() -> Chain:
    """Return a session with thinking and with an output that can be trimmed."""
    chain = (
        Chain()
        .ask()
        .answer([LONG_THINKING], tokens=20_000, message_id="m")
        .answer("hm", tokens=20_000, message_id="m")
    )
    return chain.call_with_result("1", "Bash", command="make").answer().add_short_turns(3)


def test_an_answer_emptied_by_a_trim_is_not_a_finding(config_home: ConfigHome) -> None:
    """An answer without content is not reported if a trim removed the content."""
    path = str(write_project_session(config_home, session_with_thinking()))
    assert b'"content":[]' in Path(write_trimmed_child(path, config_home)).read_bytes()
    for made in (write_trimmed_child(path, config_home), path):
        assert examine_session(session_file(made), config_home.where).groups == ()
    trim_file_in_place(path, config_home)
    assert b'"content":[]' in Path(path).read_bytes()
    assert examine_session(session_file(path), config_home.where).groups == ()


def test_an_emptied_prompt_is_a_finding(config_home: ConfigHome) -> None:
    """A prompt without content is reported after a trim, because clients skip only empty answers."""
    records = [*conversation(1), user([], uuid="e", parent="r1", ts=5, truncated=True)]
    path = write_session(config_home.project(), SESSION, records)
    assert errors_and_warnings(path, config_home) == {"message-empty": [2]}


def test_a_missing_original_of_a_child_is_reported(config_home: ConfigHome) -> None:
    """A placeholder is reported if its original is missing. The report names the original's file and line.

    A repair cannot restore the original.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    path = str(write_project_session(config_home, session_with_thinking()))
    child = write_trimmed_child(path, config_home)
    marked = [
        n
        for n, line in enumerate(Path(child).read_bytes().splitlines())
        if b'"truncated":true' in line
    ]
    os.unlink(path)
    (group,) = examine_session(session_file(child), config_home.where).groups
    assert (group.kind.code, group.kind.severity, group.kind.is_repairable) == (
        "original-gone",
        "warning",
        False,
    )
    assert [finding.record_number for finding in group.defects] == marked
    assert group.defects[0].message.endswith(f"is gone: it was line 1 of {path}")


def test_a_moved_original_is_found_by_its_id(config_home: ConfigHome) -> None:
    """An original that was moved to another project is found by its id."""
    path = write_project_session(config_home, session_with_thinking())
    child = write_trimmed_child(str(path), config_home)
    path.rename(config_home.project("/moved") / path.name)
    assert errors_and_warnings(child, config_home) == {}


def test_a_missing_backup_of_a_trim_in_place_is_reported(config_home: ConfigHome) -> None:
    """A missing backup of a trim in place is reported for each record whose original it contained.

    A child of the trimmed file has the same finding.
    """
    path = str(write_project_session(config_home, session_with_thinking()))
    (first,) = trim_file_in_place(
        path, config_home, Options(only=("thinking",), keep_recent=0, min_savings=0)
    )
    child = write_trimmed_child(path, config_home)
    _, second = trim_file_in_place(path, config_home)
    assert errors_and_warnings(path, config_home) == errors_and_warnings(child, config_home) == {}
    os.unlink(first)
    assert errors_and_warnings(path, config_home) == {"original-gone": [1]}
    assert len(errors_and_warnings(child, config_home)["original-gone"]) == 1
    os.unlink(second)
    assert errors_and_warnings(path, config_home) == {"original-gone": [1, 4]}


def test_forged_trim_fields_are_harmless(config_home: ConfigHome) -> None:
    """If the forged fields of a trim name a file, the record is reported and the file is not opened."""
    forged: list[Record] = [
        {
            "original_session": "/etc/passwd",
            "original_session_id": session_id(9),
            "original_index": 0,
        },
        {"original_session": 7, "original_session_id": [], "original_index": True},
        {"original_session": "a\0b.jsonl", "original_session_id": "../../x", "original_index": 2},
        {},
    ]
    records = [
        user("hm", uuid="u", ts=0),
        *(
            assistant("x", uuid=f"a{n}", parent="u", ts=n, truncated=True, **m)
            for n, m in enumerate(forged, 1)
        ),
    ]
    path = write_session(config_home.project(), SESSION, records)
    with opened_paths() as opened:
        assert errors_and_warnings(path, config_home).get("original-gone") == [1, 3]
    assert path in opened
    assert "/etc/passwd" not in opened

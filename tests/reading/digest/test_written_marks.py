"""Tests of TODO comments and of a plan's unchecked boxes that the session itself wrote."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts


def _add_edit(talk: Talk, path: str, old_text: str, new_text: str) -> Talk:
    return talk.calls("Edit", {"file_path": path, "old_string": old_text, "new_string": new_text})


def _add_write(talk: Talk, path: str, content: str, kind: str = "create") -> Talk:
    return talk.calls(
        "Write", {"file_path": path, "content": content}, toolUseResult={"type": kind}
    )


@pytest.mark.parametrize(
    ("old_text", "new_text", "found"),
    [
        ("x = 1", "x = 1\n# TODO(ada): close the pool", ["TODO(ada): close the pool (a.py)"]),
        ("", "// FIXME: the retry is wrong", ["FIXME: the retry is wrong (a.py)"]),
        ("# TODO: was here before", "y\n# TODO: was here before", []),
        ("x", 'say("TODO list of the day")', []),
        ("x", "# TODO", []),
    ],
)
def test_a_comment_that_the_session_wrote_is_listed(
    config_home: ConfigHome, old_text: str, new_text: str, found: list[str]
) -> None:
    """A TODO or FIXME comment that the session wrote is listed, but not one that existed before."""
    talk = _add_edit(Talk().prompt("go"), f"{CWD}/a.py", old_text, new_text)
    assert entry_texts(talk.digest(config_home), "marks") == found


def test_a_removed_comment_is_not_listed(config_home: ConfigHome) -> None:
    """A TODO comment is not listed after an edit removed it, or after its file was rewritten or deleted."""
    talk = _add_edit(Talk().prompt("go"), f"{CWD}/a.py", "x", "# TODO: close it")
    talk = _add_edit(talk, f"{CWD}/b.py", "x", "# TODO: open it")
    talk = _add_write(talk, f"{CWD}/c.py", "# TODO: turn it\n")
    talk = _add_edit(talk, f"{CWD}/a.py", "# TODO: close it", "close()")
    talk = _add_write(talk, f"{CWD}/b.py", "done()\n", "update").runs("rm c.py", cwd=CWD)
    assert entry_texts(talk.digest(config_home), "marks") == []


def test_the_open_boxes_of_a_plan_are_listed(config_home: ConfigHome) -> None:
    """The boxes of a plan that the session wrote are listed unless a later edit checked them."""
    plan = "# Tasks\n\n- [x] 1.1 cut it\n- [ ] 1.2 glue it\n- [ ] 1.3 paint it\n"
    talk = _add_write(Talk().prompt("go"), f"{CWD}/tasks.md", plan)
    talk = _add_edit(talk, f"{CWD}/tasks.md", "- [ ] 1.2 glue", "- [x] 1.2 glue")
    assert entry_notes(talk.digest(config_home), "todos") == {
        "1.3 paint it": "not checked off in tasks.md"
    }


def test_each_edit_of_a_multi_edit_is_examined(config_home: ConfigHome) -> None:
    """Each edit of a ``MultiEdit`` call is examined for checked boxes of a plan and for TODO comments."""
    plan = "# Tasks\n\n- [ ] cut it\n- [ ] glue it\n- [ ] paint it\n"
    talk = _add_write(Talk().prompt("go"), f"{CWD}/tasks.md", plan)
    edits = [
        {"old_string": "- [ ] cut", "new_string": "- [x] cut"},
        {"old_string": "- [ ] glue", "new_string": "- [x] glue"},
    ]
    talk.calls("MultiEdit", {"file_path": f"{CWD}/tasks.md", "edits": edits})
    comments = [
        {"old_string": "x", "new_string": "# TODO: close it"},
        {"old_string": "y", "new_string": "# TODO: open it"},
    ]
    digest = talk.calls("MultiEdit", {"file_path": f"{CWD}/a.py", "edits": comments}).digest(
        config_home
    )
    assert entry_texts(digest, "todos") == ["paint it"]
    assert entry_texts(digest, "marks") == ["TODO: close it (a.py)", "TODO: open it (a.py)"]


def test_a_plan_is_not_listed_after_a_script_changed_it(config_home: ConfigHome) -> None:
    """The unchecked boxes of a plan are not listed after a script changed the plan's file."""
    talk = _add_write(Talk().prompt("go"), f"{CWD}/tasks.md", "# Tasks\n\n- [ ] 1.2 glue it\n")
    script = "p = 'tasks.md'\ns = open(p).read()\nopen(p, 'w').write(s.replace('glue', 'nail'))"
    talk.runs(f"python3 - <<'PY'\n{script}\nPY", "", cwd=CWD)
    assert entry_texts(talk.digest(config_home), "todos") == []


def test_a_partly_known_plan_is_not_listed(config_home: ConfigHome) -> None:
    """If the session edited a plan that it did not write, the plan's unchecked boxes are not listed."""
    talk = _add_edit(Talk().prompt("go"), f"{CWD}/tasks.md", "- [ ] a step", "- [ ] another step")
    assert entry_texts(talk.digest(config_home), "todos") == []

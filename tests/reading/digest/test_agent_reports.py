"""Tests that a digest lists the files that a sub-agent reports as changed."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.agent_reports import find_changed_files, strip_agent_id
from resume_hooks.reading.digest.entries import MessageKind
from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts, message_texts

GENERAL_AGENT_CALL = {
    "description": "build",
    "prompt": "build it",
    "subagent_type": "general-purpose",
}
SIMPLIFICATION_REPORT = (
    "Here is a summary of all changes:\n\n## Summary of Code Simplifications\n\n"
    "### 1. `src/hooks.go`\n- Removed dead code in `config.go`\n\n### 2. `src/utils.go`\n- Added a function\n"
)
REVIEW_REPORT = (
    "## Review Complete\n\n### Files Changed\n- `a.py` - Added 4 lines\n\n"
    "The review has been written to `review-01.md`."
)


@pytest.mark.parametrize(
    ("report", "files"),
    [
        ("I have created the file `docs/color.md` with the following content:", ["docs/color.md"]),
        ("I've updated src/a.py, and read src/b.py.", ["src/a.py"]),
        (SIMPLIFICATION_REPORT, ["src/hooks.go", "src/utils.go"]),
        ("Done.\n\n### Files modified:\n- `a.py` - the fix\n- **b.py**\n\n### Read\n- c.py", ["a.py", "b.py"]),
        (REVIEW_REPORT, ["review-01.md"]),
        ("The parser is in `src/a.py`; the bug is at src/b.py:40.", []),
        ("# Audit\n\n## Files created in the build\n- dist/a.js", []),
    ],
)  # fmt: skip
def test_changed_files_are_read_from_a_report(report: str, files: list[str]) -> None:
    """Files that the sub-agent says it changed are found, but not files that it only read or mentioned."""
    assert list(find_changed_files(report)) == files


def test_files_mentioned_only_in_a_report_are_uncommitted(config_home: ConfigHome) -> None:
    """A file that only a sub-agent reports as changed is listed as not committed.

    This holds even if the session read the file before.
    """
    talk = Talk().prompt("go").calls("Read", {"file_path": f"{CWD}/src/hooks.go"}, "package a")
    talk.calls("Task", GENERAL_AGENT_CALL, SIMPLIFICATION_REPORT).runs(
        "git log --oneline", "1234567 x", cwd=CWD
    )
    digest = talk.says("All is simpler now.").digest(config_home)
    assert (
        entry_notes(digest, "changed")["src/hooks.go"]
        == "according to a sub-agent's report, not committed"
    )
    assert entry_texts(digest, "read") == []
    assert "not committed: src/utils.go, src/hooks.go" in entry_texts(digest, "now")
    assert any(
        "only the changes that these sub-agents reported" in row
        for row in entry_texts(digest, "now")
    )


def test_a_reading_agent_changes_no_file(config_home: ConfigHome) -> None:
    """Files in the report of a sub-agent of the type Explore, which can't edit, are not listed as changed."""
    explorer = {**GENERAL_AGENT_CALL, "subagent_type": "Explore"}
    digest = Talk().prompt("go").calls("Task", explorer, SIMPLIFICATION_REPORT).digest(config_home)
    assert entry_texts(digest, "changed") == []


def test_the_agent_id_and_token_use_in_a_report_are_omitted(config_home: ConfigHome) -> None:
    """The agent's id and token use, which the client adds to a report, are left out of the digest.

    The client's message that an agent was started is not shown as a report.
    """
    added = "\nagentId: aefb647 (use SendMessage to continue this agent)\n<usage>tool_uses: 24\n</usage>"
    assert strip_agent_id(f"All is well.{added}") == "All is well."
    digest = (
        Talk()
        .prompt("go")
        .calls("Task", GENERAL_AGENT_CALL, f"It is a long report of what was found.{added}")
        .calls(
            "Task",
            GENERAL_AGENT_CALL,
            "Spawned successfully. (This tool result is internal metadata)",
        )
        .digest(config_home)
    )
    assert message_texts(digest, MessageKind.REPORT) == ["It is a long report of what was found."]

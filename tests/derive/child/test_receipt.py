"""The receipt and the commands that it gives."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.cli.schema.base import ReceiptForm
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.system.invocation import resume_command
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.invariants import Check
from tests.builders import session_id

CHILD = session_id(2)


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_shell_reads_the_folder_as_one_word(folder: str) -> None:
    """Quotes, spaces, dollars and line feeds in a folder's name stay part of it, controls too."""
    word, _, rest = resume_command(folder, CHILD).removeprefix("cd ").rpartition(" && ")
    assert rest == f"claude --resume {CHILD}"
    assert plain_line(word) == word
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {word}"], capture_output=True, check=True)
    assert done.stdout.decode() == f"{folder}\0"


@pytest.mark.parametrize("written", [True, False])
def test_the_documented_form(written: bool) -> None:
    """Every field of the contract, and no other but the title."""
    receipt = Receipt(
        CHILD, "/f", "t", session_id(1), "/p", "trim", written, "/w", 9, 3, 24, 1, (Check("a", ok=True),), ("w",)
    )  # fmt: skip
    assert ReceiptForm.model_validate(receipt).model_dump() == {
        "session_id": CHILD,
        "file": "/f",
        "title": "t",
        "parent_session_id": session_id(1),
        "parent_file": "/p",
        "kind": "trim",
        "agent": "claude",
        "written": written,
        "tokens_before": 9,
        "tokens_after": 3,
        "chars_saved": 24,
        "tools_trimmed": 1,
        "checks": [{"name": "a", "ok": True}],
        "commands": {"in_client": f"/resume {CHILD}", "shell": f"cd /w && claude --resume {CHILD}"},
    }

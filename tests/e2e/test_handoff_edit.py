"""``handoff --edit`` in a shell, then the real client on the child."""

from __future__ import annotations

import sys
from pathlib import Path

import pexpect

from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import LINEAGE, children, spoken
from tests.needs import corpus

PARENT = "66666666-aaaa-4bbb-8ccc-000000000001"
SOURCE = "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl"
WORDS = "EDITED-BY-HAND: the tap is not ours to write"


def test_the_edited_text_reaches_the_model_once(
    client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """What the editor saved is in the child's request, what it took out is not; the parent and the project stay."""
    parent = home.install_session(corpus() / SOURCE, PARENT, set_cwd=True)
    raw = parent.read_bytes()
    editor = tmp_path / "edit"
    editor.write_text(f"#!/bin/sh\nsed -i '/^constraints/,$d' \"$1\"\nprintf '\\n{WORDS}\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "resume_hooks", "handoff", PARENT, "--edit", "-n", "release it"],
        env={**home.env({"EDITOR": str(editor)})},
        cwd=str(home.cwd),
        timeout=60,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    (made,) = children(home, parent)
    assert list(home.cwd.iterdir()) == []
    done = run_print(client, home, api, "go on", resume=made.stem)
    assert done.returncode == 0, done.stderr
    said = spoken(api.main_requests()[-1])
    assert said.count(WORDS) == 1
    assert said.count(f"{LINEAGE}\n") == 1
    assert "digest of what was done before" in said
    assert "constraints, in the user's words" not in said
    assert said.count("release it") == 2, "the next step: in the opening, and on the card"
    assert parent.read_bytes() == raw

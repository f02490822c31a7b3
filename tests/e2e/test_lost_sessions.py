"""What a client lost, or will not find, in the real client: prompts of deleted sessions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.plugin import ENGINE, spoken
from tests.e2e.test_fork import environ_of

PASTE = "\n".join(f"line {number} of the pasted zebra" for number in range(60))


def verb(home: ClientHome, *words: str, cwd: Path | None = None) -> dict[str, Any]:
    """What a verb answers, started in the project."""
    command = [sys.executable, "-m", "resume_hooks", *words, "--json"]
    done = subprocess.run(command, env=environ_of(home), cwd=cwd or home.cwd, capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)["data"]
    return found


def test_the_prompts_of_a_deleted_session(client: ClientVersion, tui: Tui) -> None:
    """The newest client's own history, with a paste that it keeps elsewhere, goes on as a session of its own."""
    home = tui.home
    tui.start(extra_env=ENGINE)
    tui.submit("why does the parser loop")
    tui.wait_for("Mock reply 1")
    tui.wait_idle()
    tui.paste(PASTE)
    tui.wait_for("Pasted text #1")
    tui.wait_idle()
    tui.key("Enter")
    tui.wait_for("Mock reply 2")
    tui.wait_idle()
    tui.close()
    (transcript,) = home.sessions()
    transcript.unlink()
    history = home.config / "history.jsonl"
    history.write_text(re.sub(r'"timestamp":\d+', '"timestamp":1700000000000', history.read_text()))
    (row,) = verb(home, "sessions")["sessions"]
    assert (row["agent"], row["session_id"], row["turns"]) == ("prompts", transcript.stem, 2)
    made = verb(home, "handoff", transcript.stem, "-n", "go on")
    assert "line 59 of the pasted zebra" in Path(row["session_file"]).read_text()
    tui.api.clear()
    done = run_print(client, home, tui.api, "go on now", resume=made["session_id"])
    assert done.returncode == 0
    said = spoken(tui.api.main_requests()[-1])
    assert "why does the parser loop" in said
    assert "Only its prompts are left" in said

"""What a client lost, or will not find, in the real client: prompts of deleted sessions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
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


def test_two_copies_of_an_id(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """The newest client resumes no id that lies in two folders from a third one; once one of them is gone it does."""
    run_print(client, home, api, "what was said before")
    (session,) = home.sessions()
    twin = home.config / "projects" / "-elsewhere" / session.name
    twin.parent.mkdir()
    shutil.copyfile(session, twin)
    here, home.cwd = home.cwd, home.root / "third"
    home.cwd.mkdir()
    home._seed()
    refused = run_print(client, home, api, "go on now", resume=session.stem)
    assert "No conversation found" in refused.stderr + refused.text + str(refused.events)
    os.utime(session, (1_700_000_000, 1_700_000_000))
    os.utime(twin, (1_700_000_000, 1_700_000_000))
    done = verb(home, "delete", str(session), "--other-copies", "--yes", cwd=here)
    assert (done["kept"], done["session"]["file"]) == (str(session), str(twin))
    api.clear()
    assert run_print(client, home, api, "go on now", resume=session.stem).returncode == 0
    assert "what was said before" in spoken(api.main_requests()[-1])

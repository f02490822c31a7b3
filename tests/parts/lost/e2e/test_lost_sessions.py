"""Tests of sessions that the real client has lost or does not find.

Some were deleted, so that only their prompts remain; others are in moved folders.
"""

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
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import ENGINE_ENV, remove_module, text_of_request
from tests.e2e.test_fork import client_environ
from tests.e2e.test_surface import choose_action, open_list_at_session, open_page_of_session

PASTED_TEXT = "\n".join(f"line {number} of the pasted zebra" for number in range(60))


def run_verb(home: ClientHome, *words: str, cwd: Path | None = None) -> dict[str, Any]:
    """Run a verb in the project and return its JSON."""
    command = [sys.executable, "-m", "resume_hooks", *words, "--json"]
    done = subprocess.run(
        command, env=client_environ(home), cwd=cwd or home.cwd, capture_output=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)["data"]
    return found


def test_a_deleted_session_continues_from_its_prompts(
    client: ClientVersion, tui: Tui, plugin: Path
) -> None:
    """A deleted session is listed from the client's history and continued from its prompts.

    The prompts include a paste that the client stores in another file.
    """
    home = tui.home
    tui.start(extra_env=ENGINE_ENV)
    tui.submit("why does the parser loop")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    tui.paste(PASTED_TEXT)
    tui.wait_for("Pasted text #1")
    tui.wait_until_idle()
    tui.key("Enter")
    tui.wait_for("Mock reply 2")
    tui.wait_until_idle()
    tui.close()
    (transcript,) = home.sessions()
    transcript.unlink()
    history = home.config / "history.jsonl"
    history.write_text(re.sub(r'"timestamp":\d+', '"timestamp":1700000000000', history.read_text()))
    (row,) = run_verb(home, "sessions")["sessions"]
    assert (row["agent"], row["session_id"], row["turns"]) == ("prompts", transcript.stem, 2)
    (copy,) = home.config.glob(f"resume-hooks/mirrors/prompts/*/{transcript.stem}.jsonl")
    assert "line 59 of the pasted zebra" in copy.read_text()
    with Tui(client, home, tui.api) as again:
        again.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
        open_list_at_session(again, "/search", "zebra", "prompts only · why does the parser")
        open_page_of_session(again, "prompts only")
        choose_action(again, "continues this session", 2)
        again.wait_for("Only its prompts are left")
        again.wait_for("zebra  ⏎")
        choose_action(again, "opens a new session", 1)
        again.wait_for("Handed off from")
        again.wait_until_idle()
        again.api.clear_requests()
        again.submit("go on now")
        again.wait_for("Mock reply")
    said = text_of_request(tui.api.main_requests()[-1])
    assert "why does the parser loop" in said
    assert "Only its prompts are left" in said


def test_the_client_refuses_an_id_in_two_folders(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The client refuses a session with copies in two folders until one copy is deleted."""
    run_print(client, home, api, "what was said before")
    (session,) = home.sessions()
    twin = home.config / "projects" / "-elsewhere" / session.name
    twin.parent.mkdir()
    shutil.copyfile(session, twin)
    here, home.cwd = home.cwd, home.root / "third"
    home.cwd.mkdir()
    home.write_client_config()
    refused = run_print(client, home, api, "go on now", resume=session.stem)
    assert "No conversation found" in refused.stderr + refused.text + str(refused.events)
    os.utime(session, (1_700_000_000, 1_700_000_000))
    os.utime(twin, (1_700_000_000, 1_700_000_000))
    done = run_verb(home, "delete", str(session), "--other-copies", "--yes", cwd=here)
    assert (done["kept"], done["session"]["file"]) == (str(session), str(twin))
    api.clear_requests()
    assert run_print(client, home, api, "go on now", resume=session.stem).returncode == 0
    assert "what was said before" in text_of_request(api.main_requests()[-1])


def run_git(folder: Path, *words: str) -> None:
    """Run git with an invented identity."""
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True
    )


def begin_repository(home: ClientHome) -> None:
    """Turn the project into a repository with a commit."""
    run_git(home.cwd, "init", "-q", "-b", "main")
    run_git(home.cwd, "commit", "-q", "--allow-empty", "-m", "one")


def move_project(home: ClientHome, name: str) -> Path:
    """Rename the project's folder, make the client trust the new one, and return the old path."""
    old = home.cwd
    home.cwd = old.rename(home.root / name)
    home.write_client_config()
    return old


def test_a_start_names_the_sessions_of_a_moved_folder(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """A start in a moved folder names the command that copies its sessions, and asks no question.

    Without the module, the start hook shows the command once for each folder.
    """
    begin_repository(home)
    (home.config / "resume-hooks" / "pending").mkdir(parents=True, mode=0o700)
    (home.config / "resume-hooks").chmod(0o700)
    for words in ("the first thing", "the second thing"):
        run_print(client, home, api, words, plugin_dir=plugin, extra_env=ENGINE_ENV)
    old = move_project(home, "elsewhere")
    with Tui(client, home, api) as tui:
        tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
        tui.wait_for("This repository was in")
        tui.wait_until_idle(2)
        assert "in a shell in this folder" in " ".join(tui.text().replace("│", " ").split())
        tui.submit("/resume-hooks:help")
        tui.wait_until_idle(4)
        assert "Copy them here" not in tui.text()
    assert len(run_verb(home, "rehome")["made"]) == 2
    said = []
    for session in (
        path for path in home.sessions() if b"continue_metadata" in path.read_bytes()[:100]
    ):
        api.clear_requests()
        run_print(client, home, api, "go on now", resume=session.stem)
        said.append(text_of_request(api.main_requests()[-1]))
    assert sorted("the first thing" in one for one in said) == [False, True]
    assert all(f"Its project was {old} and is {home.cwd} now" in one for one in said)
    move_project(home, "third")
    with Tui(client, home, api) as tui:
        tui.start(plugin_dir=remove_module(plugin), extra_env=ENGINE_ENV)
        tui.wait_for("says: resume-hooks: This repository was")
        tui.wait_for(r"but[\s│]+has[\s│]+2[\s│]+sessions")
    assert not home.sessions()
    with Tui(client, home, api) as tui:
        tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
        tui.wait_until_idle()
        assert "This repository was in" not in tui.text()
    made = run_verb(home, "rehome", "--dry-run")
    assert (made["was"], len(made["made"])) == (str(home.root / "elsewhere"), 2)
    assert not home.sessions()


def test_sessions_of_removed_worktrees_can_continue(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """Sessions of removed worktrees are listed in the main checkout and can continue.

    Git created one of the worktrees, and the client created the other.
    """
    begin_repository(home)
    (home.config / "resume-hooks" / "pending").mkdir(parents=True, mode=0o700)
    (home.config / "resume-hooks").chmod(0o700)
    main, tree = home.cwd, home.root / "feature"
    run_git(main, "worktree", "add", "-q", "-b", "feat", str(tree))
    home.cwd = tree
    home.write_client_config()
    run_print(client, home, api, "work in the tree", plugin_dir=plugin, extra_env=ENGINE_ENV)
    (session,) = home.sessions()
    run_git(main, "worktree", "remove", str(tree))
    home.cwd = main
    home.write_client_config()
    with Tui(client, home, api) as tui:
        tui.start(["--worktree", "own"], plugin_dir=plugin, extra_env=ENGINE_ENV)
        tui.submit("work in the client's tree")
        tui.wait_for("Mock reply")
        tui.wait_until_idle()
        tui.submit("/exit")
        assert wait_until(lambda: not tui.is_running())
    rows = {row["title"]: row for row in run_verb(home, "sessions", "--helpers")["sessions"]}
    assert (rows["work in the tree"]["folder"], rows["work in the tree"]["branch"]) == (
        str(tree),
        "feat",
    )
    own = rows["work in the client's tree"]
    assert (own["folder"], own["branch"]) == (str(main), "worktree-own")
    assert (home.config / "resume-hooks" / "pending" / f"keep-{own['session_id']}").exists(), (
        "the next start keeps it"
    )
    api.clear_requests()
    assert run_print(client, home, api, "go on now", resume=own["session_id"]).returncode == 0
    assert "work in the client's tree" in text_of_request(api.main_requests()[-1])
    command = [sys.executable, "-m", "resume_hooks", "resume", session.stem, "--print"]
    done = subprocess.run(
        command,
        env=client_environ(home),
        cwd=main,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert f"git -C {main} worktree add {tree} feat" in done.stderr
    assert f"fork {session.stem} --home {main}" in done.stderr
    run_git(main, "worktree", "add", "-q", str(tree), "feat")
    home.cwd = tree
    api.clear_requests()
    assert run_print(client, home, api, "go on now", resume=session.stem).returncode == 0
    assert "work in the tree" in text_of_request(api.main_requests()[-1])

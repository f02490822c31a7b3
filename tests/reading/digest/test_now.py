"""Tests of the section "now" of a digest, which describes the present state of a session."""

from __future__ import annotations

import posixpath
import subprocess
import sys

import pytest

from resume_hooks.reading.digest.changed_files import SessionPaths
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.digest.file_states import FileStates
from resume_hooks.reading.digest.git_seen import collect_session_git
from resume_hooks.reading.digest.now import list_present_state as now_of
from resume_hooks.reading.digest.pull_requests import collect_pull_requests
from resume_hooks.reading.digest.repository import RepositoryState
from tests.builders import CWD, SESSION, ConfigHome
from tests.needs import REPO
from tests.reading.digest.talk import REJECTION_TEXT, Talk, entry_notes, entry_texts

AGENT_LAUNCHED_OUTPUT = "Async agent launched successfully."


def now_and_pending_texts(digest: Digest) -> str:
    """Return the texts of the sections "now" and "pending"."""
    return "\n".join([*entry_texts(digest, "now"), *entry_texts(digest, "pending")])


def test_the_state_names_the_branch_and_the_uncommitted_files() -> None:
    """The state names the branch and the uncommitted files, relative to the session's folder."""
    state = RepositoryState(
        "branch main, 3 uncommitted",
        "/home/user",
        frozenset({"proj/b.py", "other", "proj/c.py", "proj/d.py"}),
        staged_paths=frozenset({"proj/c.py"}),
        untracked_paths=frozenset({"other"}),
        conflicting_paths=frozenset({"proj/d.py"}),
    )
    seen = collect_session_git([], None, {})
    rows = [
        row.text
        for row in now_of(
            LineageFacts(),
            SessionPaths("/home/user/proj", state),
            state,
            seen,
            FileStates("/home/user/proj"),
            SESSION,
            collect_pull_requests([]),
        )
    ]
    assert rows == [
        "git: branch main, 3 uncommitted",
        "in conflict, to be resolved: d.py",
        "staged for the next commit: c.py",
        "not committed: b.py",
        "not tracked by git: /home/user/other",
    ]


@pytest.mark.parametrize(
    ("mode", "is_on"),
    [(["plan"], True), (["plan", "default"], False), (["default"], False), ([], False)],
)
def test_plan_mode_is_taken_from_the_last_prompt(
    config_home: ConfigHome, mode: list[str], is_on: bool
) -> None:
    """The digest says that plan mode is on only if the last prompt was sent in plan mode."""
    talk = Talk().prompt("go")
    for each in mode:
        talk.prompt("more", permissionMode=each)
    assert ("plan mode is on" in now_and_pending_texts(talk.digest(config_home))) is is_on


def test_an_approved_plan_ends_plan_mode(config_home: ConfigHome) -> None:
    """After the user approves a plan, plan mode is off and the plan's title is shown."""
    talk = (
        Talk()
        .prompt("go", permissionMode="plan")
        .calls("ExitPlanMode", {"plan": "# Move it\n\n1. Cut it"}, "approved")
    )
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "plan mode is on" not in shown
    assert "Move it" in shown


@pytest.mark.parametrize("folder", ["/home/user/.claude/plans", "/home/user/proj/docs"])
def test_the_plan_of_plan_mode_is_named_even_if_it_was_copied(
    config_home: ConfigHome, folder: str
) -> None:
    """In plan mode, the written plan is named as the only file that may be edited.

    This holds even if the plan was copied to another file. After plan mode has ended, the digest no
    longer says this.
    """
    plan = f"{folder}/calm-fox.md"
    talk = Talk().prompt("go", permissionMode="plan")
    if ".claude" not in folder:
        reminder = {"type": "plan_mode", "planFilePath": plan}
        talk.add(
            {
                "type": "attachment",
                "uuid": "p",
                "parentUuid": talk.next_parent_uuid,
                "attachment": reminder,
            }
        )
    talk.calls("Write", {"file_path": plan, "content": "# Move it"})
    talk.calls("Write", {"file_path": "/home/user/proj/plan.md", "content": "# Move it"})
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "the plan of plan mode, the only file that may be edited now: " in shown
    assert "may be partly done" not in shown
    talk.prompt("build it", permissionMode="default")
    assert "the plan of plan mode" not in now_and_pending_texts(talk.digest(config_home))


@pytest.mark.parametrize(
    ("path", "is_named"),
    [("docs/HANDOFF.md", True), ("NEXT-STEPS.md", True), ("progress.md", True), ("plans/a.md", True),
     ("README.md", False), ("src/plan.py", False)],
)  # fmt: skip
def test_documents_for_the_next_session_are_listed_first(
    config_home: ConfigHome, path: str, is_named: bool
) -> None:
    """A document such as HANDOFF.md or a file in ``plans`` is listed as the first file to read."""
    digest = (
        Talk()
        .prompt("go")
        .calls("Write", {"file_path": f"/home/user/proj/{path}", "content": "x"})
        .digest(config_home)
    )
    assert (f"read this first: {path}" in entry_texts(digest, "now")) is is_named


def test_a_running_sub_agent_is_listed(config_home: ConfigHome) -> None:
    """A sub-agent in the background is listed as still at work until its notification arrives."""
    agent = {"agentId": "a1", "isAsync": True}
    talk = (
        Talk()
        .prompt("go")
        .calls("Task", {"description": "find the leak"}, AGENT_LAUNCHED_OUTPUT, toolUseResult=agent)
    )
    assert "a sub-agent was still at work: find the leak" in now_and_pending_texts(
        talk.digest(config_home)
    )
    told = "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>\n</task-notification>"
    assert "sub-agent" not in now_and_pending_texts(
        talk.prompt(told).says("Good.").digest(config_home)
    )


def test_a_sub_agent_without_an_answer_is_listed(config_home: ConfigHome) -> None:
    """A sub-agent is listed if the session ends before the sub-agent answers."""
    talk = Talk().prompt("go").calls("Task", {"description": "find the leak"}, None)
    assert "find the leak" in now_and_pending_texts(talk.digest(config_home))


def test_an_unanswered_request_is_marked_as_unanswered(config_home: ConfigHome) -> None:
    """The digest says that the last request was not answered, until the assistant answers it."""
    talk = Talk().prompt("go").says("ok").prompt("more").runs("make").edits("/home/user/proj/a.py")
    assert "the last request was not answered" in now_and_pending_texts(talk.digest(config_home))
    assert "not answered" not in now_and_pending_texts(talk.says("Done.").digest(config_home))


@pytest.mark.parametrize(
    ("last_text", "is_answered"),
    [
        ("Done. All of it works.", True),
        ("Done. Now let me run the tests.", False),
        ("I'll start with the parser:", False),
        ("I see! It is encoded twice.\n\nThe fix is to send the string directly:", False),
        ("The fix is complete. You will see:\n```\nok\n```", True),
        ("Done. I'll run it again once CI is free.", True),
        ("Done. Want me to push it?", False),
        ("The merge is ready. It needs your approval: I don't merge by myself.", False),
        ("All green. Nothing else is left but one word from you.", False),
        (
            "Done.\n\nNext steps (pick one):\n1. Run the tests\n2. Ship it\n3. Write docs\n4. Rest",
            False,
        ),
        ("Done. The headers say so, and the tests agree.", True),
    ],
)
def test_a_last_text_that_announces_a_step_is_not_an_answer(
    config_home: ConfigHome, last_text: str, is_answered: bool
) -> None:
    """A last text that asks a question or announces a step is not treated as an answer to the request."""
    shown = now_and_pending_texts(Talk().prompt("fix it").says(last_text).digest(config_home))
    assert ("the last request was answered" in shown) is is_answered


def test_the_branch_of_the_last_git_output_is_shown(config_home: ConfigHome) -> None:
    """The digest shows the branch that git printed last, not the field ``gitBranch`` of a record."""
    talk = Talk().prompt("go", gitBranch="Testing").runs("git branch --show-current", "fix/it")
    assert "branch fix/it, as last seen in the session" in now_and_pending_texts(
        talk.digest(config_home)
    )
    talk.runs("git show HEAD:docs/adr.md", "# ADR 8\n\n## TrimDecision\n\nKeep it.")
    assert "branch fix/it, as last seen in the session" in now_and_pending_texts(
        talk.digest(config_home)
    )
    talk.runs("git status -sb", "## main...origin/main\n M a.py")
    assert "branch main, as last seen in the session" in now_and_pending_texts(
        talk.digest(config_home)
    )


def test_a_branch_that_changed_outside_the_session_is_shown(config_home: ConfigHome) -> None:
    """If ``gitBranch`` changes after the last git output, the digest shows the branch in ``gitBranch``.

    The digest no longer mentions that the earlier branch was pushed.
    """
    talk = Talk().prompt("go", gitBranch="main")
    talk.runs("git checkout -b fix", "Switched to a new branch 'fix'").runs("git push")
    talk.says("Pushed.", gitBranch="fix").prompt("thanks", gitBranch="fix")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "branch fix, as last seen in the session" in shown
    assert "the session made no commit after" in shown
    talk.prompt("next", gitBranch="other")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "branch other, as last seen in the session" in shown
    assert "the session made no commit after" not in shown


def test_a_branch_recorded_after_the_work_is_named_separately(config_home: ConfigHome) -> None:
    """A branch that the client recorded only after the last work is named on a separate line.

    If the user sends a prompt on that branch, it is named as the session's branch.
    """
    row = "branch other, first recorded after the work had ended"
    talk = Talk().prompt("go", gitBranch="main").edits(f"{CWD}/a.py").says("Done.")
    notice = "<local-command-caveat>Caveat: The messages below were generated by the user"
    talk.prompt(notice, gitBranch="other").prompt(
        "<command-name>/exit</command-name>", gitBranch="other"
    )
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "branch main, as last seen in the session" in shown
    assert row in shown
    shown = now_and_pending_texts(talk.prompt("go on", gitBranch="other").digest(config_home))
    assert "branch other, as last seen in the session" in shown
    assert row not in shown


def test_the_digest_says_that_files_on_an_old_branch_may_be_committed(
    config_home: ConfigHome,
) -> None:
    """The digest says that files on a branch that the user left may have been committed.

    This holds if the branch was switched outside the session. The digest doesn't say so if a
    command whose name contains "git" could have switched the branch.
    """
    row = "the branch was changed from fix outside the session: files changed on fix may have been committed since"
    talk = Talk().prompt("go", gitBranch="fix").edits(f"{CWD}/a.py")
    talk.runs("git add a.py && git status -sb", "## fix\nM  a.py").prompt("hi", gitBranch="fix")
    assert row not in now_and_pending_texts(talk.digest(config_home))
    digest = talk.prompt("bye", gitBranch="main").digest(config_home)
    assert row in now_and_pending_texts(digest)
    assert "staged" not in now_and_pending_texts(digest)
    left = "open or committed on the branch that was left"
    assert entry_notes(digest, "changed") == {"a.py": left}
    talk.edits(f"{CWD}/a.py", gitBranch="main")
    assert entry_notes(talk.digest(config_home), "changed") == {"a.py": "not committed"}
    talk = Talk().prompt("go", gitBranch="fix").runs("git status -sb", "## fix\nM  a.py")
    talk.prompt("hi", gitBranch="fix").runs("sh git-release.sh").prompt("bye", gitBranch="main")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "branch main, as last seen in the session" in shown
    assert row not in shown


def test_files_elsewhere_do_not_depend_on_the_branch_that_the_user_left(
    config_home: ConfigHome,
) -> None:
    """If the user leaves the session's branch, files in other repositories keep their state."""
    talk = Talk().prompt("go", gitBranch="fix").edits(f"{CWD}/a.py").edits("/srv/other/b.py")
    talk.edits("/srv/c.log").runs("git add b.py && git status -s", "M  b.py", cwd="/srv/other")
    talk.runs("git status -sb", "## fix\n M a.py").prompt("hi", gitBranch="fix")
    talk.prompt("bye", gitBranch="main")
    changed = entry_notes(talk.digest(config_home), "changed")
    assert changed["a.py"] == "open or committed on the branch that was left"
    assert changed["/srv/other/b.py"] == "staged, not committed"


def test_a_folder_without_a_branch_is_not_a_checkout(config_home: ConfigHome) -> None:
    """A folder for which the client recorded the branch ``HEAD`` is not listed as a checkout."""
    talk = Talk().prompt("go", gitBranch="main")
    talk.runs("cd /w/lib && git switch fix", "Switched to branch 'fix'")
    talk.prompt("next", gitBranch="HEAD")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "in /w/lib: branch fix, when last seen" in shown
    assert "HEAD" not in shown


def test_each_checkout_has_its_branch(config_home: ConfigHome) -> None:
    """If git printed branches in several folders, each folder is listed with its branch, latest first."""
    talk = (
        Talk()
        .prompt("go")
        .runs("cd /w/lib && git checkout -b fix", "Switched to a new branch 'fix'")
    )
    talk.runs("cd /w/app && git status", "On branch main\nnothing to commit, working tree clean")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "in /w/app: branch main, when last seen" in shown
    assert "in /w/lib: branch fix, when last seen" in shown
    assert "as last seen in the session" not in shown


def test_the_sessions_own_checkout_is_listed_first(config_home: ConfigHome) -> None:
    """The session's own checkout is listed before another folder in which git printed a branch."""
    talk = Talk().prompt("go")
    talk.runs("cd /w/lib && git status", "On branch main\nnothing to commit").says("Done.")
    shown = now_and_pending_texts(talk.digest(config_home)).split("\n")
    assert shown[0] == f"in {CWD}: branch main, when last seen"
    assert shown[1] == "in /w/lib: branch main, when last seen"
    below = Talk().prompt("go").runs("cd src && git status", "On branch main\n").says("Done.")
    shown_below = now_and_pending_texts(below.digest(config_home))
    assert "branch main, as last seen in the session" in shown_below


@pytest.mark.parametrize("arguments", ["../tree -b feat/x main", "-b feat/x ../tree"])
def test_a_worktree_that_was_added_has_its_branch(config_home: ConfigHome, arguments: str) -> None:
    """A worktree that the session added is listed with its branch until it is removed."""
    talk = Talk().prompt("go", gitBranch="main")
    talk.runs(f"git worktree add {arguments} 2>&1", "Preparing worktree (new branch 'feat/x')\n")
    shown = now_and_pending_texts(talk.says("Done.", gitBranch="main").digest(config_home)).split(
        "\n"
    )
    assert shown[0] == f"in {CWD}: branch main, when last seen"
    assert shown[1] == f"in {posixpath.dirname(CWD)}/tree: branch feat/x, when last seen"
    talk.runs("git worktree remove ../tree", "")
    assert "branch main, as last seen in the session" in now_and_pending_texts(
        talk.digest(config_home)
    )


def test_missing_changes_of_sub_agents_are_mentioned(config_home: ConfigHome) -> None:
    """If a sub-agent's transcript is missing, the digest says that its lists lack the agent's changes."""
    talk = (
        Talk()
        .prompt("go")
        .calls("Task", {"description": "build", "prompt": "build it"}, "All three pages are built.")
    )
    assert (
        "sub-agents also worked: the lists of files do not contain their changes"
        in now_and_pending_texts(talk.digest(config_home))
    )


def test_a_report_after_the_last_words_is_unanswered(config_home: ConfigHome) -> None:
    """A sub-agent's report that arrives after the last answer is marked as unanswered and quoted in full."""
    report = "Found it.\n" + "\n".join(
        f"Line {number} of the report says so." for number in range(200)
    )
    told = (
        "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>\n"
        f"<result>{report}</result>\n</task-notification>"
    )
    talk = (
        Talk()
        .prompt("go")
        .calls(
            "Task",
            {"description": "find the leak"},
            AGENT_LAUNCHED_OUTPUT,
            toolUseResult={"agentId": "a1", "isAsync": True},
        )
    )
    digest = talk.says("It runs; done for now.").prompt(told).digest(config_home)
    assert "the assistant did not respond to it" in now_and_pending_texts(digest)
    assert "was answered" not in now_and_pending_texts(digest)
    assert digest.talk[-1].text == report


def test_the_last_git_status_of_the_session_is_used(config_home: ConfigHome) -> None:
    """If there is no repository, the session's git output determines what is committed and pushed."""
    talk = (
        Talk()
        .prompt("go")
        .edits("/home/user/proj/a.py")
        .runs("git add a.py && git commit -m x", "[main 1234567] x")
    )
    talk.edits("/home/user/proj/b.py").runs("git status --short", " M b.py\n?? c.py").edits(
        "/home/user/proj/d.py"
    )
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "not committed: d.py, b.py\ngit status also lists: c.py" in shown
    assert "the session did not push its last commit" in shown
    talk.runs("git commit -am y", "[main 2345678] y").runs("git push")
    talk.runs("git status", "On branch main\nnothing to commit, working tree clean\n")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "all of the session's own changes are committed" in shown
    assert "not committed" not in shown
    assert "the session made no commit after its last push" in shown


def test_a_commit_ends_the_listing_of_its_files(config_home: ConfigHome) -> None:
    """A commit removes its files from the list of files that only ``git status`` shows."""
    listing = " M a.py\n M docs/a.md\n?? old.md\n"
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").runs("make docs")
    talk.runs("git status --short", listing)
    assert "git status also lists: docs/a.md, old.md" in now_and_pending_texts(
        talk.digest(config_home)
    )
    talk.runs("git add a.py docs/a.md && git commit -m x", "[main 1234567] x\n 2 files changed")
    talk.runs("git push").runs("git status --short && git log --oneline -1", "1234567 x")
    rows = now_and_pending_texts(talk.digest(config_home)).split("\n")
    assert "git status also lists: old.md" in rows


DIGEST_LINE_SCRIPT = """
import os, sys
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import format_digest_record
from resume_hooks.sessions.session_files import session_file
digest = build_digest(session_file(sys.argv[1]), Where(os.environ))
sys.stdout.buffer.write(format_digest_record(digest))
"""


def test_a_digest_is_the_same_in_each_process(config_home: ConfigHome) -> None:
    """A digest is the same in processes with different hash seeds, although Python's set order differs."""
    listing = "".join(f" M {name}.py\n" for name in "abcdefg")
    talk = Talk().prompt("go").edits("/home/user/proj/x.py").runs("git status --short", listing)
    path = talk.write(config_home)
    digests: set[bytes] = set()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST_LINE_SCRIPT, str(path)],
            env={**config_home.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPO / "src")},
            capture_output=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
    assert b"git status also lists: a.py, b.py, c.py" in digests.pop()


def test_files_that_only_git_lists_are_named_separately(config_home: ConfigHome) -> None:
    """A file that git listed before the session changed any file is not listed with the session's files."""
    talk = Talk().prompt("go").runs("git status --short", "?? old/\n")
    talk.edits("/home/user/proj/a.py").runs("git status --short", " M a.py\n?? old/\n")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert "not committed: a.py" in shown
    assert "git status also lists: old" in shown


def test_each_checkout_has_its_pull_request(config_home: ConfigHome) -> None:
    """If several checkouts have pull requests, each pull request is listed with its branch."""
    talk = Talk().prompt("go")
    for number, branch in enumerate(("fix", "next"), 1):
        talk.runs(
            f"cd /w/{branch} && git switch -c {branch}", f"Switched to a new branch '{branch}'"
        )
        command = f"cd /w/{branch} && gh pr create --head {branch} --title x"
        talk.runs(command, f"https://github.com/a/b/pull/{number}\n")
    shown = now_and_pending_texts(talk.digest(config_home)).split("\n")
    assert "pull request of next: https://github.com/a/b/pull/2" in shown
    assert "pull request of fix: https://github.com/a/b/pull/1" in shown


def test_a_new_folder_is_not_named_if_the_session_changed_a_file_in_it(
    config_home: ConfigHome,
) -> None:
    """A new folder that git lists is not named if the session changed a file in it."""
    talk = Talk().prompt("go").edits("/home/user/proj/lib/a/b.py").runs("touch bin/a/b.sh")
    talk.runs("git status --short", "?? bin/\n?? lib/\n?? old/\n")
    assert "git status also lists: old" in now_and_pending_texts(talk.digest(config_home)).split(
        "\n"
    )


def test_a_push_of_another_branch_is_not_mentioned(
    config_home: ConfigHome,
) -> None:
    """After a switch to another branch, the digest does not mention the push of the earlier branch."""
    row = "the session made no commit after its last push"
    talk = Talk().prompt("go").runs("git checkout -b fix", "Switched to a new branch 'fix'")
    talk.runs("git commit -am x", "[fix 1234567] x\n").runs("git push -u origin fix")
    assert row in now_and_pending_texts(talk.digest(config_home)).split("\n")
    talk.runs("git checkout -b next", "Switched to a new branch 'next'")
    assert row not in now_and_pending_texts(talk.digest(config_home))


def test_the_pull_request_of_the_current_branch_is_listed(config_home: ConfigHome) -> None:
    """The pull request that a command created for the current branch is listed.

    A pull request that was only viewed, or that only the client linked, is not.
    """
    url = "https://github.com/o/r/pull"
    row = f"pull request of this branch: {url}/12"
    talk = Talk().prompt("go").runs("git checkout -b fix", "Switched to a new branch 'fix'")
    talk.runs("gh pr view 9 --json url", f'{{"url":"{url}/9"}}')
    assert "pull request of this branch" not in now_and_pending_texts(talk.digest(config_home))
    talk.runs("gh pr create --fill", f"Creating pull request for fix\n\n{url}/12\n")
    assert row in now_and_pending_texts(talk.digest(config_home)).split("\n")
    talk.runs("git checkout main", "Switched to branch 'main'")
    assert row not in now_and_pending_texts(talk.digest(config_home))
    talk.runs("git checkout fix", "Switched to branch 'fix'")
    assert row in now_and_pending_texts(talk.digest(config_home)).split("\n")
    link = {"type": "pr-link", "prNumber": 12, "prUrl": f"{url}/12", "sessionId": SESSION}
    talk.runs("git checkout -b other", "Switched to a new branch 'other'").add(link)
    assert "pull request of this branch" not in now_and_pending_texts(talk.digest(config_home))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("gh pr merge 12 --squash", "Merged pull request o/r#12 (Fix it)"),
        ("gh pr close 12", "Closed pull request o/r#12 (Fix it)"),
        ("gh pr view 12 --json state", '{"state":"MERGED"}'),
        ("gh pr view 12", "title:\tFix it\nstate:\tMERGED\n"),
        ("gh pr view 12 --json number,state --jq '...'", "12 CLOSED"),
    ],
)
def test_a_closed_pull_request_is_not_the_current_one(
    config_home: ConfigHome, command: str, output: str
) -> None:
    """A pull request that a command closed, merged or showed as closed is not listed."""
    url = "https://github.com/o/r/pull/12"
    talk = Talk().prompt("go").runs("git checkout -b fix", "Switched to a new branch 'fix'")
    talk.runs("gh pr create --fill", f"{url}\n")
    talk.runs("gh pr view 12 --json state", '{"state":"OPEN"}')
    assert "pull request of this branch" in now_and_pending_texts(talk.digest(config_home))
    talk.runs(command, output)
    assert "pull request of this branch" not in now_and_pending_texts(talk.digest(config_home))


def test_a_todo_that_waits_for_a_closed_pull_request_is_not_listed(config_home: ConfigHome) -> None:
    """A todo that waits for a pull request is not listed after the pull request is closed."""
    todos = [
        {"content": "release, on hold until #12 is in", "status": "pending"},
        {"content": "rename, on hold until #13 is in", "status": "pending"},
    ]
    talk = Talk().prompt("go").calls("TodoWrite", {"todos": todos})
    assert len(entry_texts(talk.digest(config_home), "todos")) == 2
    talk.runs("gh pr close 12", "Closed pull request o/r#12 (Fix it)")
    assert entry_texts(talk.digest(config_home), "todos") == ["rename, on hold until #13 is in"]


def test_a_plan_that_is_out_of_date_is_marked(config_home: ConfigHome) -> None:
    """An approved plan is marked as outdated if its task list is done or a newer plan was proposed."""
    talk = Talk().prompt("go").calls("ExitPlanMode", {"plan": "# Move it"}, "approved")
    row = "the last plan that the user approved: Move it"
    assert entry_notes(talk.digest(config_home), "now")[row] == ""
    talk.calls("TodoWrite", {"todos": [{"content": "cut it", "status": "completed"}]})
    assert (
        entry_notes(talk.digest(config_home), "now")[row]
        == "a later task list is done, but it may not cover everything"
    )
    talk.calls("ExitPlanMode", {"plan": "# Drop it"}, REJECTION_TEXT, error=True)
    assert entry_notes(talk.digest(config_home), "now")[row].endswith(
        f"a newer plan was proposed, :{talk.last_line_number - 1}"
    )


def test_the_note_on_a_plan_document_counts_later_edits_and_commits(
    config_home: ConfigHome,
) -> None:
    """The note on a plan document counts the files edited and committed after the plan was written.

    Parts of the plan may already be done.
    """
    talk = (
        Talk().prompt("go").calls("Write", {"file_path": "/home/user/proj/PLAN.md", "content": "x"})
    )
    assert "read this first: PLAN.md" in now_and_pending_texts(talk.digest(config_home))
    talk.edits("/home/user/proj/a.py")
    row = "a document about work that may be partly done: PLAN.md"
    assert row in now_and_pending_texts(talk.digest(config_home))
    talk.runs("git commit -am x", "[main 1234567] x")
    entries = talk.digest(config_home).section_entries("now")
    entry = next(entry for entry in entries if "PLAN.md" in entry.text)
    assert entry.text == row
    assert entry.note == "at least 1 file changed since, a commit since"


@pytest.mark.parametrize(("kind", "is_mentioned"), [("general-purpose", True), ("Explore", False)])
def test_agents_that_only_read_are_not_reported_as_missing(
    config_home: ConfigHome, kind: str, is_mentioned: bool
) -> None:
    """A missing transcript of an agent of the type Explore, which only reads, is not mentioned."""
    given = {"description": "look", "subagent_type": kind}
    digest = Talk().prompt("go").calls("Task", given, "I saw it.").says("Ok.").digest(config_home)
    assert ("sub-agents also worked" in now_and_pending_texts(digest)) is is_mentioned


@pytest.mark.parametrize(
    ("later_command", "is_named"),
    [
        ("git add a.py && git commit -m x", True),
        ("git add -A && git commit -m x", False),
        ("git checkout main", False),
        ("git stash", False),
    ],
)
def test_files_in_an_outdated_status_are_omitted(
    config_home: ConfigHome, later_command: str, is_named: bool
) -> None:
    """Files that only ``git status`` listed are omitted after a command that may have changed their state.

    Such commands add all files, switch branches, stash changes, or make several commits.
    """
    talk = Talk().prompt("go").edits("/home/user/proj/a.py")
    talk.runs("git status --short", " M a.py\n?? docs/generated/\n", cwd="/home/user/proj")
    assert "git status also lists: docs/generated" in now_and_pending_texts(
        talk.digest(config_home)
    )
    talk.runs(later_command, "[main 1234567] x\n", cwd="/home/user/proj")
    assert ("git status also lists" in now_and_pending_texts(talk.digest(config_home))) is is_named
    for number in range(3):
        talk.runs(f"git add a.py && git commit -m {number}", f"[main 123456{number}] y\n")
    assert "git status also lists" not in now_and_pending_texts(talk.digest(config_home))


def test_a_push_is_mentioned_after_work_in_another_checkout(
    config_home: ConfigHome,
) -> None:
    """A git command in another checkout doesn't hide a push from the session's own checkout."""
    talk = Talk().prompt("go").runs("cd /w/app && git status", "On branch main\n")
    talk.runs("cd /w/app && git commit -am x && git push", "[main 1234567] x\n")
    talk.runs("cd /w/lib && git status", "On branch fix\n")
    assert "the session made no commit after its last push" in now_and_pending_texts(
        talk.digest(config_home)
    )


def test_a_removed_folder_has_no_file_to_commit(config_home: ConfigHome) -> None:
    """Files of a removed folder are not listed as uncommitted, unless they are written again."""
    clean = "On branch main\nnothing to commit, working tree clean"
    talk = Talk().prompt("go").runs("git status", clean).edits(f"{CWD}/a.py")
    talk.edits(f"{CWD}/plans/set/proposal.md").edits(f"{CWD}/plans/set/tasks.md")
    talk.runs("mkdir -p plans/sync\nrm -rf plans/set\nls plans", "sync")
    assert "not committed: a.py" in entry_texts(talk.digest(config_home), "now")
    again = talk.edits(f"{CWD}/plans/set/tasks.md")
    assert "not committed: plans/set/tasks.md, a.py" in entry_texts(
        again.digest(config_home), "now"
    )


@pytest.mark.parametrize("note", ["", " for tool use"])
def test_an_interrupted_request_is_marked(config_home: ConfigHome, note: str) -> None:
    """An interrupted request is marked as interrupted until the user's next prompt."""
    told = "the user interrupted the work on the last request"
    talk = (
        Talk()
        .prompt("fix it")
        .says("Fixed the parser.")
        .runs("git commit -m x", "[main 1234567] x")
    )
    talk.prompt(f"[Request interrupted by user{note}]")
    assert told in now_and_pending_texts(talk.digest(config_home))
    assert told not in now_and_pending_texts(talk.prompt("push it").digest(config_home))
    talk.says("Pushed.").prompt("[Request interrupted by user]")
    shown = now_and_pending_texts(talk.digest(config_home))
    assert told in shown
    assert "the last request was answered" not in shown


def test_a_commit_of_only_the_document_does_not_outdate_it(config_home: ConfigHome) -> None:
    """A commit of a status document alone does not mark the document as outdated."""
    talk = Talk().prompt("go").edits("/home/user/proj/a.py")
    talk.calls("Write", {"file_path": "/home/user/proj/STATUS.md", "content": "x"})
    talk.runs("git add STATUS.md && git commit -m x", "[main 1234567] x")
    entries = talk.digest(config_home).section_entries("now")
    row = next(entry for entry in entries if "STATUS.md" in entry.text)
    assert row.text == "read this first: STATUS.md"
    assert row.note == "written in this session"


def test_changed_files_without_git_begin_with_the_latest(config_home: ConfigHome) -> None:
    """Without git commands, the changed files are listed by their last change, latest first."""
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").edits(f"{CWD}/b.py").edits(f"{CWD}/a.py")
    assert "no git command ran; changed: a.py, b.py" in entry_texts(talk.digest(config_home), "now")

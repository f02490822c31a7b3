"""Tests of verbs with Codex sessions: reading verbs work, and unsupported verbs are refused."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resume_hooks.cli.main import cli as command
from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.derive import summary
from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.hooks.hook_replies import block_reply, host_of_event
from resume_hooks.maintenance.doctor import Finding, check_installation
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.sessions.locate import resolve_locator
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.cli.conftest import Cli, Document
from tests.cli.terminal_home import FAKE_CLIENT_SCRIPT, HOUR_SECONDS, TerminalHome
from tests.derive.summary.models import ScriptedModel
from tests.parts.codex import rollouts
from tests.parts.codex.rollouts import (
    OTHER_THREAD_ID,
    THREAD_ID,
    call_line,
    codex_rollouts,
    item_line,
    message_line,
    meta_line,
    output_line,
    token_count_line,
    write_rollout,
)

API_KEY = "sk-ant-api03-" + "Ab3dE5gH" * 11 + "-AAAAAA"

UNSUPPORTED_COMMANDS = [
    ["rename", "x"],
    ["rename", "--tag", "x"],
    ["delete", "--yes"],
    ["archive"],
]


@pytest.fixture
def rollout(config_home: ConfigHome) -> Path:
    """Write one session of each agent in the same folder, and return the rollout."""
    talk = [
        message_line("user", "Tune the parser", 1),
        message_line("assistant", f"Tuned. {API_KEY}", 2),
        token_count_line(9_000, 3),
    ]
    write_session(config_home.project("/home/user/proj"), SESSION, conversation(2))
    return write_rollout(config_home.root / ".codex", [meta_line(), *talk])


def test_list_shows_both_agents(rollout: Path, cli: Cli, document: Document) -> None:
    """``sessions`` lists both agents' sessions and marks those of Codex. ``--agent`` selects one agent."""
    rows = document("sessions", "--all")["data"]["sessions"]
    assert {(row["agent"], row["session_id"]) for row in rows} == {
        ("claude", SESSION),
        ("codex", THREAD_ID),
    }
    (row,) = document("sessions", "--all", "--agent", "codex")["data"]["sessions"]
    assert row["commands"] == {
        "in_client": f"/resume {THREAD_ID}",
        "shell": f"cd /home/user/proj && codex resume {THREAD_ID}",
    }
    assert (row["session_file"], row["expires_at"], row["context"]["window"]) == (
        str(rollout),
        None,
        258_400,
    )
    assert len(document("sessions", "--project", "/home/user/proj")["data"]["sessions"]) == 2
    (row,) = document("sessions", "--all", "--agent", "claude")["data"]["sessions"]
    assert row["session_id"] == SESSION
    text = cli("sessions", "--all", environ={"COLUMNS": "200"}).stdout.decode()
    assert ["  codex · open" in line for line in text.splitlines() if THREAD_ID[:8] in line] == [
        True
    ]


def test_info_describes_the_rollout(rollout: Path, document: Document) -> None:
    """``info`` describes the rollout, not the readable copy."""
    info, lines = document("info", THREAD_ID)["data"], rollout.read_bytes().splitlines()
    assert (info["session_file"], info["size"], info["lines"]) == (
        str(rollout),
        rollout.stat().st_size,
        len(lines),
    )
    assert info["longest_line"] == max(map(len, lines))


def test_search_covers_both_agents(rollout: Path, cli: Cli, document: Document) -> None:
    """``search`` finds sessions of both agents. ``--agent`` selects one agent."""
    (hit,) = document("search", "tune parser", "--all")["data"]["hits"]
    assert (hit["agent"], hit["session_file"], hit["role"]) == ("codex", str(rollout), "prompt")
    assert hit["commands"]["resume"] == f"cd /home/user/proj && codex resume {THREAD_ID}"
    assert document("search", "tune parser", "--all", "--agent", "claude")["data"]["hits"] == []
    assert document("read", hit["reference"])["data"]["text"] == "Tune the parser"
    assert f"{THREAD_ID} · codex" in cli("search", "tune", "--all").stdout.decode()
    assert document("doctor", "--index", "update")["data"]["index"]["vaulted"] == 0


@pytest.mark.part("stats")
def test_stats_count_both_agents(rollout: Path, document: Document) -> None:
    """``stats`` counts sessions of both agents with their tokens. ``--agent`` selects one agent."""
    assert document("stats", "--all", "--agent", "codex")["data"]["months"][0]["sent"] == 8_980
    assert document("stats", "--all")["data"]["sessions"] == 2
    assert (
        document("stats", "--project", "/home/user/proj", "--agent", "codex")["data"]["sessions"]
        == 1
    )


@pytest.mark.part("secrets")
def test_secrets_in_a_rollout_are_reported(rollout: Path, cli: Cli) -> None:
    """``scrub --list`` reports a secret in a rollout with the rollout's path."""
    done = cli("scrub", "--list", THREAD_ID, "--json")
    assert done.returncode == 1
    (secret,) = json.loads(done.stdout)["data"]["secrets"]
    assert (secret["file"], secret["reference"], secret["session_id"]) == (
        str(rollout),
        "",
        THREAD_ID,
    )


@pytest.mark.parametrize("words", UNSUPPORTED_COMMANDS, ids=lambda words: str(words[0]))
def test_an_unsupported_verb_is_refused(rollout: Path, cli: Cli, words: list[str]) -> None:
    """A verb that does not support Codex sessions refuses such a session with an error.

    The rollout is unchanged.
    """
    before = rollout.read_bytes()
    done = cli(words[0], THREAD_ID, *words[1:])
    assert done.returncode == 2
    assert b"is a Codex session, which this verb does not support" in done.stderr
    assert rollout.read_bytes() == before


@pytest.mark.part("secrets")
def test_a_scrubbed_child_has_no_secret(rollout: Path, cli: Cli, document: Document) -> None:
    """``scrub`` makes a child whose messages, calls and outputs contain no secret.

    If a thought contains a secret, its encrypted part is removed.
    """
    plain, told = (
        item_line(
            "reasoning",
            summary=[{"type": "summary_text", "text": text}],
            encrypted_content=text[:4] * 40,
        )
        for text in ("thought", f"it is {API_KEY}")
    )
    more = [
        plain,
        told,
        call_line("c1", f"curl -H {API_KEY}"),
        output_line("c1", [{"type": "input_text", "text": f"sent {API_KEY}"}]),
    ]
    with rollout.open("ab") as stream:
        stream.write(b"".join(json.dumps(one).encode() + b"\n" for one in more))
    before = rollout.read_bytes()
    done = cli("scrub", THREAD_ID, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    schema_of_verb("scrub").model_validate(data)
    assert (data["file"], data["receipt"]["agent"]) == (str(rollout), "codex")
    assert [(row["path"], sum(row["secrets"].values())) for row in data["places"]] == [
        (str(rollout), 4)
    ]
    child = Path(data["receipt"]["file"]).read_bytes()
    assert API_KEY.encode() not in child
    assert child.count(b'"encrypted_content"') == 1
    # An event also contains the answer, so the answer's secret is removed twice.
    assert child.count(b"[secret removed: ") == 4
    assert rollout.read_bytes() == before
    assert (
        b"Only sessions of Claude Code can be rewritten"
        in cli("scrub", THREAD_ID, "--in-place", "--yes").stderr
    )


@pytest.mark.part("secrets", "share", "stats")
@pytest.mark.skipif(
    not codex_rollouts(), reason="the corpus of rollouts is missing: set RESUME_HOOKS_CODEX"
)
def test_every_reading_verb_reads_every_real_rollout(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Every reading verb reads every real rollout and prints data that matches the verb's schema.

    The rollouts are unchanged.
    """
    home = config_home.root / ".codex" / "sessions"
    home.mkdir(parents=True)
    for path in codex_rollouts():
        (home / path.name).write_bytes(path.read_bytes())

    def run_verb(*words: str) -> Any:
        done = CliRunner().invoke(command, [*words, "--json"], env=config_home.environ)
        assert done.exit_code == 0 or "--list" in words, (words, done.output)
        data = json.loads(done.stdout)["data"]
        schema_of_verb(words[0]).model_validate(data)
        return data

    listed = run_verb("sessions", "--all", "--helpers", "--limit", "0")["sessions"]
    assert len(listed) == len(codex_rollouts())
    assert {row["agent"] for row in listed} == {"codex"}
    for row in listed:
        own = row["session_id"]
        info = run_verb("info", own)
        assert info["session_file"] == row["session_file"]
        assert (info["bad_lines"], info["context"]["tokens"] > 0) == ([], True)
        assert run_verb("outline", own)["turn_count"] >= row["turns_at_least"]
        assert run_verb("read", own, "--turns", "1")["records"]
        assert run_verb("read", own, "--page")["events"]
        run_verb("read", own, "--commands")
        assert run_verb("lineage", own)["rows"][-1]["session_id"] == own
        if row["size"] < 500_000:
            assert run_verb("export", own, "-o", str(tmp_path / f"{own}.md"))["turns"]
    assert run_verb("search", "the", "--all", "--helpers", "--limit", "50")["total"]
    assert run_verb("scrub", "--list", listed[-1]["session_id"])["files"] == 1
    assert run_verb("stats", "--all")["sessions"] == len(listed)
    for path in codex_rollouts():
        assert (home / path.name).read_bytes() == path.read_bytes()


def test_verbs_make_children_in_either_agent(rollout: Path, cli: Cli, document: Document) -> None:
    """The verbs make children for either agent and print data that matches their schemas.

    ``trim --in-place`` is refused, and the rollout is unchanged.
    """
    before = rollout.read_bytes()
    assert document("fork", THREAD_ID)["data"]["agent"] == "codex"
    made = document("handoff", THREAD_ID, "-n", "go on", "--to", "claude")["data"]
    assert (made["agent"], made["commands"]["in_client"]) == (
        "claude",
        f"/resume {made['session_id']}",
    )
    assert Path(made["file"]).read_bytes().count(b"session ran in Codex") == 1
    made = document("handoff", SESSION, "-n", "go on", "--to", "codex")["data"]
    assert made["commands"]["shell"] == f"cd /home/user/proj && codex resume {made['session_id']}"
    rows = document("lineage", made["session_id"])["data"]["rows"]
    assert [row["session_id"] for row in rows] == [SESSION, made["session_id"]]
    assert document("rollover", THREAD_ID, "--quick")["data"]["title"].endswith(" · rollover")
    assert document("trim", THREAD_ID)["data"]["savings"]["pays"] is False
    assert document("untrim", THREAD_ID, "--all")["data"]["written"] is False
    (came, *_) = document("find-derived", THREAD_ID)["data"]["rows"]
    assert (came["kind"], came["session_file"].startswith(str(rollout.parents[3]))) == (
        "fork",
        True,
    )
    assert len(document("find-derived", THREAD_ID, "--all")["data"]["rows"]) == 3
    assert b"which this verb does not support" in cli("trim", THREAD_ID, "--in-place").stderr
    assert rollout.read_bytes() == before


@pytest.mark.part("marks")
def test_a_rewind_makes_a_separate_session(rollout: Path, document: Document) -> None:
    """``back`` makes a separate session, and the rollout is unchanged."""
    before = rollout.read_bytes()
    assert document("mark", THREAD_ID, "-g", "try")["data"]["file"] == str(rollout)
    made = document("back", THREAD_ID, "--report", "it was slower")["data"]
    assert (made["kind"], made["agent"], made["back"]["resolved"]) == ("back", "codex", True)
    assert rollout.read_bytes() == before


def test_a_session_without_a_folder_continues_in_codex(
    rollout: Path, config_home: ConfigHome, document: Document
) -> None:
    """A session without a folder continues in Codex: its child gets the current folder."""
    rows = [{key: value for key, value in row.items() if key != "cwd"} for row in conversation(2)]
    write_session(config_home.project("/gone"), OTHER_THREAD_ID, rows)
    for verb in ("fork", "handoff"):
        made = document(verb, OTHER_THREAD_ID, "--to", "codex")["data"]
        (child,) = rollout.parent.parent.parent.parent.rglob(f"*{made['session_id']}.jsonl")
        assert read_meta(str(child)).cwd == str(config_home.root / "here")


def test_a_rollover_to_codex_has_the_summary(config_home: ConfigHome, rollout: Path) -> None:
    """A rollover in Codex adds the model's summary to the child's file."""
    parent = resolve_locator(THREAD_ID, "/", config_home.where, allow_other_agents=True)
    begun = summary.plan_rollover(parent, config_home.where)
    written = summary.write_rollover(begun, config_home.where)
    calls = ModelCalls(ScriptedModel(), 60, lambda _n, _c: None)
    outcome = summary.add_summary(begun, written, calls, config_home.where)
    assert outcome.failure_reason == ""
    assert outcome.receipt.file == written.file
    text = Path(written.file).read_text("utf-8")
    assert "goal: Mend the parser." in text
    assert text.count("custom-title") == 0


def test_doctor_reports_on_codex(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor counts Codex sessions and names the command that installs the plugin in Codex.

    If the plugin is already installed in Codex, doctor names no command.
    """
    monkeypatch.setenv("HOME", str(config_home.root))
    monkeypatch.delenv("CODEX_HOME", raising=False)

    def codex_finding() -> Finding:
        (found,) = (each for each in check_installation("/") if each.name == "other agents")
        return found

    assert codex_finding().detail == "none except Claude Code"
    codex = config_home.root / ".codex"
    write_rollout(codex, [meta_line(), message_line("user", "go")])
    assert (codex_finding().code, codex_finding().detail) == (
        "other-agents-without",
        "Codex: 1 session, without the plugin",
    )
    assert "codex plugin add resume-hooks@resume-hooks" in codex_finding().remedy
    (codex / "config.toml").write_text(
        '[plugins."resume-hooks@resume-hooks"]\nenabled = true\n', "utf-8"
    )
    assert (codex_finding().code, codex_finding().detail) == ("other-agents-ok", "Codex: 1 session")


def test_a_reply_to_codex_has_only_two_keys() -> None:
    """A blocking reply to Codex contains only the keys "decision" and "reason" and mentions Codex."""
    host = host_of_event({"turn_id": "t", "model": "gpt-5"})
    card = "To confirm, type >trim yes in Claude Code"
    found = json.loads(block_reply(card, host))
    assert found == {"decision": "block", "reason": "To confirm, type >trim yes in Codex"}
    assert "hookSpecificOutput" in json.loads(block_reply(card, host_of_event({"session_id": "s"})))


def test_the_picker_lists_codex_sessions(terminal_home: TerminalHome) -> None:
    """The picker lists Codex sessions with the agent's name and finds them by their content.

    Codex continues a chosen session.
    """
    talk = [
        rollouts.message_line("user", "Tune the parser", 1),
        rollouts.message_line("assistant", "The needle is in it.", 2),
    ]
    rollout = rollouts.write_rollout(
        terminal_home.home.root / ".codex",
        [rollouts.meta_line(cwd=str(terminal_home.project)), *talk],
    )
    os.utime(rollout, (time.time() - 9 * HOUR_SECONDS,) * 2)
    before = rollout.read_bytes()
    (terminal_home.bin / "codex").write_text(FAKE_CLIENT_SCRIPT)
    (terminal_home.bin / "codex").chmod(0o755)
    screen = terminal_home.run("resume", columns=150, HOME=str(terminal_home.home.root))
    screen.wait_for("^> Fix the parser")
    screen.wait_for("^  codex · Tune the parser")
    screen.type("needle")
    screen.wait_for(r"^> codex · Tune the parser +(strong|fair|weak)  The needle")
    screen.key("Escape")
    screen = terminal_home.run(
        "resume", "codex tune", columns=150, HOME=str(terminal_home.home.root)
    )
    screen.wait_for("^> codex · Tune the parser")
    screen.wait_for("1 turn, newest first")
    for told in ("1 session, oldest first", "warm cold"):
        screen.key("Tab")
        screen.wait_for(told)
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    screen.type("1\r")
    screen.wait_for(f"STARTED resume {rollouts.THREAD_ID} IN {terminal_home.project.name}$")
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()
    shell = f"cd {terminal_home.project} && codex resume {rollouts.THREAD_ID}"
    screen = terminal_home.run(
        "resume",
        rollouts.THREAD_ID,
        "--way",
        "go on",
        "--print",
        columns=200,
        HOME=str(terminal_home.home.root),
    )
    assert screen.wait_for_end() == 0
    assert shell.encode() in screen.raw
    screen = terminal_home.run(
        "continue", rollouts.THREAD_ID, "--fork", columns=200, HOME=str(terminal_home.home.root)
    )
    screen.wait_for(rf"STARTED resume (?!{rollouts.THREAD_ID})\S+ IN {terminal_home.project.name}$")
    (terminal_home.bin / "codex").unlink()
    screen = terminal_home.run(
        "handoff", rollouts.THREAD_ID, "--start", columns=200, HOME=str(terminal_home.home.root)
    )
    screen.wait_for("codex is not on PATH, so no session was created")
    assert rollout.read_bytes() == before


def test_doctor_does_not_require_claude_code_for_codex_users(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doctor reports a missing Claude Code as a problem only if Claude Code sessions exist."""
    monkeypatch.setenv("PATH", "/nowhere")
    write_rollout(config_home.root / ".codex", [meta_line(), message_line("user", "go")])

    def levels_of_findings() -> list[str]:
        return [each.level for each in check_installation("/") if each.name in {"client", "plugin"}]

    shutil.rmtree(config_home.where.projects, ignore_errors=True)
    assert levels_of_findings() == ["note", "note"]
    write_session(config_home.project("/home/user/proj"), SESSION, conversation(2))
    assert levels_of_findings() == ["problem", "problem"]

"""Tests that a full session is compacted as the setting ``compaction`` says, without asking a model.

The session then continues.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks import settings
from resume_hooks.derive import untrim
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.sessions.locate import session_file
from tests.e2e.harness.client import Tui
from tests.e2e.harness.mock_api import Refusal, Request, Usage
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import text_of_request
from tests.e2e.test_in_place import (
    assert_every_client_resends_the_contents,
    assert_request_is_valid,
    request_contents,
    send_next_prompt,
)
from tests.e2e.test_inside import RUN_ENGINE_STATEMENT, engine_environment, open_real_session
from tests.needs import one_in

USAGE_OF_FULL_CONTEXT, USAGE_BELOW_COMPACTION = (
    Usage(input_tokens=100_000),
    Usage(input_tokens=60_000),
)
FACTS_HEADING = "Facts about this session from before it was compacted:"
TOO_LONG_ERROR = Refusal(400, "prompt is too long: 205000 tokens > 200000 maximum")
SIGNED_THINKING = {"thinking": "Let me read.", "signature": "c2lnbmVk" * 40}
ENGINE_SCRIPT_READING_COMMAND = (
    "import json\nraw = sys.stdin.buffer.read()\nheld = os.memfd_create('x')\nos.write(held, raw)\n"
    "os.lseek(held, 0, 0)\nos.dup2(held, 0)\ncommand = json.loads(raw)['command']\n"
)
"""The first lines of a fake engine. They read the name of the command that the module sends."""

ENGINE_SCRIPT_WITHOUT_PLAN = (
    ENGINE_SCRIPT_READING_COMMAND + f"if command != 'plan':\n    {RUN_ENGINE_STATEMENT}\n"
)
"""The first lines of a fake engine that fails only if the module sends the command ``plan``.

This command asks for the plan for a compaction.
"""

ENGINE_SCRIPT_WITH_SLOW_BAND = (
    ENGINE_SCRIPT_READING_COMMAND
    + f"if command == 'band':\n    time.sleep(5)\n{RUN_ENGINE_STATEMENT}"
)
"""A fake engine that needs five seconds to report how full the session is, as on a busy machine."""


def summary_requests(tui: Tui) -> list[Request]:
    """Return the requests in which the client asks the model for a summary of the conversation."""
    return [
        request
        for request in tui.api.requests
        if "detailed summary" in text_of_request(request)[-20_000:]
    ]


class ContextFillingModel:
    """A model whose first reply fills the context.

    The first reply is a tool call, a refusal, or a final answer, depending on
    ``compaction_moment``.
    """

    def __init__(self, tui: Tui, compaction_moment: str) -> None:
        self.api, self.first = tui.api, True
        tui.home.cwd.joinpath("notes.txt").write_text("a line of notes\n" * 300)
        call = {"name": "Read", "input": {"file_path": str(tui.home.cwd / "notes.txt")}}
        replies: dict[str, Reply] = {
            "within a turn": [call],
            "while it thinks": [SIGNED_THINKING, call],
        }
        self.reply = {**replies, "after a refusal": TOO_LONG_ERROR}.get(compaction_moment)

    def __call__(self, request: Request) -> Reply | None:
        """Return the reply to a main request, and set the usage that the reply reports."""
        del request
        first, self.first = self.first, False
        self.api.usage = (
            USAGE_OF_FULL_CONTEXT
            if first and isinstance(self.reply, list)
            else USAGE_BELOW_COMPACTION
        )
        return self.reply if first else None


@pytest.mark.parametrize(
    ("compaction_moment", "compaction_setting"),
    [
        ("before a turn", "trim"),
        ("within a turn", "12k"),
        pytest.param("while it thinks", "trim", marks=pytest.mark.wide),
        pytest.param("after a refusal", "trim", marks=pytest.mark.wide),
    ],
)
def test_the_turn_continues_without_a_summary(
    tui: Tui, plugin: Path, parent: Path, compaction_moment: str, compaction_setting: str
) -> None:
    """The client compacts without a summary, and the current prompt is still answered.

    The request contains the prompt and a single list of facts about the session. Every client that
    resumes the session sends the same context as the running client.
    """
    before = parent.read_bytes()
    tui.home.write_settings(
        {"autoCompactWindow": 100_000 if compaction_moment == "before a turn" else 130_000}
    )
    open_real_session(tui, plugin, {"RESUME_HOOKS_COMPACTION": compaction_setting})
    tui.api.script = ContextFillingModel(tui, compaction_moment)
    tui.submit(f"{compaction_moment} ALPHA")
    tui.wait_for("Mock reply [0-9]+")
    tui.wait_until_idle()
    assert summary_requests(tui) == []
    tui.wait_for(rf"shrunk in place \(compaction {compaction_setting}\)(.*\n)+?.*/untrim")
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(str(parent))), tui.home.where)
    assert decided.sizes.tokens_after > decided.sizes.tokens_before
    request = tui.api.main_requests()[-1]
    assert_request_is_valid(request)
    assert text_of_request(request).count(FACTS_HEADING) == 1
    assert f"{compaction_moment} ALPHA" in text_of_request(request)
    assert ("a line of notes" in text_of_request(request)) == (
        compaction_moment in {"within a turn", "while it thinks"}
    )
    if compaction_setting == "trim":
        assert ("user", "", "We should add the agent name to any logging") in request_contents(
            request
        )
    else:
        assert "talk, oldest first" in text_of_request(request)
    tui.api.script = ()
    tui.api.usage = USAGE_BELOW_COMPACTION
    assert_every_client_resends_the_contents(
        tui.home, tui.api, parent, before, send_next_prompt(tui)
    )


@pytest.mark.parametrize(
    "failing_script",
    one_in(2, ["sys.exit('the engine is ill')", "time.sleep(60)"]),
    ids=["fails", "hangs"],
)
def test_the_client_itself_compacts_if_the_engine_fails(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path, failing_script: str
) -> None:
    """If the engine fails, the client itself compacts a full session and asks the model for a summary.

    Before that, ``/trim here`` reports the failure and changes nothing.
    """
    before = parent.read_bytes()
    tui.home.write_settings({"autoCompactWindow": 100_000})
    open_real_session(
        tui,
        plugin,
        engine_environment(tmp_path, ENGINE_SCRIPT_WITHOUT_PLAN + failing_script)
        | {"RESUME_HOOKS_COMPACTION": "trim"},
    )
    tui.submit("/trim here")
    tui.wait_for("Not compacted · .*(ill|timed out|timeout|15)")
    assert b'"compact_boundary"' not in parent.read_bytes()[len(before) :]
    assert not tui.api.main_requests()
    tui.wait_until_idle()
    tui.submit("go on DELTA")
    tui.wait_for("Mock reply [0-9]")
    assert summary_requests(tui)
    assert "go on DELTA" in text_of_request(tui.api.main_requests()[-1])


@pytest.mark.parametrize(
    ("env", "usage"),
    [
        pytest.param(
            {"RESUME_HOOKS_NOTICE_PERCENT": "5"},
            USAGE_OF_FULL_CONTEXT,
            id="of the model's window",
            marks=pytest.mark.wide,
        ),
        pytest.param(
            {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, Usage(106_000), id="of the user's own"
        ),
    ],
)
def test_the_compaction_hint_appears_once(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path, env: dict[str, str], usage: Usage
) -> None:
    """After a turn, a hint about the setting ``compaction`` appears once.

    The hint takes no keys: a prompt that the user types while the hint is shown is sent completely.
    The engine is asked when the session starts but answers only after the turn.
    """
    open_real_session(tui, plugin, engine_environment(tmp_path, ENGINE_SCRIPT_WITH_SLOW_BAND) | env)
    tui.api.usage = usage
    tui.submit("hello")
    tui.wait_for("Mock reply 1")
    tui.wait_for("config compaction trim")
    tui.submit("/resume-hooks:help")
    tui.wait_until_idle(4)
    before = tui.text().count("config compaction trim")
    tui.submit("1 more fix")
    tui.wait_for("Mock reply 2")
    tui.wait_until_idle(1)
    assert tui.text().count("config compaction trim") == before
    request = text_of_request(tui.api.main_requests()[-1])
    assert "1 more fix" in request
    assert "config compaction trim" not in request
    assert settings.load_settings(tui.home.where)["compaction"].source == "default"
    assert b'"compact_boundary"' not in parent.read_bytes()[-200_000:]

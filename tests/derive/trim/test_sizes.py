"""The size of a session is one, whoever asks: before a trim, after it, and when it is undone."""

from __future__ import annotations

from pathlib import Path

from resume_hooks.derive import untrim
from resume_hooks.derive.child.write import write
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts.tokens import recent_context, stated_size
from tests import builders
from tests.builders import ConfigHome
from tests.derive.trim.sessions import Chain

OUTPUT = "output of a command " * 400


def a_session(home: ConfigHome) -> Path:
    """Ten turns of two thousand tokens each, counted by the API at four characters a token."""
    chain, tokens = Chain(), 20_000
    for turn in range(10):
        chain.ask(f"question {turn}").answer([builders.call(f"t{turn}", "Bash", command="ls")], tokens=tokens)
        chain.result(f"t{turn}", OUTPUT)
        tokens += len(OUTPUT) // 4
        chain.answer("done", tokens=tokens)
    return Path(builders.write_session(home.project(), builders.SESSION, chain.rows))


def test_a_child_states_what_its_trim_came_to(config_home: ConfigHome) -> None:
    """The card, a second trim, and the receipt tell one size; its ratio is that of its parent."""
    path = a_session(config_home)
    decided = plan.plan(plan.read(session_file(str(path))), config_home.where, Options())
    made = write(decided, config_home.where)
    told = stated_size(made.file)
    assert told is not None
    assert (told.tokens, told.original) == (made.tokens_after, made.tokens_before)
    assert recent_context(made.file).tokens == made.tokens_after
    again = plan.read(session_file(made.file))
    assert again.context.tokens == made.tokens_after
    assert round(again.scale.ratio, 1) == round(told.ratio, 1) == 4.0


def test_an_undone_trim_is_as_large_as_before(config_home: ConfigHome) -> None:
    """Where everything comes back, the size does; the child says so itself."""
    path = a_session(config_home)
    decided = plan.plan(plan.read(session_file(str(path))), config_home.where, Options())
    child = write(decided, config_home.where)
    whole = write(untrim.plan(untrim.read(session_file(child.file)), config_home.where), config_home.where)
    assert (whole.tokens_before, whole.tokens_after) == (child.tokens_after, child.tokens_before)
    assert recent_context(whole.file).tokens == child.tokens_before


def test_a_count_that_fell_is_believed(config_home: ConfigHome) -> None:
    """Fewer tools or another model: only a client's own note of clearing makes a session larger than it was counted."""
    path = a_session(config_home)
    rows = [builders.user("go on", uuid="u", parent="c39", ts=50)]
    rows.append(builders.assistant("yes", uuid="v", parent="u", ts=51, tokens=25_000))
    with path.open("ab") as stream:
        stream.write(builders.session_bytes(rows))
    assert plan.read(session_file(str(path))).context.tokens == 25_000


def test_a_tool_that_nobody_called_is_named(config_home: ConfigHome) -> None:
    """A misspelt filter is told from a session that has nothing to trim."""
    scanned = plan.read(session_file(str(a_session(config_home))))
    decision = plan.decide(scanned, Options(tools=("bsh", "bash")), config_home.where)
    assert decision.unknown_tools == ("bsh",)

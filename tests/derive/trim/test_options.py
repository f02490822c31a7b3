"""The options of a trim out of what was typed."""

from __future__ import annotations

import pytest

from resume_hooks.derive.trim.options import TypedOptions, options_of, parse
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from tests.builders import ConfigHome


def test_options_in_any_order(config_home: ConfigHome) -> None:
    """With dashes or without, with a value behind or after an equals sign; thresholds by tool."""
    one = parse("--keep-recent 3 tools=Read,Bash --threshold 300 --threshold Bash=2000", config_home.where)
    two = parse("threshold=Bash=2000 threshold=300 --tools=Read,Bash keep-recent=3", config_home.where)
    assert one == two
    assert (one.keep_recent, one.tools, one.limit("Read"), one.limit("Bash")) == (3, ("read", "bash"), 300, 2_000)


def test_settings_stand_in(config_home: ConfigHome) -> None:
    """Where nothing was typed."""
    environ = {**config_home.environ, "RESUME_HOOKS_THRESHOLD": "900", "RESUME_HOOKS_KEEP_RECENT": "5"}
    options = parse("", Where(environ))
    assert (options.limit("Read"), options.usual_recent, options.keep_recent) == (900, 5, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--tools", "needs a value"),
        ("--tools ''", "empty"),
        ("--only ,", "empty"),
        ("--only nothing", "no rule 'nothing'"),
        ("--only assistant", "how many"),
        ("--keep-recent x", "needs a number"),
        ("--keep-recent -1", "less than 0"),
        ("--keep-recent 99999999999999999999", "no number of"),
        ("--assistant -99999999999999999999", "no number of"),
        ("--threshold Read=x", "needs characters"),
        ("please", "not an option"),
        ("'open", "can't be read"),
    ],
)
def test_what_can_not_be_meant(config_home: ConfigHome, text: str, words: str) -> None:
    """A sentence that says what, and nothing is done."""
    with pytest.raises(UsageError, match=words):
        parse(text, config_home.where)


def test_an_empty_list_is_no_list(config_home: ConfigHome) -> None:
    """An unset variable of a shell must not mean every tool."""
    assert options_of(where=config_home.where).tools == ()
    with pytest.raises(UsageError, match="--tools is empty"):
        options_of(TypedOptions(tools=""), config_home.where)

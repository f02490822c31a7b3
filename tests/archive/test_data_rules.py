"""The account's data rules, as the client tells them: no copy that outlives its own, and nothing off the machine."""

from __future__ import annotations

import os

import pytest

from resume_hooks.archive import data_rules
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.permission import check_archiving_allowed
from resume_hooks.errors import VaultOff
from resume_hooks.hooks.client_module import answer_module
from resume_hooks.sessions.archived.layout import vault_folder
from tests.archive.vault.laid_out import laid_out
from tests.builders import SESSION, ConfigHome


def ask(**fields: object) -> object:
    """The module's question at a start."""
    return answer_module("rules", {"session_id": SESSION, "screen": True, **fields})


def test_under_a_rule_nothing_is_archived(config_home: ConfigHome) -> None:
    """This begins at the start at which the client reports the rule, and ends when it reports none."""
    session = laid_out(config_home)
    assert ask(rules=["hipaa", "zdr"]) == {}
    with pytest.raises(VaultOff, match=r"data rules \(hipaa, zdr\) are in force"):
        archive_session(session, config_home.where)
    assert not os.path.lexists(vault_folder(config_home.where))
    ask(rules=[])
    assert check_archiving_allowed(config_home.where) == (True, "")


@pytest.mark.parametrize("told", [None, "hipaa", {"hipaa": True}])
def test_data_rules_that_are_not_a_list_are_ignored(config_home: ConfigHome, told: object) -> None:
    """An older client reports none."""
    ask(rules=told)
    assert data_rules.read_data_rules(config_home.where) == ()
    ask(rules=["zdr"])
    ask(rules=told)
    assert data_rules.read_data_rules(config_home.where) == ("zdr",)


def test_only_text_is_kept_of_it(config_home: ConfigHome) -> None:
    """It is short, limited in number, and without control characters."""
    ask(rules=["\x1b[2J", 7, None, "z" * 1_000, *(str(number) for number in range(100))])
    rules = data_rules.read_data_rules(config_home.where)
    assert (rules[0], len(rules)) == ("z" * 40, 20)

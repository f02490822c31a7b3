"""Tests that data rules of the user's account, which the client reports, forbid archived copies."""

from __future__ import annotations

import os

import pytest

from resume_hooks.archive import data_rules
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.permission import check_archiving_allowed
from resume_hooks.errors import VaultOff
from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.sessions.archived.layout import vault_folder
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import SESSION, ConfigHome


def report_data_rules(**fields: object) -> object:
    """Report data rules to the engine, as the client's module does at a start."""
    return answer_module_request("rules", {"session_id": SESSION, "screen": True, **fields})


def test_a_data_rule_forbids_archiving(config_home: ConfigHome) -> None:
    """Archiving is forbidden once the client reports a rule, until it reports no rules."""
    session = session_with_every_file(config_home)
    assert report_data_rules(rules=["hipaa", "zdr"]) == {}
    with pytest.raises(VaultOff, match=r"data rules \(hipaa, zdr\) are in force"):
        archive_session(session, config_home.where)
    assert not os.path.lexists(vault_folder(config_home.where))
    report_data_rules(rules=[])
    assert check_archiving_allowed(config_home.where) == (True, "")


@pytest.mark.parametrize("reported_value", [None, "hipaa", {"hipaa": True}])
def test_data_rules_in_another_form_are_ignored(
    config_home: ConfigHome, reported_value: object
) -> None:
    """A value that is not a list of rules does not change the stored rules."""
    report_data_rules(rules=reported_value)
    assert data_rules.read_data_rules(config_home.where) == ()
    report_data_rules(rules=["zdr"])
    report_data_rules(rules=reported_value)
    assert data_rules.read_data_rules(config_home.where) == ("zdr",)


def test_stored_data_rules_are_short_plain_text(config_home: ConfigHome) -> None:
    """Stored data rules are limited in length and number.

    Values that are not text or that have control characters are dropped.
    """
    report_data_rules(
        rules=["\x1b[2J", 7, None, "z" * 1_000, *(str(number) for number in range(100))]
    )
    rules = data_rules.read_data_rules(config_home.where)
    assert (rules[0], len(rules)) == ("z" * 40, 20)

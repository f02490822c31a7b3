"""Tests of ``config``, which shows settings with their sources and stores a setting."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks import clock, part_table
from resume_hooks.archive import link_sessions
from resume_hooks.archive.vault import permission
from resume_hooks.sessions.archived.manifest import list_archived
from resume_hooks.settings import FORMER_SETTINGS
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.cli.conftest import Cli, Document
from tests.needs import keep_names_of_installed_parts


def test_config_lists_every_setting_with_its_source(
    config_home: ConfigHome, document: Document, cli: Cli
) -> None:
    """``config`` lists the value and the source of each setting, and the path of the settings file."""
    data = document("config", environ={"RESUME_HOOKS_TRIGGERS_OFF": "help"})["data"]
    assert data["file"] == str(config_home.config / "resume-hooks" / "settings.json")
    told = {row["key"]: (row["value"], row["source"]) for row in data["settings"]}
    assert told == keep_names_of_installed_parts(
        {
            "context_window": (0, "default"),
            "clipboard": ("none", "environment"),
            "notice_percent": (80, "default"),
            "summary_model": ("haiku", "default"),
            "handoff_size": ("12k", "default"),
            "handoff_dir": ("", "default"),
            "vault": ("20G", "default"),
            "handoff_tool": ("off", "default"),
            "compaction": ("client", "default"),
            "handoff_sends": ("off", "default"),
            "team_model_search": ("off", "default"),
            "triggers_off": (["help"], "environment"),
        },
        part_table.SETTINGS,
    )
    assert b"triggers_off" in cli("config").stdout


def test_config_stores_a_setting(document: Document) -> None:
    """``config KEY VALUE`` stores the value, which then has the source "file"."""
    (row,) = document("config", "context_window", "500000")["data"]["settings"]
    assert (row["value"], row["source"]) == (500_000, "file")
    (row,) = document("config", "context_window")["data"]["settings"]
    assert row["value"] == 500_000


def test_config_vault_reports_waiting_copies_and_removed_links(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``config vault`` states when the copies that await the user's consent will be made.

    ``config vault off`` first counts the files that only links preserve.
    """
    path = write_session(config_home.project(), SESSION, conversation(1), mtime=1_700_000_000)
    state = Path(config_home.where.state)
    link_sessions.link_all_sessions(config_home.where, lambda: False)
    (state / "pending").mkdir()
    (state / permission.CLIENT_CAN_ASK_MARKER_FILE).touch()
    assert "5 days after archiving was first due" in document("config", "vault")["warnings"][0]
    assert "5 days after archiving was first due" in document("config")["warnings"][0]
    (state / permission.WAIT_START_MARKER_FILE).touch()
    soon = clock.format_minute(clock.timestamp_from_epoch(time.time() + 5 * clock.DAY))[:10]
    assert f"sessions are archived from {soon}" in document("config", "vault")["warnings"][0]
    findings = json.loads(cli("doctor", "--json").stdout)["data"]["findings"]
    (found,) = [each for each in findings if each["name"] == "vault"]
    assert (found["code"], f"are archived from {soon}" in found["detail"]) == (
        "vault-awaited",
        True,
    )
    (goes,) = document("config", "vault", "off")["warnings"]
    assert goes.startswith("The links that preserve sessions are removed at the next start")
    assert "no longer" not in goes
    os.unlink(path)
    (goes,) = document("config", "vault", "off")["warnings"]
    assert (
        "1 file that Claude Code no longer has; to keep them: resume-hooks config vault on" in goes
    )
    assert document("config", "vault", "on")["warnings"] == []
    document("restore")
    assert [each.session_id for each in list_archived(config_home.where)] == [SESSION]


def test_triggers_off_accepts_every_name_of_a_trigger(document: Document, cli: Cli) -> None:
    """``config triggers_off`` accepts the names of all triggers, and refuses other names.

    The error lists the valid names.
    """
    error = document("config", "triggers_off", "full, fulll", code=2)["error"]
    assert (error["message"], "full, " in error["remedy"]) == ("There is no trigger 'fulll'", True)
    document("config", "triggers_off", "/full, recall")
    for verb in ("resume", "recall", "recover-context"):
        assert b"switched off" in cli("slash", verb, SESSION, stdin=b"").stdout
    assert b"switched off" not in cli("slash", "session", SESSION, stdin=b"").stdout


@pytest.mark.parametrize("key", FORMER_SETTINGS)
def test_a_former_setting_is_ignored_with_a_warning(
    config_home: ConfigHome, document: Document, key: str
) -> None:
    """If the settings file contains a setting that no longer exists, ``config`` warns and ignores it.

    ``config`` also refuses to store such a setting.
    """
    path = config_home.config / "resume-hooks" / "settings.json"
    path.parent.mkdir()
    path.write_text(f'{{"{key}": {{}}, "clipboard": "tmux"}}')
    found = document("config", environ={"RESUME_HOOKS_CLIPBOARD": ""})
    assert found["warnings"] == [f"{key} (file) is ignored: {FORMER_SETTINGS[key]}."]
    assert {row["key"]: row["value"] for row in found["data"]["settings"]}["clipboard"] == "tmux"
    assert FORMER_SETTINGS[key] in document("config", key, "5", code=2)["error"]["remedy"]


def test_a_variable_for_a_former_setting_is_reported(cli: Cli) -> None:
    """If a variable sets a setting that no longer exists, ``config`` and ``doctor`` report the variable."""
    said = f"threshold (environment) is ignored: {FORMER_SETTINGS['threshold']}."
    given = {"RESUME_HOOKS_THRESHOLD": "500"}
    assert said in cli("config", environ=given).stderr.decode()
    assert said in cli("doctor", environ=given).stdout.decode()
    assert "is ignored" not in cli("config").stderr.decode()


def test_config_does_not_overwrite_a_damaged_file(
    config_home: ConfigHome, document: Document
) -> None:
    """If the settings file is damaged, ``config`` leaves it unchanged and stores nothing."""
    path = config_home.config / "resume-hooks" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"clipboard": "tmux"')
    assert document("config", "clipboard", "none", code=1)["error"]["code"] == "write-failed"
    assert path.read_text() == '{"clipboard": "tmux"'


def test_config_explains_when_a_new_limit_takes_effect(cli: Cli) -> None:
    """``config`` explains that open sessions use a new limit only after their next resume."""
    assert (
        b"uses the new setting after its next resume"
        in cli("config", "compaction", "trim@70k").stderr
    )
    assert b"once it is resumed" not in cli("config", "compaction", "trim").stderr
    assert b"once it is resumed" not in cli("config", "compaction").stderr


def test_config_compaction_warns_if_a_policy_disables_it(config_home: ConfigHome, cli: Cli) -> None:
    """If a policy on this machine disables the setting, ``config compaction`` warns but still stores it."""
    assert b"no effect" not in cli("config", "compaction", "24k").stderr
    (config_home.config / "remote-settings.json").write_text('{"permissions": {}}')
    assert b"compaction has no effect here" in cli("config", "compaction", "trim").stderr
    assert b"no effect" not in cli("config", "compaction", "client").stderr

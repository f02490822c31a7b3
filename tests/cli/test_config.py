"""config: settings with their sources, and setting one."""

from __future__ import annotations

import pytest

from resume_hooks import part_table
from resume_hooks.settings import FORMER
from tests.builders import ConfigHome
from tests.cli.conftest import Cli, Document
from tests.needs import here


def test_every_setting_with_its_source(config_home: ConfigHome, document: Document, cli: Cli) -> None:
    """Key, value, source, what it does; the file that keeps them."""
    data = document("config", environ={"RESUME_HOOKS_TRIGGERS_OFF": "help"})["data"]
    assert data["file"] == str(config_home.config / "resume-hooks" / "settings.json")
    told = {row["key"]: (row["value"], row["source"]) for row in data["settings"]}
    assert told == here(
        {
            "context_window": (0, "default"),
            "clipboard": ("none", "environment"),
            "notice_percent": (80, "default"),
            "summary_model": ("haiku", "default"),
            "handoff_dir": ("", "default"),
            "ledger_file": ("", "default"),
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


def test_setting_one(document: Document) -> None:
    """It is kept, and shown alone."""
    (row,) = document("config", "context_window", "500000")["data"]["settings"]
    assert (row["value"], row["source"]) == (500_000, "file")
    (row,) = document("config", "context_window")["data"]["settings"]
    assert row["value"] == 500_000


@pytest.mark.parametrize("words", [("clipbord",), ("clipbord", "x"), ("clipboard", "x"), ("context_window", "-1")])
def test_what_is_no_setting_is_usage(document: Document, words: tuple[str, ...]) -> None:
    """With what would be right."""
    error = document("config", *words, code=2)["error"]
    assert error["code"] == "usage"
    assert error["message"]


@pytest.mark.parametrize("key", FORMER)
def test_a_former_setting_is_ignored_and_told(config_home: ConfigHome, document: Document, key: str) -> None:
    """In the file, with the reason and the values beside it in force; typed it is usage."""
    path = config_home.config / "resume-hooks" / "settings.json"
    path.parent.mkdir()
    path.write_text(f'{{"{key}": {{}}, "clipboard": "tmux"}}')
    found = document("config", environ={"RESUME_HOOKS_CLIPBOARD": ""})
    assert found["warnings"] == [f"{key} (file) is ignored: {FORMER[key]}."]
    assert {row["key"]: row["value"] for row in found["data"]["settings"]}["clipboard"] == "tmux"
    assert FORMER[key] in document("config", key, "5", code=2)["error"]["remedy"]


def test_a_former_setting_of_the_environment_is_told(cli: Cli) -> None:
    """By config and by doctor, with where it is given."""
    said = f"threshold (environment) is ignored: {FORMER['threshold']}."
    given = {"RESUME_HOOKS_THRESHOLD": "500"}
    assert said in cli("config", environ=given).stderr.decode()
    assert said in cli("doctor", environ=given).stdout.decode()
    assert "is ignored" not in cli("config").stderr.decode()


def test_a_damaged_file_is_left_alone(config_home: ConfigHome, document: Document) -> None:
    """Setting a key does not throw away what a person has written."""
    path = config_home.config / "resume-hooks" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"clipboard": "tmux"')
    assert document("config", "clipboard", "none", code=1)["error"]["code"] == "write-failed"
    assert path.read_text() == '{"clipboard": "tmux"'

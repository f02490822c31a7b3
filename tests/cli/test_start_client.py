"""Tests of how the client is started: its config home, its environment and its command."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from resume_hooks.cli.start_client import (
    ClientStart,
    find_client_start,
    make_client_environment,
    replace_process_with_client,
)
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from tests.builders import SESSION, ConfigHome


def test_the_client_inherits_the_current_config_home(config_home: ConfigHome) -> None:
    """If the session is in the current config home, the client inherits CLAUDE_CONFIG_DIR unchanged."""
    path = str(config_home.project() / f"{SESSION}.jsonl")
    found = find_client_start(SESSION, path, "/proj", config_home.where)
    assert found == ClientStart(SESSION, "/proj")
    assert found.command == f"cd /proj && claude --resume {SESSION}"
    assert make_client_environment(found, config_home.where) == {
        **config_home.environ,
        "PWD": "/proj",
    }
    usual = {"HOME": str(config_home.root)}
    assert make_client_environment(
        find_client_start(SESSION, path, "/proj", Where(usual)), Where(usual)
    ) == {
        **usual,
        "PWD": "/proj",
    }


def test_another_config_home_is_set_for_the_client(config_home: ConfigHome, tmp_path: Path) -> None:
    """If the session is in a different config home, the environment and the printed command set it."""
    other = tmp_path / "other home"
    found = find_client_start(
        SESSION, f"{other}/projects/-proj/{SESSION}.jsonl", "/proj", config_home.where
    )
    assert make_client_environment(found, config_home.where)["CLAUDE_CONFIG_DIR"] == str(other)
    assert found.command == f"cd /proj && CLAUDE_CONFIG_DIR='{other}' claude --resume {SESSION}"


def test_claude_config_dir_is_unset_for_the_default_config_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the session is in the default config home, the client's environment lacks CLAUDE_CONFIG_DIR.

    The command that resumes the session also unsets the variable. With the variable, the client
    would use a settings file at a different path.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    environ = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": "/elsewhere"}
    found = find_client_start(
        SESSION, f"{tmp_path}/.claude/projects/-proj/{SESSION}.jsonl", "/proj", Where(environ)
    )
    assert "CLAUDE_CONFIG_DIR" not in make_client_environment(found, Where(environ))
    assert found.command == f"cd /proj && env -u CLAUDE_CONFIG_DIR claude --resume {SESSION}"


def test_a_file_outside_a_project_has_no_config_home() -> None:
    """A file outside a project's folder has no config home."""
    assert (
        find_client_start(
            SESSION, f"/tmp/{SESSION}.jsonl", "/proj", Where({"HOME": "/h"})
        ).config_home
        == ""
    )


def test_the_client_inherits_the_users_variables() -> None:
    """The client inherits the user's variables, but no variables that an outer client has set."""
    environ = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": SESSION,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "9",
        "PWD": "/x",
    }
    assert make_client_environment(ClientStart(SESSION, "/proj"), Where(environ)) == {
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "9",
        "PWD": "/proj",
    }


def test_a_missing_folder_is_reported_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the folder is missing, the client is not started, and the error contains the command.

    Afterwards, SIGPIPE is still ignored.
    """
    client = tmp_path / "claude"
    client.write_text("#!/bin/sh\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ResumeHooksError, match="can't be started in /not/there: No such file"
    ) as caught:
        replace_process_with_client(ClientStart(SESSION, "/not/there"))
    assert caught.value.remedy == f"By hand: cd /not/there && claude --resume {SESSION}"
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN

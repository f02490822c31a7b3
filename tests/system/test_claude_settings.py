"""Tests of the client's settings: their files, the order of their levels, and the retention period."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.system import claude_settings
from resume_hooks.system.claude_settings import (
    find_policy_file,
    read_retention_days,
    settings_files,
)
from tests.builders import ConfigHome


def test_settings_files_are_listed_by_level(config_home: ConfigHome) -> None:
    """``settings_files`` returns the files of the levels user, project, local and managed, in order."""
    user, project, local, managed = settings_files("/w", config_home.where)
    assert user == str(config_home.config / "settings.json")
    assert (project, local) == ("/w/.claude/settings.json", "/w/.claude/settings.local.json")
    assert managed.endswith("managed-settings.json")


@pytest.mark.parametrize(
    ("user", "project", "local", "days"),
    [
        (None, None, None, 30),
        (7, None, None, 7),
        (7, 60, None, 60),
        (7, 60, 3, 3),
        (10**12, None, None, claude_settings.MAX_RETENTION_DAYS),
        (0, None, None, None),
        (0, 60, None, None),
        (60, 0, None, None),
        (-1, None, None, None),
        (1.5, None, None, None),
        ("7", None, None, None),
        (True, None, None, None),
    ],
)
def test_the_strongest_level_sets_the_retention_days(
    config_home: ConfigHome, tmp_path: Path, user: Any, project: Any, local: Any, days: int | None
) -> None:
    """The strongest level with a value sets the retention period.

    If the value of any level is not a whole number of at least 1, clients delete nothing.
    """
    for path, value in zip(
        settings_files(str(tmp_path), config_home.where), (user, project, local), strict=False
    ):
        if value is not None:
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_text(json.dumps({"cleanupPeriodDays": value}), encoding="utf-8")
    assert read_retention_days(str(tmp_path), config_home.where) == days


def test_a_damaged_settings_file_counts_as_empty(config_home: ConfigHome, tmp_path: Path) -> None:
    """A settings file without a JSON object counts as empty."""
    (config_home.config / "settings.json").write_text("[1", encoding="utf-8")
    assert (
        read_retention_days(str(tmp_path), config_home.where)
        == claude_settings.DEFAULT_RETENTION_DAYS
    )


@pytest.mark.parametrize(
    ("name", "text", "is_policy"),
    [
        ("managed-settings.json", '{"cleanupPeriodDays": 60}', True),
        ("managed-settings.d/10-work.json", '{"env": {}}', True),
        ("managed-settings.d/10-work.txt", '{"env": {}}', False),
        ("managed-settings.json", "{}", False),
        ("managed-settings.json", "no json", False),
    ],
)
def test_managed_settings_are_a_policy(
    config_home: ConfigHome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    is_policy: bool,
) -> None:
    """A managed settings file with settings is a policy. An empty or an invalid one is not."""
    monkeypatch.setattr(claude_settings, "_find_managed_folder", lambda: str(tmp_path))
    assert find_policy_file(config_home.where) == ""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert find_policy_file(config_home.where) == (str(path) if is_policy else "")


def test_settings_fetched_by_the_client_are_a_policy(config_home: ConfigHome) -> None:
    """Settings that the client fetched for a Team or Enterprise account are a policy."""
    path = config_home.config / "remote-settings.json"
    path.write_text('{"permissions": {}}')
    assert find_policy_file(config_home.where) == str(path)

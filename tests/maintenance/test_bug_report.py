"""Tests of the data for a bug report.

The data contain what is needed to find a bug, but no names of sessions, projects or people.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import part_table
from resume_hooks.cli.schema.upkeep import BugReport
from resume_hooks.maintenance import bug_report
from resume_hooks.maintenance.bug_report import Anonymizer
from resume_hooks.maintenance.doctor import Finding, check_installation
from resume_hooks.paths import Where
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.storage.stored_settings import store_setting
from resume_hooks.system import bug_log
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    system,
    user,
    write_session,
)
from tests.needs import keep_names_of_installed_parts

USER_NAME = "aliceplanted"
PRIVATE_TEXTS = {
    "title": "Planted title of a session",
    "prompt": "planted words of a prompt",
    "path": "/srv/planted-client/secret-project",
    "name": USER_NAME,
    "project": "planted-project",
    "secret": "sk-ant-planted-0123456789abcdef",
    "event": "PlantedEvent of somebody",
}


@pytest.fixture
def home_with_private_texts(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Path:
    """Write a home with private texts in every possible place, and return its project's folder."""
    home = tmp_path / USER_NAME
    config = home / ".claude"
    project = home / "work" / PRIVATE_TEXTS["project"]
    state = config / "resume-hooks"
    for folder in (
        project / ".claude",
        state,
        config / "plugins" / "data" / "resume-hooks-x",
        home / "bin",
    ):
        folder.mkdir(parents=True)
    for key, value in {
        "HOME": home,
        "CLAUDE_CONFIG_DIR": config,
        "PATH": home / "bin",
        "USER": USER_NAME,
    }.items():
        monkeypatch.setenv(key, str(value))
    monkeypatch.setenv("TERM_PROGRAM", PRIVATE_TEXTS["path"])
    monkeypatch.setenv("ANTHROPIC_API_KEY", PRIVATE_TEXTS["secret"])
    where = {"cwd": str(project)}
    infos = [{"command": PRIVATE_TEXTS["path"], "durationMs": 5}]
    records = [{**record, **where} for record in conversation(1)]
    records += [
        user(PRIVATE_TEXTS["prompt"], uuid="p", parent="r1", ts=5, **where),
        custom_title(PRIVATE_TEXTS["title"]),
    ]
    records += [system("stop_hook_summary", uuid="s", ts=6, hookInfos=infos)]
    attached = {"type": "hook_success", "hookEvent": PRIVATE_TEXTS["event"], "durationMs": 5}
    records += [
        {"type": "attachment", "timestamp": "2026-01-31T10:00:00.000Z", "attachment": attached}
    ]
    key = re.sub("[^A-Za-z0-9]", "-", str(project))
    write_session(config / "projects" / key, SESSION, records)
    record_link(
        Link(SESSION, session_id(7), PRIVATE_TEXTS["title"], "2026-01-31T10:00:00.000Z", None),
        Where(),
    )
    (state / PRIVATE_TEXTS["title"]).write_text("x")
    (state / "settings.json").write_text(
        json.dumps(
            {
                "handoff_dir": PRIVATE_TEXTS["path"],
                "summary_model": f"{USER_NAME}-model",
                "notice_percent": PRIVATE_TEXTS["secret"],
            }
        ).replace(f"{USER_NAME}-model", f"{USER_NAME}-model")
    )
    os.chmod(state, 0o700)
    (project / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    failure = {"state": "failed", "started": 5, "error": f"{PRIVATE_TEXTS['path']}/x: no {project}"}
    (config / "plugins" / "data" / "resume-hooks-x" / "install.json").write_text(
        json.dumps(failure)
    )
    (config / "settings.json").write_text(
        json.dumps({"enabledPlugins": {f"resume-hooks@{PRIVATE_TEXTS['project']}": True}})
    )
    known = {
        "plugins": {"resume-hooks@x": [{"version": PRIVATE_TEXTS["path"]}, {"version": "1.2.3"}]}
    }
    (config / "plugins" / "installed_plugins.json").write_text(json.dumps(known))
    try:
        raise KeyError(PRIVATE_TEXTS["secret"], PRIVATE_TEXTS["prompt"])  # noqa: TRY301 - raised here on purpose
    except KeyError as error:
        path = bug_log.log_bug("search", "1", error)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(
            f"{PRIVATE_TEXTS['prompt']}\n\n2026-01-31T10:00:00.000Z 1 search KeyError\n  {PRIVATE_TEXTS['prompt']}\n\n"
        )
    monkeypatch.chdir(project)
    return project


def validated_report(project: Path) -> dict[str, Any]:
    """Return the report, checked against its schema."""
    found = bug_report.make_bug_report(check_installation(str(project)), str(project), Where())
    return BugReport.model_validate(found).model_dump()


def test_the_report_has_no_private_text(home_with_private_texts: Path) -> None:
    """A bug report has no title, prompt, path, project, user name, or value of a variable or a setting."""
    text = json.dumps(validated_report(home_with_private_texts)).lower()
    for what, words in PRIVATE_TEXTS.items():
        assert words.lower() not in text, what
    assert "planted" not in text
    assert str(home_with_private_texts.parent).lower() not in text
    assert SESSION not in text


def test_the_report_has_the_necessary_facts(home_with_private_texts: Path) -> None:
    """A bug report contains versions, codes of findings, and keys of changed settings.

    It also contains the places in the code where bugs occurred.
    """
    found = validated_report(home_with_private_texts)
    codes = {row["code"]: row for row in found["findings"]}
    assert (
        codes["hooks-off"]["detail"] == "disableAllHooks is true in <project>/.claude/settings.json"
    )
    assert codes["engine-install-failed"]["detail"].startswith(
        "the plugin's own install failed: <path>"
    )
    assert codes["settings-refused"]["detail"] == ""
    assert found["versions"]["plugin"] == ["other", "1.2.3"]
    values = {row["key"]: row["value"] for row in found["settings"]}
    expected = keep_names_of_installed_parts(
        {"handoff_dir": "set", "summary_model": "<user>-model"}, part_table.SETTINGS
    )
    assert {key: values[key] for key in expected} == expected
    assert [entry.split()[2:4] for entry in found["log"]] == [["search", "KeyError"]] * 2


def test_only_known_findings_have_a_detail(home_with_private_texts: Path) -> None:
    """A bug report contains only the code and the level of a finding that it does not know."""
    own = Finding("new thing", "note", PRIVATE_TEXTS["path"], "", "new-thing")
    found = bug_report.make_bug_report([own], str(home_with_private_texts), Where())["findings"]
    assert found == [{"code": "new-thing", "level": "note", "detail": ""}]


def test_every_finding_has_a_code(home_with_private_texts: Path) -> None:
    """The code of every finding consists of lower-case words with dashes."""
    for finding in check_installation(str(home_with_private_texts)):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", finding.code)


@pytest.mark.parametrize(
    ("text", "anonymized_text"),
    [
        (
            "in /home/ann/.claude/projects/-home-ann-x/a.jsonl",
            "in <config>/projects/<path>/a.jsonl",
        ),
        ("at /home/ann/.virtualenvs/client/bin/python3", "at ~/.virtualenvs/<path>"),
        ("at /home/ann/work/parser/x.py, and", "at ~/<path>, and"),
        ("at /home/ann/work/this/.claude", "at <project>/.claude"),
        ("at /home/annabel/x", "at <path>"),
        ("at /usr/bin/python3 and /srv/x/y.", "at /usr/bin/python3 and <path>"),
        ("at /usr/local/client/venv/bin/python3", "at <path>"),
        ("ann's, annex, Ann, ann@host", "<user>'s, annex, Ann, <user>@host"),
        ("12 of 30 / 40 %", "12 of 30 / 40 %"),
    ],
)
def test_paths_and_names_are_anonymized(
    text: str, anonymized_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home and the project are replaced by short names, and other paths are removed.

    The user's name is replaced where it is a whole word.
    """
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    anonymizer = Anonymizer("/home/ann/work/this", Where({"HOME": "/home/ann"}))
    assert anonymizer.anonymize(text) == anonymized_text


def test_default_settings_are_omitted(config_home: ConfigHome) -> None:
    """A bug report lists only changed settings. Numbers are included unchanged."""
    store_setting("notice_percent", "7", config_home.where)
    found = bug_report.make_bug_report([], str(config_home.root), config_home.where)["settings"]
    assert found == [{"key": "notice_percent", "value": 7, "source": "file"}]

"""Tests of the findings of ``doctor``, with and without each problem."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from resume_hooks.maintenance import doctor
from resume_hooks.maintenance.doctor import Finding, check_installation
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import open_index
from resume_hooks.system import bug_log
from resume_hooks.transcripts.lines import MIN_GIANT_FILE_BYTES
from tests.builders import SESSION, ConfigHome, boundary, session_bytes, summary, user


@pytest.fixture
def client_config(config_home: ConfigHome) -> Path:
    """Return the client's config folder."""
    return Path(config_home.config)


@pytest.fixture
def cwd(client_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project's folder. There is no client on PATH and no clipboard."""
    folder = tmp_path / "project"
    folder.mkdir()
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return folder


def finding_named(cwd: Path, name: str) -> Finding:
    """Return the finding of ``doctor`` with this name."""
    return next(finding for finding in check_installation(str(cwd)) if finding.name == name)


def write_fake_client(cwd: Path, output: str) -> None:
    """Write a program ``claude`` on PATH that prints ``output``."""
    program = cwd.parent / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho '{output}'\n")
    program.chmod(0o755)


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as JSON to ``path``. Create the folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("output", "level"),
    [
        ("2.1.329 (Claude Code)", "ok"),
        ("2.1.112 (Claude Code)", "ok"),
        ("2.0.76 (Claude Code)", "problem"),
        ("", "problem"),
    ],
)
def test_doctor_checks_the_clients_version(cwd: Path, output: str, level: str) -> None:
    """A supported client is ok. A missing or old client, or one that prints no version, is a problem."""
    assert "not on PATH" in finding_named(cwd, "client").detail
    write_fake_client(cwd, output)
    assert finding_named(cwd, "client").level == level


@pytest.mark.parametrize("key", ["disableAllHooks", "allowManagedHooksOnly"])
@pytest.mark.parametrize("level", ["user", "project", "local"])
def test_disabled_hooks_are_found(cwd: Path, client_config: Path, key: str, level: str) -> None:
    """A setting that disables hooks is found in each file of the client, and the file is named."""
    path = {
        "user": client_config / "settings.json",
        "project": cwd / ".claude" / "settings.json",
        "local": cwd / ".claude" / "settings.local.json",
    }[level]
    assert finding_named(cwd, "hooks").level == "ok"
    write_json(path, {key: True})
    assert finding_named(cwd, "hooks").level == "problem"
    assert str(path) in finding_named(cwd, "hooks").detail


def test_doctor_checks_the_plugin(cwd: Path, client_config: Path) -> None:
    """The plugin is reported as not installed, as ok, or as switched off by the project's settings."""
    assert "not installed" in finding_named(cwd, "plugin").detail
    write_json(
        client_config / "settings.json", {"enabledPlugins": {"resume-hooks@resume-hooks": True}}
    )
    assert finding_named(cwd, "plugin").level == "ok"
    write_json(
        cwd / ".claude" / "settings.json", {"enabledPlugins": {"resume-hooks@resume-hooks": False}}
    )
    assert "switched off" in finding_named(cwd, "plugin").detail


def test_a_plugin_of_another_version_is_found(cwd: Path, client_config: Path) -> None:
    """If the client still loads another version of the plugin, ``doctor`` suggests running ``install``."""
    write_json(
        client_config / "settings.json", {"enabledPlugins": {"resume-hooks@resume-hooks": True}}
    )
    folder = client_config / "resume-hooks" / "plugin"
    write_json(folder / ".claude-plugin" / "plugin.json", {"version": "0.0.1"})
    assert finding_named(cwd, "plugin").level == "ok"
    known = {"resume-hooks": {"source": {"path": str(folder)}}}
    write_json(client_config / "plugins" / "known_marketplaces.json", known)
    finding = finding_named(cwd, "plugin")
    assert (finding.level, finding.remedy) == ("note", "Run: resume-hooks install")
    assert "0.0.1" in finding.detail


@pytest.mark.parametrize(
    ("state", "level"), [("ready", "ok"), ("installing", "note"), ("failed", "problem")]
)
def test_doctor_checks_the_installation(
    cwd: Path, client_config: Path, state: str, level: str
) -> None:
    """The finding on the engine depends on the installer's state, and has the cause of a failure."""
    data = client_config / "plugins" / "data" / "resume-hooks-resume-hooks" / "install.json"
    write_json(data, {"state": state, "started": 1, "error": "no network"})
    finding = finding_named(cwd, "engine")
    assert finding.level == level
    assert ("no network" in finding.detail) == (state == "failed")


def test_a_venv_of_a_checkout_needs_no_installation(cwd: Path, client_config: Path) -> None:
    """If the client's clone has a .venv, doctor reports a failed installation of the engine only as a note."""
    data = client_config / "plugins" / "data" / "resume-hooks-resume-hooks" / "install.json"
    write_json(data, {"state": "failed", "started": 1, "error": "no network"})
    clone = cwd / "my clone"
    known = {"resume-hooks": {"source": {"path": str(clone)}}}
    write_json(client_config / "plugins" / "known_marketplaces.json", known)
    assert f"run: sh '{clone}/hooks/engine' --install" in finding_named(cwd, "engine").remedy
    (clone / ".venv").mkdir(parents=True)
    finding = finding_named(cwd, "engine")
    assert (finding.level, finding.code) == ("note", "engine-install-failed")
    assert finding.detail.endswith(
        f"no network; a client that loads the plugin from {clone} uses the .venv there"
    )
    data.unlink()
    assert (
        f"the plugin uses {clone}/.venv, or installs its own" in finding_named(cwd, "engine").detail
    )


def test_the_python_whose_packages_are_used_is_named(cwd: Path, client_config: Path) -> None:
    """If the engine uses the packages of another Python, the finding names this Python."""
    data = client_config / "plugins" / "data" / "resume-hooks-resume-hooks" / "install.json"
    write_json(data, {"state": "ready", "started": 1, "tool": "/tools/python"})
    assert "the packages of /tools/python" in finding_named(cwd, "engine").detail


def test_another_tool_with_the_same_triggers_is_found(cwd: Path, client_config: Path) -> None:
    """The hook of aichat, which has the same triggers, is found in settings and in an installed plugin."""
    assert finding_named(cwd, "other tools").level == "ok"
    hook = {
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": "python3 aichat_resume_hook.py"}]}
        ]
    }
    write_json(client_config / "settings.json", {"hooks": hook})
    assert str(client_config / "settings.json") in finding_named(cwd, "other tools").detail
    write_json(client_config / "settings.json", {})
    root = cwd.parent / "other"
    write_json(root / "hooks" / "hooks.json", {"hooks": hook})
    installed = {"plugins": {"aichat@cctools": [{"installPath": str(root)}]}}
    write_json(client_config / "plugins" / "installed_plugins.json", installed)
    assert "aichat@cctools" in finding_named(cwd, "other tools").detail


def test_damaged_settings_of_the_client_count_as_empty(cwd: Path, client_config: Path) -> None:
    """``doctor`` treats damaged settings of the client as empty."""
    for damage in ("{not json", '{"hooks":' * 100_000):
        (client_config / "settings.json").write_text(damage)
        assert finding_named(cwd, "hooks").level == "ok"
    write_json(
        client_config / "plugins" / "installed_plugins.json",
        {"plugins": {"x@y": 3, "z@y": [1, {"installPath": 4}]}},
    )
    write_json(
        cwd / ".claude" / "settings.json",
        {"hooks": {"UserPromptSubmit": [1, {"hooks": 2}]}, "enabledPlugins": []},
    )
    assert finding_named(cwd, "other tools").level == "ok"


def test_doctor_checks_the_state_folder(cwd: Path, client_config: Path) -> None:
    """A state folder that others can read, or that is no folder, is a problem.

    A private or a missing folder is ok.
    """
    state = client_config / "resume-hooks"
    assert finding_named(cwd, "state").level == "ok"
    state.mkdir(mode=0o700)
    assert finding_named(cwd, "state").level == "ok"
    state.chmod(0o755)
    assert "other users can read" in finding_named(cwd, "state").detail
    state.rmdir()
    state.symlink_to(cwd)
    assert "not a folder" in finding_named(cwd, "state").detail


def test_a_state_folder_that_cannot_be_created_is_reported(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state folder that cannot be created is a problem: a parent is a file or cannot be written."""
    (cwd / "file").touch()
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(cwd / "file" / "state"))
    finding = finding_named(cwd, "state")
    assert (finding.level, finding.code) == ("problem", "state-unmakable")
    assert finding.detail.endswith(f"can't be created: {cwd / 'file'} is not a folder")
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(cwd / "far" / "away" / "state"))
    assert finding_named(cwd, "state").level == "ok"
    # The root user may write everywhere, so the check is replaced.
    monkeypatch.setattr("os.access", lambda path, _mode: path != str(cwd))
    finding = finding_named(cwd, "state")
    assert (finding.level, finding.code) == ("problem", "state-unmakable")
    assert finding.detail.endswith(f"can't be created: {cwd} can't be written")
    assert "RESUME_HOOKS_HOME" in finding.remedy


def test_a_full_disk_is_found(
    cwd: Path, client_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, the finding states the free space and what resume-hooks can no longer store.

    The finding is the same if the state folder is missing.
    """
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=12_000))
    for _ in range(2):
        finding = finding_named(cwd, "state")
        assert (finding.level, finding.code) == ("problem", "state-full")
        assert "resume-hooks has 12.0 KB free: sessions, marks, settings" in finding.detail
        assert "Free some space" in finding.remedy
        (client_config / "resume-hooks").mkdir(mode=0o700, exist_ok=True)


def test_invalid_settings_are_found(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid setting is a problem, and the finding names its source."""
    assert finding_named(cwd, "settings").level == "ok"
    monkeypatch.setenv("RESUME_HOOKS_CONTEXT_WINDOW", "plenty")
    finding = finding_named(cwd, "settings")
    assert finding.level == "problem"
    assert "environment" in finding.detail


def test_doctor_checks_the_clipboard(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a display and xclip, the finding on the clipboard names xclip."""
    program = cwd.parent / "bin" / "xclip"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("DISPLAY", ":0")
    assert "xclip" in finding_named(cwd, "clipboard").detail


def test_transcripts_are_counted(cwd: Path, client_config: Path) -> None:
    """The finding on transcripts counts the sessions of this folder and of all folders."""
    assert finding_named(cwd, "transcripts").level == "note"
    folder = client_config / "projects" / "-elsewhere"
    folder.mkdir(parents=True)
    (folder / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl").write_bytes(
        b'{"type":"summary","summary":"x"}\n'
    )
    assert finding_named(cwd, "transcripts").detail.startswith("1 session, 0 of this folder")
    assert os.environ["CLAUDE_CONFIG_DIR"] == str(client_config)


def test_a_giant_session_is_found(cwd: Path, client_config: Path) -> None:
    """A giant session, on which a client may hang, is reported.

    If one of its lines is large, a slim copy is suggested.
    """
    assert finding_named(cwd, "giants").level == "ok"
    path = client_config / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(3 * MIN_GIANT_FILE_BYTES)
    giant = finding_named(cwd, "giants")
    assert (giant.level, giant.code) == ("note", "giants-found")
    assert f"{path} has 300.0 MB, one line of it 300.0 MB; " in giant.detail
    assert f"resume-hooks archive --slim {SESSION[:8]}" in giant.remedy


def test_a_fork_is_suggested_for_a_giant_session(
    cwd: Path, client_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a giant session with a small live conversation, a fork is suggested.

    The fork omits everything before the last compaction.
    """
    monkeypatch.setattr(doctor, "MIN_GIANT_FILE_BYTES", 2_000_000)
    monkeypatch.setattr(doctor, "MIN_GIANT_LINE_BYTES", 1_000_000)
    path = client_config / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    before = [
        user("words " * 2_000, uuid=f"u{number}", parent=f"u{number - 1}" if number else None)
        for number in range(500)
    ]
    after = [boundary(uuid="b", before="u499"), summary("what was done", uuid="s", parent="b")]
    path.write_bytes(session_bytes([*before, *after]))
    assert f"resume-hooks fork {SESSION[:8]}" in finding_named(cwd, "giants").remedy


def test_doctor_checks_the_index(cwd: Path, client_config: Path) -> None:
    """A missing or damaged index is a note, because a search builds a new one.

    An index of a newer version is a problem.
    """
    assert finding_named(cwd, "index").level == "note"
    folder = client_config / "projects" / "-elsewhere"
    folder.mkdir(parents=True)
    (folder / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl").write_bytes(
        b'{"type":"summary","summary":"x"}\n'
    )
    with open_index(Where()):
        pass
    assert finding_named(cwd, "index").level == "ok"
    path = client_config / "resume-hooks" / "index.db"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE about SET version=version+1")
    assert (finding_named(cwd, "index").level, bool(finding_named(cwd, "index").remedy)) == (
        "problem",
        True,
    )
    path.write_bytes(b"nonsense" * 1_000)
    assert finding_named(cwd, "index").level == "note"


def test_logged_bugs_are_reported(cwd: Path) -> None:
    """Logged bugs are reported with their number, the time of the last one, and the file to send."""
    assert finding_named(cwd, "log").code == "log-ok"
    for _ in range(2):
        bug_log.log_bug("search", "1", KeyError("secret"))
    finding = finding_named(cwd, "log")
    assert (finding.level, finding.code) == ("note", "log-bugs")
    assert finding.detail.startswith("2 bugs recorded in ")
    assert "doctor --bundle" in finding.remedy
    assert "secret" not in finding.detail


def test_doctor_reports_a_policy(cwd: Path, client_config: Path) -> None:
    """A policy is reported with its file and the features that do not work."""
    assert finding_named(cwd, "policy").level == "ok"
    write_json(client_config / "remote-settings.json", {"permissions": {}})
    assert finding_named(cwd, "policy").level == "note"
    assert "disables '/trim here'" in finding_named(cwd, "policy").detail

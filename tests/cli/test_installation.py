"""Tests of ``install`` and ``install --remove``.

Both run the client's commands, or print them if there is no client. They change no session.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks import seam
from resume_hooks.cli.main import run
from tests.builders import ConfigHome
from tests.needs import REPO


@pytest.fixture
def config_folder(config_home: ConfigHome) -> Path:
    """Return the client's config folder."""
    return Path(config_home.config)


@pytest.fixture
def empty_path_folder(config_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, and make it the only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_fake_client(empty_path_folder: Path, exit_code: int = 0) -> Path:
    """Write a program ``claude`` that records its arguments, and return the file that contains them."""
    log = empty_path_folder / "calls"
    program = empty_path_folder / "claude"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\necho said so >&2\nexit {exit_code}\n'
    )
    program.chmod(0o755)
    return log


def test_install_prints_the_commands_without_a_client(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a client on PATH, ``install`` writes the plugin and prints the client's commands."""
    assert run(["install"]) == 0
    plugin = config_folder / "resume-hooks" / "plugin"
    assert f"claude plugin marketplace add {plugin}" in capsys.readouterr().out
    assert (plugin / ".claude-plugin" / "plugin.json").is_file()
    assert (plugin / "src" / "resume_hooks" / "__init__.py").is_file()
    assert not (plugin / ".venv").exists()
    assert not [path for path in plugin.rglob("*") if path.stat().st_mode & 0o077], (
        "doctor would call it a problem"
    )


def test_install_runs_the_clients_commands(
    empty_path_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``install`` runs the client's commands: it adds the marketplace and then installs the plugin."""
    log = write_fake_client(empty_path_folder)
    assert run(["install", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["ran"] is True
    first, second = log.read_text().strip().split("\n")
    assert first.startswith("plugin marketplace add ")
    assert second == "plugin install resume-hooks@resume-hooks"


def test_a_dry_run_of_install_writes_nothing(empty_path_folder: Path, config_folder: Path) -> None:
    """``install --dry-run`` writes no plugin and does not call the client."""
    log = write_fake_client(empty_path_folder)
    assert run(["install", "--dry-run"]) == 0
    assert not log.exists()
    assert not (config_folder / "resume-hooks").exists()


def test_install_reports_a_failure_of_the_client(
    empty_path_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the client fails, ``install`` prints the client's message and exits with code 1."""
    write_fake_client(empty_path_folder, exit_code=3)
    assert run(["install"]) == 1
    assert "said so" in capsys.readouterr().err


def test_a_second_install_replaces_the_plugin_files(
    empty_path_folder: Path, config_folder: Path
) -> None:
    """A second ``install`` replaces the plugin's files and removes files that the plugin no longer has."""
    assert run(["install"]) == 0
    stale = config_folder / "resume-hooks" / "plugin" / "hooks" / "stale"
    stale.touch()
    assert run(["install"]) == 0
    assert not stale.exists()
    assert not [
        p.name for p in (config_folder / "resume-hooks").iterdir() if p.name.startswith("plugin.")
    ]


def test_install_remove_lists_the_kept_files(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``install --remove`` names the state folder and the command that removes this folder."""
    write_fake_client(empty_path_folder)
    (config_folder / "resume-hooks").mkdir(mode=0o700)
    assert run(["install", "--remove"]) == 0
    out = capsys.readouterr().out
    assert str(config_folder / "resume-hooks") in out
    assert "--purge" in out
    assert "sessions stay" in out


def write_installation(config_folder: Path, *folders: str) -> None:
    """Write the files of an installation.

    ``folders`` are folders in the state folder. Other files are in the client's folders; they
    belong to this plugin, to another plugin, or to the model's shell.
    """
    for name in folders:
        (config_folder / "resume-hooks" / name).mkdir(parents=True)
    data, other = (
        config_folder / "plugins" / "data" / name
        for name in ("resume-hooks-resume-hooks", "resume-hooks-other")
    )
    data.mkdir(parents=True)
    other.mkdir()
    (data / "install.json").write_text("{}")
    (config_folder / "plugins" / "cache" / "resume-hooks").mkdir(parents=True)
    (config_folder / "plugins" / "known_marketplaces.json").write_text(
        '{"resume-hooks": {"source": {"source": "github"}}}'
    )
    scripts = config_folder / "session-env" / "11111111-1111-4111-8111-111111111111"
    scripts.mkdir(parents=True)
    (scripts / "sessionstart-hook-0.sh").write_text(
        'resume-hooks() { sh "/gone/hooks/engine" "$@"; }\nexport A=1\n'
    )
    (scripts / "sessionstart-hook-1.sh").write_text("export B=1\n")
    (config_folder / "resume-hooks" / "settings.json").write_text(
        '{"version": 1, "handoff_dir": "_handoffs"}'
    )


@pytest.mark.parametrize("purge", [False, True])
def test_install_remove_lists_each_kept_file_with_its_command(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str], purge: bool
) -> None:
    """``install --remove`` lists the remaining files with the commands that remove them.

    The files are in the state folder, in the client's folders and in projects. Files of another
    plugin are not listed.
    """
    write_fake_client(empty_path_folder)
    (empty_path_folder / "resume-hooks").touch(0o755)
    write_installation(config_folder, "vault", "trash", "backups", "pending", "elsewhere")
    state, plugins = config_folder / "resume-hooks", config_folder / "plugins"
    whole = (
        [(state, "resume-hooks install --remove --purge")]
        if not purge
        else [(state / "elsewhere", "rm -r ")]
    )
    originals = [(state / name, f"rm -r {state / name}") for name in ("backups", "trash", "vault")]
    data = plugins / "data" / "resume-hooks-resume-hooks"
    clients = [
        (data, f"rm -r {data}"),
        (plugins / "cache" / "resume-hooks", "Claude Code removes it"),
        (plugins / "known_marketplaces.json", "claude plugin marketplace remove resume-hooks"),
        (config_folder / "session-env", "sed -i.old '/^resume-hooks()/d'"),
        (empty_path_folder / "resume-hooks", "pip uninstall"),
    ]
    expected = sorted((str(path), way) for path, way in [*whole, *originals, *clients])
    arguments = ["install", "--remove", *(["--purge", "--yes"] if purge else [])]
    assert run([*arguments, "--dry-run", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["data"]["stays"]) == [
        path for path, _ in expected
    ]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.split("\n")
    stays = sorted(line for line in lines if line.startswith("Not removed: "))
    assert len(stays) == len(expected)
    for line, (path, way) in zip(stays, expected, strict=True):
        assert line.startswith(f"Not removed: {path} (")
        assert way in line
    kept = "The documents that handoffs wrote into your projects are kept (handoff_dir: _handoffs)."
    assert (kept in lines) is seam.is_installed("documents")


@pytest.mark.parametrize("is_session_deleted", [False, True])
def test_a_purge_keeps_the_last_link_of_a_deleted_session(
    empty_path_folder: Path,
    config_folder: Path,
    capsys: pytest.CaptureFixture[str],
    is_session_deleted: bool,
) -> None:
    """A purge keeps a link if the client has deleted the linked session and no copy of it exists.

    If the session still exists, a purge removes the link.
    """
    write_fake_client(empty_path_folder)
    session = config_folder / "projects" / "-x" / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl"
    link = config_folder / "resume-hooks" / "held" / "-x" / session.name
    for folder in (session.parent, link.parent):
        folder.mkdir(parents=True, mode=0o700)
    session.write_bytes(b"{}\n")
    link.hardlink_to(session)
    if is_session_deleted:
        session.unlink()
    for purge in ([], ["--purge", "--yes"]):
        assert run(["install", "--remove", *purge]) == 0
        assert (
            f"Not removed: {config_folder / 'resume-hooks' / 'held'} (" in capsys.readouterr().out
        ) is is_session_deleted
        assert link.exists() is (is_session_deleted or not purge)
    assert session.exists() is not is_session_deleted


def test_a_purge_removes_only_our_files(empty_path_folder: Path, config_folder: Path) -> None:
    """A purge removes only the plugin's files.

    It keeps sessions, unknown files, and deleted sessions in the trash.
    """
    write_fake_client(empty_path_folder)
    state = config_folder / "resume-hooks"
    (state / "pending").mkdir(parents=True)
    for name in (
        "mark-1.json",
        "trim-1.json",
        "handoff-7-1.told",
        "notice-1.json",
        "rollover-1.json",
        "asked-compaction.json",
        "cold-1.json",
        "compacted-1.json",
        "parts-1.json",
        "smart-trim-1.json",
    ):
        (state / "pending" / name).touch()
    for name in (
        "links.jsonl",
        "notes.txt",
        "index.db",
        "index.db-wal",
        "index.db-shm",
        "index.db.lock",
    ):
        (state / name).touch()
    for folder in ("index/records", "trash/1"):
        (state / folder).mkdir(parents=True)
    session = config_folder / "projects" / "-x" / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(b"{}\n")
    assert run(["install", "--remove", "--purge", "--yes"]) == 0
    assert sorted(path.name for path in state.iterdir()) == ["notes.txt", "trash"]
    assert session.exists()


def test_a_dry_run_of_a_purge_lists_the_removed_files(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``install --remove --purge --dry-run`` prints the same lists as a real purge but removes nothing."""
    log = write_fake_client(empty_path_folder)
    state = config_folder / "resume-hooks"
    (state / "pending").mkdir(parents=True)
    for folder in ("index", "unpacked"):
        (state / folder).mkdir()
    for name in ("pending/mark-1.json", "links.jsonl", "audit.json", "notes.txt"):
        (state / name).touch()

    def list_deleted_and_kept_paths(*options: str) -> tuple[list[str], list[str]]:
        assert run(["install", "--remove", "--purge", *options, "--json"]) == 0
        data = json.loads(capsys.readouterr().out)["data"]
        assert data["ran"] is ("--yes" in options)
        return data["goes"], data["stays"]

    gone = [
        str(state / name)
        for name in ("links.jsonl", "audit.json", "pending/mark-1.json", "index", "unpacked")
    ]
    assert list_deleted_and_kept_paths("--dry-run") == (gone, [str(state / "notes.txt")])
    (state / "notes.txt").unlink()
    assert list_deleted_and_kept_paths("--dry-run") == (gone, [])
    assert run(["install", "--remove", "--purge", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "These commands would run:\n  claude plugin uninstall" in said
    assert all(f"Would be removed: {path}\n" in said for path in gone)
    for number in range(2, 30):
        (state / "pending" / f"mark-{number}.json").touch()
    assert run(["install", "--remove", "--purge", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"Would be removed: 29 files in {state}/pending\n" in said
    assert "mark-2" not in said
    assert not log.exists()
    assert set(list_deleted_and_kept_paths("--yes")[0]) > set(gone)
    assert not state.exists()


def test_a_dry_run_without_purge_lists_the_state_folder(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--purge``, ``install --remove --dry-run`` lists the state folder as a folder that is kept."""
    log = write_fake_client(empty_path_folder)
    (config_folder / "resume-hooks").mkdir(mode=0o700)
    assert run(["install", "--remove", "--dry-run"]) == 0
    assert f"Not removed: {config_folder / 'resume-hooks'}" in capsys.readouterr().out
    assert not log.exists()


def test_a_purge_refuses_a_symlinked_state_folder(
    empty_path_folder: Path, config_folder: Path, tmp_path: Path
) -> None:
    """If the state folder is a symbolic link, a purge does not remove any files in it."""
    write_fake_client(empty_path_folder)
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "links.jsonl").touch()
    (config_folder / "resume-hooks").symlink_to(target)
    assert run(["install", "--remove", "--purge", "--yes"]) == 1
    assert (target / "links.jsonl").exists()


def test_a_purge_needs_a_confirmation(
    empty_path_folder: Path,
    config_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A purge asks for confirmation. Without a terminal it fails, suggests ``--yes``, and removes nothing."""
    write_fake_client(empty_path_folder)
    state = config_folder / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "links.jsonl").touch()
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["install", "--remove", "--purge"]) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert (state / "links.jsonl").exists()


def test_a_plugin_folder_of_another_program_is_kept(
    empty_path_folder: Path, config_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the folder ``plugin`` is not the plugin's own, ``install`` refuses it and a purge keeps it."""
    write_fake_client(empty_path_folder)
    precious = config_folder / "resume-hooks" / "plugin" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    assert run(["install"]) == 1
    assert "not ours" in capsys.readouterr().err
    assert run(["install", "--remove", "--purge", "--yes"]) == 0
    assert precious.read_text() == "mine"


def test_install_remove_fails_if_the_plugin_is_not_installed(
    empty_path_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the client fails to remove the plugin, ``install --remove`` fails with exit code 1.

    The client fails, for example, if the plugin is not installed.
    """
    write_fake_client(empty_path_folder, exit_code=1)
    assert run(["install", "--remove", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["data"]["ran"] is False


def test_a_full_disk_is_reported_if_stdout_is_on_it(config_folder: Path) -> None:
    """If stdout is on a full disk, the command prints one sentence to stderr and exits with code 1."""
    command = [sys.executable, "-m", "resume_hooks", "config"]
    for options in ([], ["--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            env = {
                "CLAUDE_CONFIG_DIR": str(config_folder),
                "HOME": str(config_folder.parent),
                "PYTHONPATH": str(REPO / "src"),
            }
            done = subprocess.run(
                [*command, *options],
                env=env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        assert "could not be printed" in done.stderr
        assert "Traceback" not in done.stderr

"""``install``, and ``--remove``: run the client's own commands, or print them.

Say what stays, touch no session.
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
def config(config_home: ConfigHome) -> Path:
    """The client's config folder."""
    return Path(config_home.config)


@pytest.fixture
def tools(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, with nothing in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake_client(tools: Path, code: int = 0) -> Path:
    """Return a ``claude`` that records its arguments, and the file with them."""
    log = tools / "calls"
    program = tools / "claude"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\necho said so >&2\nexit {code}\n')
    program.chmod(0o755)
    return log


def test_without_a_client_the_commands_are_printed(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plugin is assembled anyway, so that the printed commands work."""
    assert run(["install"]) == 0
    plugin = config / "resume-hooks" / "plugin"
    assert f"claude plugin marketplace add {plugin}" in capsys.readouterr().out
    assert (plugin / ".claude-plugin" / "plugin.json").is_file()
    assert (plugin / "src" / "resume_hooks" / "__init__.py").is_file()
    assert not (plugin / ".venv").exists()
    assert not [path for path in plugin.rglob("*") if path.stat().st_mode & 0o077], (
        "doctor would call it a problem"
    )


def test_with_a_client_its_commands_run_in_order(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First the marketplace, then the plugin."""
    log = fake_client(tools)
    assert run(["install", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["ran"] is True
    first, second = log.read_text().strip().split("\n")
    assert first.startswith("plugin marketplace add ")
    assert second == "plugin install resume-hooks@resume-hooks"


def test_a_dry_run_writes_and_runs_nothing(tools: Path, config: Path) -> None:
    """No plugin folder is written, and the client is not called."""
    log = fake_client(tools)
    assert run(["install", "--dry-run"]) == 0
    assert not log.exists()
    assert not (config / "resume-hooks").exists()


def test_a_client_that_fails_is_reported(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own message is shown, with exit code 1."""
    fake_client(tools, code=3)
    assert run(["install"]) == 1
    assert "said so" in capsys.readouterr().err


def test_installing_twice_replaces_the_plugin_s_files(tools: Path, config: Path) -> None:
    """A file of the older release no longer exists."""
    assert run(["install"]) == 0
    stale = config / "resume-hooks" / "plugin" / "hooks" / "stale"
    stale.touch()
    assert run(["install"]) == 0
    assert not stale.exists()
    assert not [p.name for p in (config / "resume-hooks").iterdir() if p.name.startswith("plugin.")]


def test_uninstall_lists_the_kept_files(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state folder is kept and named, with the command that removes it."""
    fake_client(tools)
    (config / "resume-hooks").mkdir(mode=0o700)
    assert run(["install", "--remove"]) == 0
    out = capsys.readouterr().out
    assert str(config / "resume-hooks") in out
    assert "--purge" in out
    assert "sessions stay" in out


def laid_out(config: Path, *folders: str) -> None:
    """Write our folders in the state folder, and the plugin's files in the client's."""
    for name in folders:
        (config / "resume-hooks" / name).mkdir(parents=True)
    data, other = (
        config / "plugins" / "data" / name
        for name in ("resume-hooks-resume-hooks", "resume-hooks-other")
    )
    data.mkdir(parents=True)
    other.mkdir()
    (data / "install.json").write_text("{}")
    (config / "plugins" / "cache" / "resume-hooks").mkdir(parents=True)
    (config / "plugins" / "known_marketplaces.json").write_text(
        '{"resume-hooks": {"source": {"source": "github"}}}'
    )
    scripts = config / "session-env" / "11111111-1111-4111-8111-111111111111"
    scripts.mkdir(parents=True)
    (scripts / "sessionstart-hook-0.sh").write_text(
        'resume-hooks() { sh "/gone/hooks/engine" "$@"; }\nexport A=1\n'
    )
    (scripts / "sessionstart-hook-1.sh").write_text("export B=1\n")
    (config / "resume-hooks" / "settings.json").write_text(
        '{"version": 1, "handoff_dir": "_handoffs"}'
    )


@pytest.mark.parametrize("purge", [False, True])
def test_every_kept_file_is_listed_with_its_removal_command(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str], purge: bool
) -> None:
    """In the state folder, in the client's folders, in projects.

    What another plugin has there is its own.
    """
    fake_client(tools)
    (tools / "resume-hooks").touch(0o755)
    laid_out(config, "vault", "trash", "backups", "pending", "elsewhere")
    state, plugins = config / "resume-hooks", config / "plugins"
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
        (config / "session-env", "sed -i.old '/^resume-hooks()/d'"),
        (tools / "resume-hooks", "pip uninstall"),
    ]
    expected = sorted((str(path), way) for path, way in [*whole, *originals, *clients])
    arguments = ["install", "--remove", *(["--purge", "--yes"] if purge else [])]
    assert run([*arguments, "--dry-run", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["data"]["stays"]) == [
        path for path, _ in expected
    ]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.split("\n")
    stays = sorted(line for line in lines if line.startswith("Stays: "))
    assert len(stays) == len(expected)
    for line, (path, way) in zip(stays, expected, strict=True):
        assert line.startswith(f"Stays: {path} (")
        assert way in line
    kept = "The documents that handoffs wrote into your projects stay: handoff_dir _handoffs."
    assert (kept in lines) is seam.is_installed("documents")


@pytest.mark.parametrize("gone", [False, True])
def test_purge_removes_links_but_no_last_name(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str], gone: bool
) -> None:
    """A held session stays with its client.

    One that the client lost, and no start has archived yet, stays held.
    """
    fake_client(tools)
    session = config / "projects" / "-x" / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl"
    link = config / "resume-hooks" / "held" / "-x" / session.name
    for folder in (session.parent, link.parent):
        folder.mkdir(parents=True, mode=0o700)
    session.write_bytes(b"{}\n")
    link.hardlink_to(session)
    if gone:
        session.unlink()
    for purge in ([], ["--purge", "--yes"]):
        assert run(["install", "--remove", *purge]) == 0
        assert (f"Stays: {config / 'resume-hooks' / 'held'} (" in capsys.readouterr().out) is gone
        assert link.exists() is (gone or not purge)
    assert session.exists() is not gone


def test_purge_removes_only_what_is_ours(tools: Path, config: Path) -> None:
    """A stranger's file keeps the folder alive; ours go.

    Sessions are not touched, nor those in the trash.
    """
    fake_client(tools)
    state = config / "resume-hooks"
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
    session = config / "projects" / "-x" / "11111111-aaaa-4bbb-8ccc-000000000001.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(b"{}\n")
    assert run(["install", "--remove", "--purge", "--yes"]) == 0
    assert sorted(path.name for path in state.iterdir()) == ["notes.txt", "trash"]
    assert session.exists()


def test_a_dry_run_of_a_purge_lists_the_removed_files(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It asks nothing and removes nothing, and its list is the same as that of the purge."""
    log = fake_client(tools)
    state = config / "resume-hooks"
    (state / "pending").mkdir(parents=True)
    for folder in ("index", "unpacked"):
        (state / folder).mkdir()
    for name in ("pending/mark-1.json", "links.jsonl", "audit.json", "notes.txt"):
        (state / name).touch()

    def answer(*options: str) -> tuple[list[str], list[str]]:
        assert run(["install", "--remove", "--purge", *options, "--json"]) == 0
        data = json.loads(capsys.readouterr().out)["data"]
        assert data["ran"] is ("--yes" in options)
        return data["goes"], data["stays"]

    gone = [
        str(state / name)
        for name in ("links.jsonl", "audit.json", "pending/mark-1.json", "index", "unpacked")
    ]
    assert answer("--dry-run") == (gone, [str(state / "notes.txt")])
    (state / "notes.txt").unlink()
    assert answer("--dry-run") == (gone, [])
    assert run(["install", "--remove", "--purge", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "These would run:\n  claude plugin uninstall" in said
    assert all(f"Would go: {path}\n" in said for path in gone)
    for number in range(2, 30):
        (state / "pending" / f"mark-{number}.json").touch()
    assert run(["install", "--remove", "--purge", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"Would go: 29 files in {state}/pending\n" in said
    assert "mark-2" not in said
    assert not log.exists()
    assert set(answer("--yes")[0]) > set(gone)
    assert not state.exists()


def test_a_dry_run_without_a_purge_leaves_the_state(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state folder is listed as kept."""
    log = fake_client(tools)
    (config / "resume-hooks").mkdir(mode=0o700)
    assert run(["install", "--remove", "--dry-run"]) == 0
    assert f"Stays: {config / 'resume-hooks'}" in capsys.readouterr().out
    assert not log.exists()


def test_purge_leaves_a_symbolic_link_alone(tools: Path, config: Path, tmp_path: Path) -> None:
    """A linked state folder is the user's own arrangement: the purge is refused."""
    fake_client(tools)
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "links.jsonl").touch()
    (config / "resume-hooks").symlink_to(target)
    assert run(["install", "--remove", "--purge", "--yes"]) == 1
    assert (target / "links.jsonl").exists()


def test_purge_asks_first(
    tools: Path, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal it names the missing option, and removes nothing."""
    fake_client(tools)
    state = config / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "links.jsonl").touch()
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["install", "--remove", "--purge"]) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert (state / "links.jsonl").exists()


def test_a_folder_that_is_not_ours_is_left_alone(
    tools: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If RESUME_HOOKS_HOME has a foreign ``plugin`` folder, install refuses and purge keeps it."""
    fake_client(tools)
    precious = config / "resume-hooks" / "plugin" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    assert run(["install"]) == 1
    assert "not ours" in capsys.readouterr().err
    assert run(["install", "--remove", "--purge", "--yes"]) == 0
    assert precious.read_text() == "mine"


def test_uninstall_of_what_is_not_installed_is_a_failure(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client's refusal is reported and the exit code is 1; nothing claims to have run."""
    fake_client(tools, code=1)
    assert run(["install", "--remove", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["data"]["ran"] is False


def test_an_answer_that_can_t_be_printed_is_reported(config: Path) -> None:
    """A full disk behind stdout: one sentence on stderr, exit code 1, no trace, no bug."""
    command = [sys.executable, "-m", "resume_hooks", "config"]
    for options in ([], ["--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            env = {
                "CLAUDE_CONFIG_DIR": str(config),
                "HOME": str(config.parent),
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

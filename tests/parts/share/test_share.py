"""Tests of the verb ``share``, which writes a page that a colleague can read and continue."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.cli.main import run
from resume_hooks.parts.share.export.shared_page import BUNDLE_END_TEXT, BUNDLE_START_TEXT
from resume_hooks.paths import project_key
from tests.builders import (
    SESSION,
    ConfigHome,
    custom_title,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.hooks.test_trim import turns_with_large_files
from tests.parts.share.export.conftest import GITHUB_TOKEN, IMAGE
from tests.screens import Screen

HOSTILE_PROMPT = f"see </script><b> and {BUNDLE_START_TEXT}{'0' * 64} and {BUNDLE_END_TEXT}"


@pytest.fixture
def session_with_secrets(config_home: ConfigHome) -> Path:
    """Write a session with secrets and the home folder in many records, and return its path."""
    home = str(config_home.root)
    folder = f"{home}/proj"
    rows = [
        user(
            [{"type": "text", "text": f"Use {GITHUB_TOKEN} in {home}/proj/a.py"}, IMAGE], uuid="a"
        ),
        tool_use("t1", uuid="b", parent="a", ts=1, tool_input={"file_path": f"{home}/proj/a.py"}),
        tool_result("t1", f"{home}/.ssh\n{HOSTILE_PROMPT}", uuid="c", parent="b", ts=2),
        user("Go on", uuid="d", parent="c", ts=3),
        custom_title("Fix the parser"),
    ]
    path = Path(
        write_session(config_home.project(), SESSION, [{**row, "cwd": folder} for row in rows])
    )
    own = path.with_suffix("") / "tool-results"
    own.mkdir(parents=True)
    (own / "out.txt").write_text(f"{home}/x {GITHUB_TOKEN}\n")
    return path


@pytest.fixture
def colleague_environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a colleague, with a home of its own."""
    config = tmp_path / "colleague" / ".claude"
    config.mkdir(parents=True)
    return {"HOME": str(config.parent), "CLAUDE_CONFIG_DIR": str(config)}


def text_of_file(path: str) -> str:
    """Return the text of a file."""
    return Path(path).read_text()


def test_a_shared_page_can_be_continued(
    document: Document,
    session_with_secrets: Path,
    config_home: ConfigHome,
    colleague_environment: dict[str, str],
) -> None:
    """A colleague can import a shared page, which contains neither secrets nor the home folder.

    The receipt counts what was removed, and the session is unchanged.
    """
    before, home = session_with_secrets.read_bytes(), str(config_home.root)
    data = document("share", SESSION, "--yes")["data"]
    path = Path(data["document"])
    assert path.name == "fix-the-parser-11111111.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sum(data["redacted"].values()) == 2
    assert (data["folders"], data["images"], data["written"]) == (10, 1, True)
    page = path.read_text()
    assert (data["size"], page.count(BUNDLE_START_TEXT)) == (len(page.encode()), 1)
    assert page.index("2 secrets removed") < page.index('class="turn')
    assert not re.search(r"(?:src|href)=\"(?!#|data:image/)", page)
    for words in (GITHUB_TOKEN, home):
        assert words not in page
    mail = Path(colleague_environment["HOME"], path.name)
    path.rename(mail)
    for whole in ([], ["--whole"]):
        got = document("import", str(mail), *whole, environ=colleague_environment, cwd=mail.parent)[
            "data"
        ]
        said = text_of_file(got["file"])
        assert "[secret removed: " in said
        assert GITHUB_TOKEN not in said
        assert home not in said
        assert json.dumps(HOSTILE_PROMPT)[1:-1] in said
        assert Path(got["file"]).parent.name == project_key(colleague_environment["HOME"])
    assert got["session_id"] == SESSION
    assert (
        GITHUB_TOKEN
        not in (Path(got["file"]).with_suffix("") / "tool-results" / "out.txt").read_text()
    )
    assert (
        document("import", str(mail), environ=colleague_environment, cwd=mail.parent)["data"][
            "written"
        ]
        is False
    )
    assert session_with_secrets.read_bytes() == before


def test_share_warns_of_a_page_in_a_repository(
    document: Document,
    session_with_secrets: Path,
    colleague_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    """``share`` warns if the page is in a repository, because the page may be committed."""
    project = tmp_path / "repository"
    (project / ".git").mkdir(parents=True)
    (project / "docs").mkdir()
    (said,) = document("share", SESSION, "--yes", "-o", str(project / "docs"))["warnings"]
    assert f"is in the repository {project}:" in said
    assert document("share", SESSION, "--yes", "-o", str(tmp_path))["warnings"] == []


def test_trimmed_contents_are_not_shared(document: Document, config_home: ConfigHome) -> None:
    """``share`` of a trimmed session does not share the trimmed contents, and a warning says so."""
    write_session(config_home.project(), SESSION, turns_with_large_files())
    assert document("share", SESSION, "--yes")["warnings"] == []
    child = document("trim", SESSION, "--keep-recent", "0", "--min-savings", "0")["data"][
        "session_id"
    ]
    (said,) = document("share", child, "--yes")["warnings"]
    assert f"as placeholders. To share the originals: resume-hooks untrim {child[:8]} --all" in said


def test_share_needs_yes_without_a_terminal(
    cli: Cli, document: Document, session_with_secrets: Path, config_home: ConfigHome
) -> None:
    """``share`` without a terminal needs ``--yes``.

    A dry run only counts secrets and home folders. An existing file is not overwritten.
    """
    here = config_home.root / "here"
    done = cli("share", SESSION)
    assert (done.returncode, b"--yes" in done.stderr) == (2, True)
    data = document("share", SESSION, "--dry-run")["data"]
    assert (data["written"], data["folders"], os.listdir(here)) == (False, 10, [])
    done = cli("share", SESSION, "--dry-run")
    assert b"2 removed (" in done.stdout
    assert b"home folders" in done.stdout
    assert GITHUB_TOKEN.encode() not in done.stdout
    (here / "mine.html").write_text("mine")
    assert cli("share", SESSION, "--yes", "-o", "mine.html").returncode == 1
    assert (here / "mine.html").read_text() == "mine"
    assert not [each for each in (config_home.config / "resume-hooks").rglob("*") if each.is_file()]


def test_share_asks_on_a_terminal(
    session_with_secrets: Path,
    config_home: ConfigHome,
    colleague_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    """``share`` on a terminal shows the number of secrets and asks before it writes the page.

    ``resume`` with a shared page asks before it imports the page.
    """

    def start_screen(environ: dict[str, str], *words: str) -> Screen:
        return Screen(
            words, folder=tmp_path, environ=environ, notes=tmp_path / "notes", columns=100
        )

    for answer, written in (("n", False), ("y", True)):
        with start_screen(config_home.environ, "share", SESSION, "-o", "x.html") as shown:
            shown.wait_for("2 removed")
            shown.wait_for("Write that to")
            shown.type(answer)
            shown.key("Enter")
            shown.wait_for("import x.html" if written else "Nothing was written")
        assert (tmp_path / "x.html").exists() == written
    with start_screen(colleague_environment, "resume", "x.html", "--print") as shown:
        shown.wait_for("Import x.html into")
        shown.key("Enter")
        shown.wait_for("Fix the parser · import")


def truncated_page(page: str) -> str:
    """Return the page without its end, cut within the session data."""
    return page[: page.index(BUNDLE_START_TEXT) + 200]


def change_one_letter(page: str) -> str:
    """Return the page with one letter of its session data changed."""
    at = page.index(BUNDLE_START_TEXT) + len(BUNDLE_START_TEXT) + 64 + 100
    return page[:at] + ("A" if page[at] != "A" else "B") + page[at + 1 :]


def test_a_full_disk_leaves_no_page(
    session_with_secrets: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a full disk, ``share`` writes no page and states the reason."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "r+b"))  # noqa: SIM115 - it is closed
    assert run(["share", SESSION, "--yes"]) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "resume-hooks: The bundle could not be packed: No space left on device",
        "  Nothing was written. Check free space and the permissions of the state folder.",
    ]
    assert not list(tmp_path.glob("*.html"))


BROKEN_PAGES: dict[str, tuple[Callable[[str], str], bytes]] = {
    "within what it carries": (truncated_page, b"truncated or changed"),
    "before what it carries": (lambda page: page[: page.index("<main") + 2_000], b"truncated"),
    "a letter": (change_one_letter, b"no longer contains the session that was shared"),
    "its digest": (
        lambda page: page.replace(BUNDLE_START_TEXT, f"{BUNDLE_START_TEXT}x"),
        b"truncated or changed",
    ),
    "a foreign page": (lambda _: "<!doctype html><p>hello", b"is a web page"),
}


@pytest.mark.parametrize("damage", BROKEN_PAGES)
def test_invalid_pages_are_refused(
    damage: str,
    cli: Cli,
    document: Document,
    session_with_secrets: Path,
    colleague_environment: dict[str, str],
) -> None:
    """A page that was cut or changed is refused with the reason, and nothing is imported."""
    path = Path(document("share", SESSION, "--yes")["data"]["document"])
    change, said = BROKEN_PAGES[damage]
    path.write_text(change(path.read_text()))
    done = cli("import", str(path), environ=colleague_environment)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert not [
        each
        for each in Path(colleague_environment["CLAUDE_CONFIG_DIR"]).rglob("*")
        if each.is_file()
    ]


def test_a_page_of_export_cannot_be_imported(
    cli: Cli, document: Document, session_with_secrets: Path, colleague_environment: dict[str, str]
) -> None:
    """A page of ``export`` cannot be imported, and the error names ``share``.

    A shared page can still be imported after its line ends were changed.
    """
    page = document("export", SESSION)["data"]["document"]
    done = cli("import", page, environ=colleague_environment)
    assert (done.returncode, b"resume-hooks share" in done.stderr) == (1, True)
    path = Path(document("share", SESSION, "--yes", "--force")["data"]["document"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    done = cli("import", str(path), environ=colleague_environment)
    assert done.returncode == 0, done.stderr

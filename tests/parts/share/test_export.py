"""export: the file, the receipt, the standard output, and what is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.parts.share.export.conftest import GITHUB, talk

CHILD = session_id(2)


@pytest.fixture
def file(config_home: ConfigHome) -> Path:
    """A session with a secret in it."""
    extra = user(f"Use {GITHUB}", uuid="extra", parent=talk()[-2]["uuid"], ts=40)
    return Path(write_session(config_home.project(), SESSION, [*talk(), extra]))


@pytest.fixture
def here(config_home: ConfigHome) -> Path:
    """The folder that commands run in."""
    return config_home.root / "here"


def test_a_page_by_default(cli: Cli, file: Path, here: Path) -> None:
    """Named after the title, in the current folder, with a receipt in words."""
    before = file.read_bytes()
    done = cli("export", SESSION)
    path = here / "uploads-a-pool-that-closes-early-11111111.html"
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(path).encode() in done.stdout
    assert b"1 removed (" in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert GITHUB not in page
    assert file.read_bytes() == before


def test_the_receipt(document: Document, file: Path, here: Path) -> None:
    """Every documented field."""
    data = document("export", SESSION, "-o", "talk.md")["data"]
    text = (here / "talk.md").read_bytes()
    assert data["size"] == len(text)
    del data["size"], data["sha256"]
    kinds = data.pop("redacted")
    assert sum(kinds.values()) == 1
    assert data == {
        "session_id": SESSION,
        "session_file": str(file),
        "document": str(here / "talk.md"),
        "format": "md",
        "written": True,
        "sessions": [SESSION],
        "turns": 4,
        "images": 1,
        "cut": 0,
    }


def test_nothing_is_written_over(cli: Cli, file: Path, here: Path) -> None:
    """Unless it may be."""
    (here / "talk.md").write_text("mine")
    done = cli("export", SESSION, "-o", "talk.md")
    assert done.returncode == 1
    assert b"--force" in done.stderr
    assert (here / "talk.md").read_text() == "mine"
    assert cli("export", SESSION, "-o", "talk.md", "--force").returncode == 0
    assert (here / "talk.md").read_text().startswith("# ")


def test_a_dry_run(document: Document, file: Path, here: Path) -> None:
    """It tells what would be written, and writes nothing."""
    data = document("export", SESSION, "--dry-run")["data"]
    assert (data["written"], sum(data["redacted"].values())) == (False, 1)
    assert list(here.iterdir()) == []
    made = document("export", SESSION)["data"]
    assert (made["size"], made["sha256"]) == (data["size"], data["sha256"])


def test_the_standard_output(cli: Cli, file: Path, here: Path) -> None:
    """The document alone; what was omitted is reported next to it."""
    done = cli("export", SESSION, "--format", "md", "-o", "-")
    assert done.returncode == 0
    assert done.stdout.startswith(b"# ")
    assert b"1 removed" in done.stderr
    assert list(here.iterdir()) == []


def test_without_redaction(cli: Cli, document: Document, file: Path, here: Path) -> None:
    """It is said, in the document too."""
    answer = document("export", SESSION, "--no-redact", "-o", "raw.md")
    assert answer["data"]["redacted"] is None
    assert answer["warnings"] == ["Nothing was removed: check for secrets before you share it."]
    text = (here / "raw.md").read_text()
    assert GITHUB in text
    assert "Nothing was removed" in text


def test_a_lineage(document: Document, file: Path, here: Path, config_home: ConfigHome) -> None:
    """Oldest first in one document; what a child holds of its parent is reported once."""
    told = {
        "parent_session_file": str(file),
        "parent_session_id": SESSION,
        "continuation_type": "trim",
    }
    head = {"continue_metadata": told}
    rows = talk()[:-1]
    more = assistant(
        "The child's own words.", uuid="own", parent=rows[-1]["uuid"], ts=50, session_id=CHILD
    )
    copies = [{**row, "sessionId": CHILD} for row in rows]
    write_session(
        config_home.project(), CHILD, [head, *copies, more, custom_title("The child", CHILD)]
    )
    data = document("export", CHILD, "--lineage", "-o", "both.md")["data"]
    assert data["sessions"] == [SESSION, CHILD]
    text = (here / "both.md").read_text()
    assert text.count("> Find out why uploads fail") == 1
    assert (
        text.index("Uploads: a pool")
        < text.index("The child\n")
        < text.index("The child's own words.")
    )
    assert "| Taken over | 20 records, shown above |" in text
    page = document("export", CHILD, "--lineage")["data"]
    assert Path(page["document"]).read_text().count("<h1") == 2


def test_an_ancestor_that_is_gone(
    cli: Cli, document: Document, file: Path, config_home: ConfigHome
) -> None:
    """Where the vault has it, it is reported as if it were there.

    Else a warning says that it is gone.
    """
    head = {"continue_metadata": {"parent_session_file": str(file), "parent_session_id": SESSION}}
    write_session(
        config_home.project(), CHILD, [head, user("And then?", uuid="own", session_id=CHILD)]
    )
    kept = file.rename(file.with_suffix(".kept"))
    assert document("export", CHILD, "--lineage")["warnings"] == [f"An ancestor is gone: {SESSION}"]
    kept.rename(file)
    assert cli("archive", SESSION).returncode == 0
    file.unlink()
    answer = document("export", CHILD, "--lineage", "-o", "both.md")
    assert (answer["data"]["sessions"], answer["warnings"]) == ([SESSION, CHILD], [])
    assert "Find out why uploads fail" in Path(answer["data"]["document"]).read_text()
    alone = cli("export", SESSION, "--format", "md", "-o", "-")
    assert b"Find out why uploads fail" in alone.stdout


def test_a_bundle(document: Document, cli: Cli, file: Path, here: Path) -> None:
    """The form that import takes, without secrets."""
    data = document("export", SESSION, "--format", "json")["data"]
    text = Path(data["document"]).read_text()
    assert json.loads(text)["resume_hooks_bundle"] == 2
    assert GITHUB not in text
    assert sum(data["redacted"].values()) >= 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--all", "--live"), 2),
        (("--json", "-o", "-"), 2),
        (("--format", "json", "--all"), 2),
        (("--format", "txt"), 2),
        (("-o", "nowhere/talk.html"), 1),
    ],
)
def test_refused_exports(
    cli: Cli, file: Path, here: Path, words: tuple[str, ...], code: int
) -> None:
    """The error is a sentence, and nothing is written."""
    done = cli("export", SESSION, *words)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert list(here.iterdir()) == []


def test_a_sub_agent(cli: Cli, config_home: ConfigHome, here: Path) -> None:
    """By its locator."""
    folder = config_home.project() / SESSION / "subagents"
    write_session(config_home.project(), SESSION, talk())
    rows = [
        {**user("Look", uuid="u"), "isSidechain": True},
        {**assistant("Seen", uuid="a", parent="u"), "isSidechain": True},
    ]
    write_session(folder, "agent-a1", rows)
    done = cli("export", f"{SESSION}/agent-a1", "--format", "md", "-o", "-")
    assert b"Seen" in done.stdout


@pytest.mark.part("codex")
def test_a_bundle_of_another_agent_is_refused(
    config_home: ConfigHome, cli: Cli, here: Path
) -> None:
    """What would be imported as a session of this client is no such session; a page is."""
    from tests.parts.codex.rollouts import THREAD, message_line, meta, write

    write(
        config_home.root / ".codex",
        [
            meta(),
            message_line("user", "Tune the parser", 1),
            message_line("assistant", "Tuned.", 2),
        ],
    )
    done = cli("export", THREAD, "-o", str(here / "a.json"))
    assert b"A bundle only contains Claude Code sessions" in done.stderr
    assert cli("export", THREAD, "-o", str(here / "a.html")).returncode == 0
    assert "Tune the parser" in (here / "a.html").read_text()

"""Tests of the verb ``export``: its document, its receipt, its standard output and its errors."""

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
from tests.parts.share.export.conftest import GITHUB_TOKEN, records_of_every_kind

CHILD_ID = session_id(2)


@pytest.fixture
def session_with_secret(config_home: ConfigHome) -> Path:
    """Write a session with a secret and return its path."""
    extra = user(
        f"Use {GITHUB_TOKEN}", uuid="extra", parent=records_of_every_kind()[-2]["uuid"], ts=40
    )
    return Path(write_session(config_home.project(), SESSION, [*records_of_every_kind(), extra]))


@pytest.fixture
def current_folder(config_home: ConfigHome) -> Path:
    """Return the folder in which the commands run."""
    return config_home.root / "here"


def test_export_writes_a_page_by_default(
    cli: Cli, session_with_secret: Path, current_folder: Path
) -> None:
    """``export`` writes a page without secrets to the current folder.

    The file is named after the session's title, and only its owner can read it. The session is
    unchanged.
    """
    before = session_with_secret.read_bytes()
    done = cli("export", SESSION)
    path = current_folder / "uploads-a-pool-that-closes-early-11111111.html"
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(path).encode() in done.stdout
    assert b"1 removed (" in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert GITHUB_TOKEN not in page
    assert session_with_secret.read_bytes() == before


def test_the_receipt_of_an_export_has_every_field(
    document: Document, session_with_secret: Path, current_folder: Path
) -> None:
    """The receipt of an export has every documented field."""
    data = document("export", SESSION, "-o", "talk.md")["data"]
    text = (current_folder / "talk.md").read_bytes()
    assert data["size"] == len(text)
    del data["size"], data["sha256"]
    kinds = data.pop("redacted")
    assert sum(kinds.values()) == 1
    assert data == {
        "session_id": SESSION,
        "session_file": str(session_with_secret),
        "document": str(current_folder / "talk.md"),
        "format": "md",
        "written": True,
        "sessions": [SESSION],
        "turns": 4,
        "images": 1,
        "cut": 0,
    }


def test_export_overwrites_only_with_force(
    cli: Cli, session_with_secret: Path, current_folder: Path
) -> None:
    """``export`` overwrites an existing file only with ``--force``."""
    (current_folder / "talk.md").write_text("mine")
    done = cli("export", SESSION, "-o", "talk.md")
    assert done.returncode == 1
    assert b"--force" in done.stderr
    assert (current_folder / "talk.md").read_text() == "mine"
    assert cli("export", SESSION, "-o", "talk.md", "--force").returncode == 0
    assert (current_folder / "talk.md").read_text().startswith("# ")


def test_a_dry_run_writes_no_document(
    document: Document, session_with_secret: Path, current_folder: Path
) -> None:
    """``export --dry-run`` shows the size and digest of the document and writes no file."""
    data = document("export", SESSION, "--dry-run")["data"]
    assert (data["written"], sum(data["redacted"].values())) == (False, 1)
    assert list(current_folder.iterdir()) == []
    made = document("export", SESSION)["data"]
    assert (made["size"], made["sha256"]) == (data["size"], data["sha256"])


def test_export_prints_only_the_document(
    cli: Cli, session_with_secret: Path, current_folder: Path
) -> None:
    """``export -o -`` prints only the document to standard output, and the receipt to standard error."""
    done = cli("export", SESSION, "--format", "md", "-o", "-")
    assert done.returncode == 0
    assert done.stdout.startswith(b"# ")
    assert b"1 removed" in done.stderr
    assert list(current_folder.iterdir()) == []


def test_an_unredacted_export_says_so(
    cli: Cli, document: Document, session_with_secret: Path, current_folder: Path
) -> None:
    """``export --no-redact`` warns that no secret was removed, and writes the warning to the document."""
    answer = document("export", SESSION, "--no-redact", "-o", "raw.md")
    assert answer["data"]["redacted"] is None
    assert answer["warnings"] == [
        "Nothing was removed: check for secrets before you share the file."
    ]
    text = (current_folder / "raw.md").read_text()
    assert GITHUB_TOKEN in text
    assert "Nothing was removed" in text


def test_export_writes_a_lineage(
    document: Document, session_with_secret: Path, current_folder: Path, config_home: ConfigHome
) -> None:
    """``export --lineage`` exports the oldest session first, and each copied record only once."""
    told = {
        "parent_session_file": str(session_with_secret),
        "parent_session_id": SESSION,
        "continuation_type": "trim",
    }
    head = {"continue_metadata": told}
    rows = records_of_every_kind()[:-1]
    more = assistant(
        "The child's own words.", uuid="own", parent=rows[-1]["uuid"], ts=50, session_id=CHILD_ID
    )
    copies = [{**row, "sessionId": CHILD_ID} for row in rows]
    write_session(
        config_home.project(), CHILD_ID, [head, *copies, more, custom_title("The child", CHILD_ID)]
    )
    data = document("export", CHILD_ID, "--lineage", "-o", "both.md")["data"]
    assert data["sessions"] == [SESSION, CHILD_ID]
    text = (current_folder / "both.md").read_text()
    assert text.count("> Find out why uploads fail") == 1
    assert (
        text.index("Uploads: a pool")
        < text.index("The child\n")
        < text.index("The child's own words.")
    )
    assert "| Taken over | 20 records, shown above |" in text
    page = document("export", CHILD_ID, "--lineage")["data"]
    assert Path(page["document"]).read_text().count("<h1") == 2


def test_export_includes_an_archived_ancestor(
    cli: Cli, document: Document, session_with_secret: Path, config_home: ConfigHome
) -> None:
    """``export --lineage`` includes an archived ancestor, and warns of an ancestor that is missing."""
    head = {
        "continue_metadata": {
            "parent_session_file": str(session_with_secret),
            "parent_session_id": SESSION,
        }
    }
    write_session(
        config_home.project(), CHILD_ID, [head, user("And then?", uuid="own", session_id=CHILD_ID)]
    )
    kept = session_with_secret.rename(session_with_secret.with_suffix(".kept"))
    assert document("export", CHILD_ID, "--lineage")["warnings"] == [
        f"An ancestor is gone: {SESSION}"
    ]
    kept.rename(session_with_secret)
    assert cli("archive", SESSION).returncode == 0
    session_with_secret.unlink()
    answer = document("export", CHILD_ID, "--lineage", "-o", "both.md")
    assert (answer["data"]["sessions"], answer["warnings"]) == ([SESSION, CHILD_ID], [])
    assert "Find out why uploads fail" in Path(answer["data"]["document"]).read_text()
    alone = cli("export", SESSION, "--format", "md", "-o", "-")
    assert b"Find out why uploads fail" in alone.stdout


def test_export_writes_a_bundle(
    document: Document, cli: Cli, session_with_secret: Path, current_folder: Path
) -> None:
    """``export --format json`` writes a bundle without secrets."""
    data = document("export", SESSION, "--format", "json")["data"]
    text = Path(data["document"]).read_text()
    assert json.loads(text)["resume_hooks_bundle"] == 2
    assert GITHUB_TOKEN not in text
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
def test_invalid_exports_are_refused(
    cli: Cli, session_with_secret: Path, current_folder: Path, words: tuple[str, ...], code: int
) -> None:
    """An invalid export is refused with one sentence, and writes no file."""
    done = cli("export", SESSION, *words)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert list(current_folder.iterdir()) == []


def test_export_accepts_a_sub_agent(
    cli: Cli, config_home: ConfigHome, current_folder: Path
) -> None:
    """``export`` accepts the locator of a sub-agent."""
    folder = config_home.project() / SESSION / "subagents"
    write_session(config_home.project(), SESSION, records_of_every_kind())
    rows = [
        {**user("Look", uuid="u"), "isSidechain": True},
        {**assistant("Seen", uuid="a", parent="u"), "isSidechain": True},
    ]
    write_session(folder, "agent-a1", rows)
    done = cli("export", f"{SESSION}/agent-a1", "--format", "md", "-o", "-")
    assert b"Seen" in done.stdout


@pytest.mark.part("codex")
def test_a_bundle_of_another_agent_is_refused(
    config_home: ConfigHome, cli: Cli, current_folder: Path
) -> None:
    """A session of another agent can be exported as a page, but not as a bundle.

    Importing such a bundle would turn the session into one of Claude Code.
    """
    from tests.parts.codex.rollouts import THREAD_ID, message_line, meta_line, write_rollout

    write_rollout(
        config_home.root / ".codex",
        [
            meta_line(),
            message_line("user", "Tune the parser", 1),
            message_line("assistant", "Tuned.", 2),
        ],
    )
    done = cli("export", THREAD_ID, "-o", str(current_folder / "a.json"))
    assert b"A bundle only contains Claude Code sessions" in done.stderr
    assert cli("export", THREAD_ID, "-o", str(current_folder / "a.html")).returncode == 0
    assert "Tune the parser" in (current_folder / "a.html").read_text()

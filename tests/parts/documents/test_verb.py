"""Tests of ``handoff --out``, and of the setting that writes a document for each handoff."""

from __future__ import annotations

from pathlib import Path

from resume_hooks.storage.stored_settings import store_setting
from tests.builders import SESSION, ConfigHome
from tests.cli.conftest import Cli, Document
from tests.cli.test_every_verb import home_state
from tests.cli.test_handoff import parent, project
from tests.cli.test_handoff_edit import EditorHome, editor_home

__all__ = ["editor_home", "parent", "project"]


def test_out_writes_the_document(
    config_home: ConfigHome, cli: Cli, document: Document, parent: Path
) -> None:
    """``--out`` accepts a path relative to the folder in which the user runs the command.

    An existing file is overwritten only with ``--force``.
    """
    here = config_home.root / "here"
    named = document("handoff", SESSION, "--out", "x.md")["data"]
    assert named["documents"] == [str(here / "x.md")]
    assert named["session_id"] in (here / "x.md").read_text("utf-8")
    (found,) = document("handoff", SESSION, "--out", "docs/")["data"]["documents"]
    assert Path(found).parent == here / "docs"
    children = sorted(parent.parent.iterdir())
    error = document("handoff", SESSION, "--out", "x.md", code=2)["error"]
    assert "--force" in error["remedy"]
    assert sorted(parent.parent.iterdir()) == children, "what can't be finished isn't begun"
    text = cli("handoff", SESSION, "--out", "x.md", "--force").stdout.decode()
    assert str(here / "x.md") in text
    assert named["session_id"] not in (here / "x.md").read_text("utf-8")


def test_a_dry_run_writes_no_document(
    config_home: ConfigHome, document: Document, parent: Path
) -> None:
    """``handoff --dry-run`` names the documents and writes none."""
    store_setting("handoff_dir", "_handoffs")
    before = home_state(config_home)
    data = document("handoff", SESSION, "--out", "x.md", "--dry-run")["data"]
    assert len(data["documents"]) == 2
    assert home_state(config_home) == before


def test_the_setting_applies_to_every_handoff(
    cli: Cli, document: Document, parent: Path, project: Path
) -> None:
    """With the setting ``handoff_dir``, each handoff writes a document.

    If the document cannot be written, ``handoff`` prints a note and still succeeds.
    """
    assert document("handoff", SESSION)["data"]["documents"] == []
    store_setting("handoff_dir", "_handoffs")
    done = cli("handoff", SESSION, "-n", "go on")
    assert done.returncode == 0
    (path,) = (project / "_handoffs").iterdir()
    assert f"document        {path}" in done.stdout.decode()
    store_setting("handoff_dir", "../_handoffs")
    done = cli("handoff", SESSION, "--next-step", "another")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("note: handoff_dir was ignored: ")


def test_the_document_contains_the_edited_text(editor_home: EditorHome) -> None:
    """The document contains the text that the user edited."""
    assert (
        editor_home.run_handoff(
            "--out", "x.md", EDITOR=editor_home.write_editor('echo "use tabs" >> "$1"')
        ).exit_code
        == 0
    )
    text = (editor_home.project / "x.md").read_text("utf-8")
    assert "## The opening of the fresh session, edited by the user" in text
    assert "\nuse tabs\n" in text


def test_a_document_created_meanwhile_is_kept(editor_home: EditorHome) -> None:
    """If another program creates the document's file while the user edits the text, no child is written.

    The message names the file that has the user's text.
    """
    script = editor_home.write_editor(f'echo mine > {editor_home.project}/x.md; echo words >> "$1"')
    done = editor_home.run_handoff("--out", "x.md", EDITOR=script)
    assert done.exit_code == 2
    (folder,) = editor_home.tmp.iterdir()
    assert "already exists" in done.text
    assert f"Your text is in {folder}/handoff.md" in done.text
    assert editor_home.openings() == []
    assert (editor_home.project / "x.md").read_text() == "mine\n"

"""A handoff that was edited, in its document."""

from __future__ import annotations

from tests.cli.test_handoff_edit import Desk, desk

__all__ = ["desk"]


def test_the_document_holds_the_edit(desk: Desk) -> None:
    """Beside the whole digest."""
    assert desk.handoff("--out", "x.md", EDITOR=desk.editor('echo "use tabs" >> "$1"')).code == 0
    text = (desk.project / "x.md").read_text("utf-8")
    assert "## What the fresh session was told, as the user edited it" in text
    assert "\nuse tabs\n" in text


def test_a_document_that_is_there_by_now(desk: Desk) -> None:
    """It stays, no child is made, and the text stays where the message says."""
    script = desk.editor(f'echo mine > {desk.project}/x.md; echo words >> "$1"')
    done = desk.handoff("--out", "x.md", EDITOR=script)
    assert done.code == 2
    (folder,) = desk.tmp.iterdir()
    assert "There is a file" in done.text
    assert f"What you wrote is kept in {folder}/handoff.md" in done.text
    assert desk.openings() == []
    assert (desk.project / "x.md").read_text() == "mine\n"

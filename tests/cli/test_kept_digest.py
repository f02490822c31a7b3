"""The digest that a child keeps: one read away, and found by no search beside what it is of."""

from __future__ import annotations

from pathlib import Path

from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.entries import digest_at
from tests.builders import SESSION, ConfigHome
from tests.cli.conftest import Cli, Document
from tests.reading.digest.talk import Talk


def test_a_kept_digest_is_read_and_not_found(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """``read`` prints it whole; the words in it are found where they were said, in the parent alone."""
    Talk().prompt("always use zymurgy").says("We decided on zymurgy instead.").runs("make zymurgy").write(config_home)
    child = Path(document("handoff", SESSION)["data"]["file"])
    digest = digest_at(str(child))
    assert digest is not None
    done = cli("read", f"{child.stem}:3")
    assert as_text.full(digest) in done.stdout.decode()
    hits = document("search", "zymurgy", "--all")["data"]["hits"]
    assert {hit["session_id"] for hit in hits} == {SESSION}

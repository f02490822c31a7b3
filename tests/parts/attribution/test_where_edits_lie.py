"""Which transcripts are looked at: archived ones, another agent's, and what is said of those that were not."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from resume_hooks.parts.attribution.answer import answer
from resume_hooks.search.engine import SearchResult, text_of
from resume_hooks.search.index import connect
from resume_hooks.search.scope import Scope
from tests.builders import session_id
from tests.parts.attribution.conftest import Ask
from tests.parts.attribution.edited import ONE, Repository
from tests.sessions.archived.away import away


def asked(repo: Repository, line: str, limit: float = float("inf")) -> SearchResult:
    """The part's own answer, for which there is so much time to index."""
    options = SimpleNamespace(file=line, words=(), also=(), where=repo.home.where)
    found = answer(options, Scope(), str(repo.root), limit=limit, progress=None)
    assert found is not None
    return found


def test_an_archived_copy(repo: Repository, ask: Ask) -> None:
    """Is read where it is kept."""
    own = repo.session(1, repo.write("sums.py", ONE))
    (path,) = repo.home.config.glob(f"projects/*/{own}.jsonl")
    away(path, repo.home.environ)
    assert ask("sums.py:2") == f"{own}:1"


def test_files_that_are_not_indexed_yet(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are counted where they hold the file's name, so that nobody is said to have written nothing too early."""
    repo.session(1, repo.write("sums.py", ONE))
    repo.session(2, repo.write("elsewhere.txt", "something else\n"))
    with monkeypatch.context() as patch:
        patch.setattr(connect, "lock", lambda *_: False)  # another command is at it
        patch.setattr(connect, "go_on", lambda *_: None)
        early = asked(repo, "sums.py:2", limit=0)
    assert (early.hits, early.unread, early.whole) == ([], 1, False)
    assert "Nothing found in what is indexed" in text_of(early)
    assert "1 file not indexed yet may hold more: search again in a minute." in text_of(early)
    assert [hit.session_id for hit in asked(repo, "sums.py:2").hits] == [session_id(1)]


def test_a_file_that_no_session_knows(repo: Repository) -> None:
    """Is said to be one."""
    repo.session(1, repo.write("sums.py", ONE))
    repo.put("other.py", ONE)
    found = asked(repo, "other.py:2")
    assert (found.hits, found.whole) == ([], True)
    assert "No tool read or wrote a file 'other.py'" in found.notes


@pytest.mark.part("codex")
@pytest.mark.parametrize(("code", "named"), [(0, True), (1, False)])
def test_a_patch_of_codex(repo: Repository, code: int, named: bool) -> None:
    """Told by the path from the folder that Codex worked in; one that failed wrote nothing."""
    from tests.parts.codex import rollouts

    head = "*** Begin Patch\n*** Update File: src/sums.py\n@@\n def total(rows):\n"
    patch = f"{head}-    return 0\n+    return sum(row.price for row in rows)\n*** End Patch\n"
    told = {"output": "Success" if named else "failed", "metadata": {"exit_code": code}}
    lines = [
        rollouts.meta(cwd=str(repo.root)),
        rollouts.said("user", "Sum it up", 1),
        rollouts.item("custom_tool_call", 2, name="apply_patch", input=patch, call_id="p"),
        rollouts.output("p", json.dumps(told), 3, "custom_tool_call_output"),
        rollouts.said("assistant", "Done", 4),
    ]
    rollouts.write(repo.home.root / ".codex", lines)
    repo.put("src/sums.py", ONE)
    hits = asked(repo, "src/sums.py:2").hits
    assert [(hit.agent, hit.session_id, hit.tool) for hit in hits] == [("codex", rollouts.THREAD, "Edit")] * named
    assert asked(repo, "src/sums.py:1").hits == []

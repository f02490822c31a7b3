"""Docs that can't rot: what is made from the code is up to date, what is promised exists."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import resume_hooks
from resume_hooks.cli.main import VERBS
from resume_hooks.cli.schema import DATA
from tests.needs import REPO


def _make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", REPO / "tools" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date() -> None:
    """``make docs`` would change nothing."""
    pages: dict[Path, str] = _make_docs().pages()
    stale = [str(path) for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "run: make docs"


def test_every_verb_has_a_schema() -> None:
    """A verb for people has a documented JSON form."""
    assert set(DATA) == set(VERBS)


def test_every_verb_stands_in_the_readme() -> None:
    """The README names every verb and every trigger."""
    readme = (REPO / "README.md").read_text("utf-8")
    assert not [verb for verb in VERBS if f"`{verb}" not in readme]
    commands = [path.stem for path in (REPO / "commands").glob("*.md")]
    assert not [name for name in commands if f"/resume-hooks:{name}" not in readme]


def test_links_between_the_pages_lead_somewhere() -> None:
    """Every relative link of the README and docs/ names a file that exists."""
    for page in (REPO / "README.md", *(REPO / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_one_version_everywhere() -> None:
    """Package, plugin and changelog agree."""
    manifest = json.loads((REPO / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    assert manifest["version"] == resume_hooks.__version__
    assert f"## [{resume_hooks.__version__}]" in (REPO / "CHANGELOG.md").read_text("utf-8")


def test_the_lock_pins_every_dependency() -> None:
    """Each runtime dependency of the project is pinned by hash in requirements.lock."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (REPO / "requirements.lock").read_text("utf-8")
    for requirement in project["dependencies"]:
        name = re.match(r"[a-z-]+", requirement)
        assert name is not None
        assert f"\n{name.group()}==" in lock
    assert "http" not in lock


def test_every_message_of_troubleshooting_is_one_of_ours() -> None:
    """What is quoted there stands in the source; an ellipsis is what varies."""
    paths = [*(REPO / "src").rglob("*.py"), *(REPO / "hooks").glob("*")]
    source = "\n".join(path.read_text("utf-8") for path in paths if path.is_file())
    source = re.sub(r'"\s*\n\s*f?"', "", source)  # literals that stand on several lines
    quoted = re.findall(r'"([^"\n]+(?:\n[^"\n]+)?)"', (REPO / "docs" / "troubleshooting.md").read_text("utf-8"))
    assert len(quoted) > 20
    pieces = [piece.strip() for words in quoted for piece in " ".join(words.split()).split("…") if piece.strip()]
    ours = [piece for piece in pieces if piece != "UserPromptSubmit operation blocked by hook"]  # the client's
    assert [piece for piece in ours if piece not in source] == []

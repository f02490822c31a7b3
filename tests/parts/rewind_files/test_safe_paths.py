"""Where tracked paths lead: below the project, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.parts.rewind_files.safe_paths import MAX_DEPTH, ProjectRoot
from resume_hooks.paths import Where

REFUSED = {
    "": "no path",
    ".": "no path",
    "./a": "no path",
    "a//b": "no path",
    "a/": "no path",
    "a\0b": "no path",
    "/".join(["x"] * (MAX_DEPTH + 1)): "no path",
    "\ud800": "no path",
    "..": "outside",
    "../x": "outside",
    "a/../../x": "outside",
    "a/..": "outside",
    "/etc/passwd": "outside",
    "/": "outside",
    "//etc/passwd": "outside",
    "/p/../etc/passwd": "outside",
    "/project-2/a": "outside",
    "C:\\x": "another system",
    "c:/x": "another system",
    "\\\\server\\x": "another system",
    ".git/hooks/pre-commit": "git",
    "sub/.GIT/config": "git",
    ".g\u200cit/config": "git",
    ".git": "git",
}


@pytest.mark.parametrize("path", REFUSED)
def test_hostile_paths(path: str) -> None:
    """Each is refused with its reason, before the disk is asked."""
    place = ProjectRoot("/p", "/p").place(path)
    assert place.parts == ()
    assert REFUSED[path] in place.why


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("a.txt", "a.txt"),
        ("a/b c/ü", "a/b c/ü"),
        ("..a/b..", "..a/b.."),
        ("~", "~"),
        ("-rf", "-rf"),
        ("/named/a", "a"),
        ("/real/a/b", "a/b"),
        (".gitignore", ".gitignore"),
        (".github/x", ".github/x"),
        ("a\nb", "a\nb"),
    ],
)
def test_paths_below_the_project(path: str, inner: str) -> None:
    """Relative ones, and absolute ones by either name of the project."""
    place = ProjectRoot("/named", "/real").place(path)
    assert (place.path, place.parts, place.why) == (inner, tuple(inner.split("/")), "")


def test_an_absolute_path_that_goes_up_is_outside() -> None:
    """However it begins."""
    assert "outside" in ProjectRoot("/p", "/p").place("/p/a/../../etc/passwd").why


def test_the_root_is_its_links_end(tmp_path: Path) -> None:
    """Links to the project are the user's own."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "named")
    root = ProjectRoot.of(f"{tmp_path}/named/", Where({"HOME": "/nowhere"}))
    assert root[:2] == (f"{tmp_path}/named", f"{tmp_path}/real")


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude", "state/backups/x"])
def test_the_clients_own_folder_is_closed(tmp_path: Path, path: str) -> None:
    """A session of the home itself could name it."""
    root = ProjectRoot.of(str(tmp_path), Where({"HOME": str(tmp_path), "RESUME_HOOKS_HOME": f"{tmp_path}/state"}))
    assert "client" in root.place(path).why
    assert not root.place(".claude.md").why


@pytest.mark.parametrize(
    ("folder", "moved"), [("", False), ("/p/a/b", False), ("/elsewhere/a/b", False), ("/p/x/b", True), ("/b", True)]
)
def test_a_file_that_lay_behind_a_link(folder: str, moved: bool) -> None:
    """Its real folder did not end as its path says; a project that moved as a whole is fine."""
    root = ProjectRoot("/p", "/p")
    assert root.moved(root.place("a/b/file"), folder) is moved
    assert not root.moved(root.place("file"), folder)

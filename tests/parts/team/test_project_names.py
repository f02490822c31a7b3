"""Tests of a project's name in a team, which is its Git remote without credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.parts.team.membership import read_project_name


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        (
            "https://h.example.com/acme/app.git?private_token=glpat-Zz3dE7gH1jK9mN2pQ4rS",
            "h.example.com/acme/app",
        ),
        ("https://h.example.com/acme/app#access_token=abc", "h.example.com/acme/app"),
        ("https://h.example.com/acme/app;token=abc", "h.example.com/acme/app"),
        ("https://u:p/w@h.example.com/acme/app.git", "h.example.com/acme/app"),
        ("https://u:p@h.example.com:8443/acme/app.git", "h.example.com/acme/app"),
        ("user:p@ss:word@h.example.com:acme/app.git", "h.example.com/acme/app"),
        ("git@h.example.com:acme/app.git", "h.example.com/acme/app"),
        ("ssh://git@h.example.com:22/acme/app.git", "h.example.com/acme/app"),
        ("https://h.example.com/@me/app", "h.example.com/@me/app"),
        ("https://h.example.com/acme/glpat-Zz3dE7gH1jK9mN2pQ4rS/app", "h.example.com/acme/…/app"),
    ],
)
def test_the_project_name_has_no_credentials(tmp_path: Path, remote: str, name: str) -> None:
    """A project's name contains no user, no password and no text after the remote's path.

    A token in the path is redacted.
    """
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f'[remote "origin"]\n\turl = "{remote}"\n')
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    before, _, after = name.partition("…")
    told = read_project_name(str(tmp_path))
    assert told.startswith(before)
    assert told.endswith(after)
    assert "glpat" not in told


def test_a_long_remote_is_shortened(tmp_path: Path) -> None:
    """The name of a project with a very long remote is made quickly.

    The remote is shortened first, because redaction takes quadratic time.
    """
    remote = f"https://h.example.com/acme/{'a' * 1_900}{'/' * 200_000}x"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f'[remote "origin"]\n\turl = "{remote}"\n')
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert read_project_name(str(tmp_path)).startswith("h.exampl")

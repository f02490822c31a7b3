"""Which commands are work, and what they run."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.shell import program_of, simple_commands

WORK = [
    ("go test ./...", "go test"),
    ("npm run build", "npm run"),
    ("FOO=1 pytest -q", "pytest"),
    ("cd x && make", "make"),
    ("ls && make", "make"),
    ("./scripts/test", "test"),
    ("bin/find thing", "find thing"),
    ("sed -i 's/a/b/' f", "sed"),
    ("find . -name x -delete", "find"),
    ("git commit -m x", "git commit"),
    ("git -C dir push", "git"),
    ("git branch -D x", "git branch"),
    ("git stash pop", "git stash"),
    ("env A=1 go build", "go build"),
    ("timeout 60 cargo test", "cargo test"),
    ("if go vet; then ls; fi", "go vet"),
    ("for f in *; do gofmt -w $f; done", "gofmt"),
    ("python - <<'EOF'\nprint(1)\nEOF", "python"),
]
LOOKS = [
    "ls -la", "cat f | grep x", "cd /x", "git status", "git -C d log", "git branch", "git branch -a", "git stash list",
    "git worktree list", "echo hi", "sed -n 1,5p f", "find . -name x", "/bin/ls", "command -v go", "[ -f x ]",
    "for f in *; do cat $f; done", "export A=1", "A=1", "# make", "", "env", "git", "time ls", "xargs -I {} cat {}",
    "cat <<'EOF'\nmake\nEOF",
]  # fmt: skip


@pytest.mark.parametrize(("command", "runs"), WORK)
def test_what_does_more_than_look_around(command: str, runs: str) -> None:
    """It is work, and the first working part says what runs."""
    found = program_of(simple_commands(command))
    assert found
    assert found == runs


@pytest.mark.parametrize("command", LOOKS)
def test_what_only_looks_around(command: str) -> None:
    """It is no work, and runs nothing that would be one."""
    assert program_of(simple_commands(command)) == ""

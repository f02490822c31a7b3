"""Tests of the parsing of shell commands: their parts, programs and shortest equivalent forms."""

from __future__ import annotations

import subprocess

import pytest

from resume_hooks.reading.digest.shell import (
    find_program,
    make_command_key,
    make_runnable_command,
    parse_simple_commands,
    remove_here_documents,
)

COMMAND_KEYS = [
    ("go test ./...", "go test ./..."),
    ("cd /home/user/proj && go test ./...", "go test ./..."),
    ("cd '/home/my dir'; go test ./...", "go test ./..."),
    ("cd a && cd b && make", "make"),
    ("go test ./... 2>&1 | tail -20", "go test ./..."),
    ("go test ./... 2>&1", "go test ./..."),
    ("go test ./... 2>/dev/null | head -n 5", "go test ./..."),
    ("go  test\n ./...", "go test ./..."),
    ("make || tail -5 log", "make || tail -5 log"),
    ("make | grep -v ok", "make | grep -v ok"),
    ("echo 'a | tail'", "echo 'a | tail'"),
    ("cd /only", "cd /only"),
    ("", ""),
]


@pytest.mark.parametrize(("command", "expected"), COMMAND_KEYS)
def test_a_command_key_omits_cd_and_output_limits(command: str, expected: str) -> None:
    """A command's key omits a leading ``cd`` and programs that only shorten the output.

    The key contains filters such as ``grep -v``.
    """
    assert make_command_key(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd /home/user/proj && make 2>&1 | tail -3", "make"),
        ('cd "/home/user/proj/" && make', "make"),
        ("cd /elsewhere && make | tail", "cd /elsewhere && make"),
        ("make", "make"),
    ],
)
def test_a_cd_into_the_sessions_folder_is_omitted(command: str, expected: str) -> None:
    """A command is shown without a ``cd`` into the session's folder. Other ``cd`` commands are shown."""
    assert make_runnable_command(command, "/home/user/proj") == expected


@pytest.mark.parametrize(
    "command",
    [
        "echo a\necho b", "cat <<'EOF'\n\tit's \\n \\\\ \"x\"  y\nEOF", "for x in 1 2\ndo\n  echo $x \\\n    z\ndone\n",
    ],
)  # fmt: skip
def test_a_command_of_several_lines_runs_unchanged(command: str) -> None:
    """A command with several lines is shown on one line, and prints the same output when bash runs it."""
    shown = make_runnable_command(f"cd /home/user/proj\n{command}", "/home/user/proj")
    assert "\n" not in shown
    said = [
        subprocess.run(["bash", "-c", one], capture_output=True, check=True).stdout
        for one in (command, shown)
    ]
    assert said[0] == said[1] != b""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat > f <<'EOF'\nrm -rf x\nEOF\nmake", "cat > f \n\nmake"),
        ("cat <<-END\n\tx\n\tEND", "cat \n"),
        ("git commit -m \"$(cat <<'EOF'\nwords\nEOF\n)\"", 'git commit -m "$(cat \n\n)"'),
        ("cat <<EOF\nEOF is not the end\nEOF", "cat \n"),
        ("cat <<EOF\nnever ended", "cat \n"),
        ("cat <<<word\nmake", "cat <<<word\nmake"),
        ("x << 3", "x << 3"),
    ],
)
def test_here_documents_are_removed(command: str, expected: str) -> None:
    """A here-document is removed from a command up to the line that contains only its end word."""
    assert remove_here_documents(command) == expected


@pytest.mark.parametrize(
    ("command", "words_of_commands", "output_paths"),
    [
        ("FOO=1 make -j2 > out.txt 2>&1", [("make", "-j2")], [("out.txt",)]),
        ("a && b || c; d | e & f", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)], [()] * 6),
        ("echo 'a; b' \"c && d\"", [("echo", "a; b", "c && d")], [()]),
        ("# don't\nmake", [("make",)], [()]),
        ("sudo -n timeout 60s make", [("make",)], [()]),
        ("if make; then ok; fi", [("make",), ("ok",), ("fi",)], [()] * 3),
        ("command -v git", [()], [()]),
        ("[[ a > b ]] ", [("[[", "a", "]]")], [()]),
        ("make >> log", [("make",)], [("log",)]),
        ("echo x >&2", [("echo", "x", "2")], [()]),
    ],
)
def test_a_command_is_split_into_simple_commands(
    command: str, words_of_commands: list[tuple[str, ...]], output_paths: list[tuple[str, ...]]
) -> None:
    """A command is split into simple commands with their words and the files that they write.

    Quoted text stays in one word. Assignments and programs such as ``sudo`` are omitted.
    """
    found = parse_simple_commands(command)
    assert [one.words for one in found] == words_of_commands
    assert [one.output_paths for one in found] == output_paths


COMMANDS_AND_PROGRAMS = [
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
READING_COMMANDS = [
    "ls -la", "cat f | grep x", "cd /x", "git status", "git -C d log", "git branch", "git branch -a", "git stash list",
    "git worktree list", "echo hi", "sed -n 1,5p f", "find . -name x", "/bin/ls", "command -v go", "[ -f x ]",
    "for f in *; do cat $f; done", "export A=1", "A=1", "# make", "", "env", "git", "time ls", "xargs -I {} cat {}",
    "cat <<'EOF'\nmake\nEOF",
]  # fmt: skip


@pytest.mark.parametrize(("command", "program"), COMMANDS_AND_PROGRAMS)
def test_the_program_that_a_command_runs_is_found(command: str, program: str) -> None:
    """A command's program is the program of the first part that does more than read."""
    found = find_program(parse_simple_commands(command))
    assert found
    assert found == program


@pytest.mark.parametrize("command", READING_COMMANDS)
def test_a_reading_command_has_no_program(command: str) -> None:
    """No program is found in a command that only reads."""
    assert find_program(parse_simple_commands(command)) == ""

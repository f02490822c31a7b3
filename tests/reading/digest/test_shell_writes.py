"""Tests of finding the files that a command changes, from its words, its scripts or git's output."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.script_writes import find_files_written_by_scripts
from resume_hooks.reading.digest.shell import (
    find_changed_paths,
    find_start_folder,
    parse_git_listing,
    parse_simple_commands,
)

COMMANDS_WITH_CHANGED_FILES = [
    ("echo x > a.txt", ["a.txt"]),
    ("echo x >> 'a b.txt'", ["a b.txt"]),
    ("cat > a.md <<'EOF'\nrm b\nEOF", ["a.md"]),
    ("cat > a <<EOF\nx\nEOF\nrm b", ["a", "b"]),
    ("cd sub && touch x", ["sub/x"]),
    ("cd /tmp && rm -rf clone && touch /etc/y", ["/tmp/clone", "/etc/y"]),
    ("cd $DIR && touch x /abs/y", ["/abs/y"]),
    ("cd && touch x", ["~/x"]),
    ("touch x; cd a; cd b; touch y", ["x", "a/b/y"]),
    ("mv a b", ["a", "b"]),
    ("cp a b c/", ["c/"]),
    ("cp a /tmp/b && sed -i 's/x/y/' a; go test; cp /tmp/b a", ["/tmp/b"]),
    ("cp a /tmp/b && cp /tmp/c a", ["/tmp/b", "a"]),
    ("ln -s to name", ["name"]),
    ("install -m 755 a b", ["b"]),
    ("truncate -s 0 log", ["log"]),
    ("make | tee -a log", ["log"]),
    ("sed -i 's/a/b/' x y", ["x", "y"]),
    ("sed -i '' 's/a/b/' x", ["x"]),
    ("sed -i -e 's/a/b/' -e 's/c/d/' x", ["x"]),
    ("sed 's/a/b/' x", []),
    ("git mv a b", ["a", "b"]),
    ("git -C d rm a", ["a"]),
    ("git checkout -- a b", ["a", "b"]),
    ("git checkout origin/main -- a", ["a"]),
    ("git restore --source HEAD --staged a", ["a"]),
    ("git checkout main", []),
    ("rm *.txt $X `y` {a,b}", []),
    ("make > /dev/null 2>&1", []),
    ("grep -rn '>' src", []),
    ("awk '$1 > 2' f", []),
    ("[[ a > b ]] && ls", []),
    ("diff <(a) <(b)", []),
    ("pip install touch", []),
    ("", []),
]


@pytest.mark.parametrize(("command", "paths"), COMMANDS_WITH_CHANGED_FILES)
def test_files_that_a_command_changes_are_found(command: str, paths: list[str]) -> None:
    """The paths of files that a command writes, moves or removes are found.

    They are relative to the folder in which the command starts. A path with a variable or a pattern
    is skipped.
    """
    assert [path for path, _ in find_changed_paths(parse_simple_commands(command))] == paths


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("make", ""),
        ("cd a && cd b && make", "a/b"),
        ("cd /x; git status", "/x"),
        ("cd $X && git status", None),
    ],
)
def test_the_start_folder_of_a_command_is_found(command: str, folder: str | None) -> None:
    """A command starts in the folder of its leading ``cd``.

    If the folder contains a variable, the start folder is unknown.
    """
    assert find_start_folder(parse_simple_commands(command)) == folder


DIFF_STAT_OUTPUT = (
    " src/a.py | 10 +++---\n b.txt | 2 +-\n .../long/name.py | 3 +\n old => new | 0\n"
    " img.png | Bin 0 -> 10 bytes\n"
)
GIT_OUTPUTS_WITH_FILES = [
    (
        "git status --short",
        " M a.py\nA  b.py\nR  old -> new.py\n?? junk\n",
        ["a.py", "b.py", "new.py"],
        [],
    ),
    ("git status", "\tmodified:   src/a.py\n\tnew file:   b c.txt\n", ["src/a.py", "b c.txt"], []),
    (
        "git commit -m x",
        "[main 1a2b3c4] x\n 1 file changed\n create mode 100644 n.py\n",
        [],
        ["n.py"],
    ),
    ("git diff --stat", DIFF_STAT_OUTPUT, [], ["src/a.py", "b.txt", "img.png"]),
    ("git diff --cached --stat", DIFF_STAT_OUTPUT, [], ["src/a.py", "b.txt", "img.png"]),
    ("git diff HEAD --stat -- src", DIFF_STAT_OUTPUT, [], ["src/a.py", "b.txt", "img.png"]),
    (
        "git diff --stat origin/main -- src/a.py",
        DIFF_STAT_OUTPUT,
        [],
        ["src/a.py", "b.txt", "img.png"],
    ),
    ("git diff --stat v1..v2 -- src/a.py", DIFF_STAT_OUTPUT, [], []),
    ("git diff main...HEAD --stat", DIFF_STAT_OUTPUT, [], []),
    ("git diff origin/main --stat", DIFF_STAT_OUTPUT, [], []),
    ("git diff HEAD~3 --stat", DIFF_STAT_OUTPUT, [], []),
    ("git diff --stat; git diff main --stat", DIFF_STAT_OUTPUT, [], []),
    ("git show --stat", DIFF_STAT_OUTPUT, [], []),
    ("git log --stat -3", DIFF_STAT_OUTPUT, [], []),
    ("git pull", f"Fast-forward\n{DIFF_STAT_OUTPUT} create mode 100644 n.py\n", [], []),
    (
        "git merge main && git commit --no-edit",
        f"{DIFF_STAT_OUTPUT} create mode 100644 n.py\n",
        [],
        [],
    ),
    ("git -C ../other status --short", " M a.py\n", [], []),
    ("cat notes", " M a.py\n", [], []),
    ("echo git", DIFF_STAT_OUTPUT, [], []),
]


@pytest.mark.parametrize(
    ("command", "output", "relative_paths", "root_paths"), GIT_OUTPUTS_WITH_FILES
)
def test_files_that_git_prints_are_found(
    command: str, output: str, relative_paths: list[str], root_paths: list[str]
) -> None:
    """Files that git's output shows as uncommitted, or as created by a commit, are found.

    Files in commits that other people may have made are left out.
    """
    found = parse_git_listing(parse_simple_commands(command), output)
    assert (list(found.relative_paths), list(found.root_paths)) == (relative_paths, root_paths)


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("p='a.md'\ns=open(p).read()\nopen(p,'w').write(s)\np='b.md'\nopen(p, 'w').write(s)", ["a.md", "b.md"]),
        ("from pathlib import Path\np = Path('a.md')\np.write_text(p.read_text())", ["a.md"]),
        ('import pathlib\npathlib.Path("src/a.py").write_text("x")', ["src/a.py"]),
        ("with open('log.txt', mode='a') as f:\n    f.write('x')", ["log.txt"]),
        ("for p in ['a', 'b']:\n    s = open(p).read()\n    open(p, 'w').write(s)", ["a", "b"]),
        ("p = 'a'\np = p + '.bak'\nopen(p, 'w').write('')", []),
        ("import sys\nopen(sys.argv[1], 'w').write('')", []),
        ("print(open('a.md').read())  # write", []),
        ("import json\njson.dump({}, open('a.json', 'w'))  # write", ["a.json"]),
    ],
)  # fmt: skip
def test_files_that_a_script_in_a_command_writes_are_found(script: str, paths: list[str]) -> None:
    """The files that a Python script in a command writes are found if their names are literals."""
    command = f"cd proj\npython3 - <<'PY'\n{script}\nPY\nls"
    assert list(find_files_written_by_scripts(command)) == paths
    assert find_files_written_by_scripts(script) == ()

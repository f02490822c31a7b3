"""Tests of ``search --file path:42``, which names the record that wrote a line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resume_hooks.parts.attribution.line_search import answer_line_search
from resume_hooks.search.index import connect
from resume_hooks.search.result import SearchResult
from resume_hooks.search.result_text import result_text
from resume_hooks.search.scope import Scope
from tests.builders import conversation, repl_script, session_id
from tests.cli.conftest import Cli, Document
from tests.parts.attribution.conftest import FindWriter
from tests.parts.attribution.edited import FIRST_VERSION_TEXT, Repository
from tests.sessions.archived.removed_sessions import archive_and_remove

PRICE_LINE = "    return sum(row.price for row in rows)"
PRICE_WITH_TAX_LINE = "    return sum(row.price * row.tax for row in rows)"


def test_search_finds_the_session_and_record_of_a_line(
    repo: Repository, cli: Cli, document: Document
) -> None:
    """The hit names the session and the record that wrote the line. ``read`` shows this record."""
    own = repo.write_session(1, repo.write_file("src/sums.py", FIRST_VERSION_TEXT))
    other = repo.write_session(2, repo.edit_file("src/sums.py", PRICE_LINE, PRICE_WITH_TAX_LINE))
    data = document("search", "--file", "src/sums.py:2", cwd=repo.root)["data"]
    (hit,) = data["hits"]
    assert (data["query"], data["how"], data["total"]) == ("src/sums.py:2", "by its text", 1)
    assert (hit["strength"], hit["session_id"]) == ("strong", other)
    assert (hit["reference"], hit["tool"], hit["role"], hit["snippet"]) == (
        f"{other}:1",
        "Edit",
        "call",
        PRICE_WITH_TAX_LINE.strip(),
    )
    assert b"row.tax" in cli("read", hit["reference"], cwd=repo.root).stdout
    text = cli("search", "--file", "src/sums.py:1", cwd=repo.root).stdout.decode()
    assert "resume-hooks search: src/sums.py:1 · 1 turn · by its text" in text
    assert f"· {own}\n" in text
    assert "  00000001:1 · call (Write) · turn 1 · " in text
    assert "    def total(rows):\n    read: resume-hooks read 00000001:1" in text


def test_a_line_search_accepts_relative_and_absolute_paths(
    repo: Repository, find_writer: FindWriter, tmp_path: Path
) -> None:
    """The path of a line may be relative, absolute or behind a link.

    A line of another project is found only with ``--all``.
    """
    own = repo.write_session(1, repo.write_file("src/sums.py", FIRST_VERSION_TEXT))
    (tmp_path / "link").symlink_to(repo.root)
    assert find_writer("sums.py:1", cwd=repo.root / "src") == f"{own}:1"
    assert find_writer(f"{repo.root}/src/sums.py:1") == f"{own}:1"
    assert find_writer(f"{tmp_path}/link/src/sums.py:1") == f"{own}:1"
    assert find_writer("../repo/src/sums.py:1", cwd=repo.home.root / "here") == ""
    assert find_writer("../repo/src/sums.py:1", "--all", cwd=repo.home.root / "here") == f"{own}:1"


def test_search_finds_a_line_that_a_repl_script_wrote(
    repo: Repository, find_writer: FindWriter, cli: Cli
) -> None:
    """A line that a script of the tool REPL wrote is attributed to the script's session.

    A search also finds the script's commands and results.
    """
    repo.put_file("src/sums.py", FIRST_VERSION_TEXT)
    path, around = str(repo.root / "src/sums.py"), {"cwd": str(repo.root)}
    edit = {"file_path": path, "old_string": PRICE_LINE, "new_string": PRICE_WITH_TAX_LINE}
    noted = {
        "filePath": path,
        "oldString": PRICE_LINE,
        "newString": PRICE_WITH_TAX_LINE,
        "originalFile": FIRST_VERSION_TEXT,
        "structuredPatch": [],
    }
    ran = {"command": "make zeppelin"}, {"stdout": "built the quagga", "stderr": ""}
    rows = repl_script([("Edit", edit, noted), ("Bash", *ran)], uuid="s", parent=None)
    own = repo.write_session(1, [{**row, **around} for row in rows])
    repo.put_file("src/sums.py", FIRST_VERSION_TEXT.replace(PRICE_LINE, PRICE_WITH_TAX_LINE))
    assert find_writer("src/sums.py:2") == f"{own}:3"
    assert b"(Bash)" in cli("search", "quagga", cwd=repo.root).stdout
    assert b"make zeppelin" in cli("search", "zeppelin", "--tool", "Bash", cwd=repo.root).stdout


def test_lines_that_people_wrote_belong_to_no_session(
    repo: Repository, find_writer: FindWriter, cli: Cli
) -> None:
    """Lines that people wrote before or after a session belong to no session.

    The answer says so, and the exit code is 0.
    """
    repo.put_file("a.py", f"import decimal  # of people\n{FIRST_VERSION_TEXT}")
    repo.write_session(
        1,
        repo.edit_file("a.py", PRICE_LINE, PRICE_WITH_TAX_LINE),
        repo.write_file("a.py", repo.read_text("a.py") + "END_OF_FILE = True\n"),
    )
    repo.put_file("a.py", repo.read_text("a.py") + "def added_by_people():\n")
    assert [bool(find_writer(f"a.py:{line}")) for line in range(1, 6)] == [
        False,
        False,
        True,
        True,
        False,
    ]
    done = cli("search", "--file", "a.py:5", cwd=repo.root)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (
        "Nothing found (no edit in any session wrote a line with this text)."
        in done.stdout.decode()
    )


@pytest.mark.parametrize(
    ("old_line", "new_line"),
    [
        ('VERSION = "1.4.2-stable"', 'VERSION = "1.4.3-stable"'),  # The version was raised.
        ("    return compute_all(rows)", "        return compute_all(rows)"),  # A formatter ran.
        ("    return compute_all(rows)", "\treturn compute_all(rows)"),
        ("# written by a session", "# written by a person"),
    ],
)
def test_a_line_that_people_changed_belongs_to_no_session(
    repo: Repository, find_writer: FindWriter, old_line: str, new_line: str
) -> None:
    """A line that people changed after a session wrote it belongs to no session."""
    own = repo.write_session(
        1, repo.write_file("a.py", f"first_line_of_the_file = 1\n{old_line}\n")
    )
    assert find_writer("a.py:2") == f"{own}:1"
    repo.put_file("a.py", repo.read_text("a.py").replace(old_line, new_line))
    assert find_writer("a.py:2") == ""
    assert find_writer("a.py:1") == f"{own}:1"


def test_merged_lines_belong_to_no_session(repo: Repository, find_writer: FindWriter) -> None:
    """Lines that a merge added belong to no session, and the lines around them keep their writer."""
    own = repo.write_session(1, repo.write_file("a.py", FIRST_VERSION_TEXT))
    merged = "def of_another_branch(rows):\n    return None\n\n\n"
    repo.put_file(
        "a.py",
        repo.read_text("a.py").replace("    return sum", f"    pass\n\n\n{merged}    return sum"),
    )
    assert [find_writer(f"a.py:{line}") for line in range(1, 10)] == [
        f"{own}:1",
        *[""] * 7,
        f"{own}:1",
    ]


def test_a_generated_file_belongs_to_no_session(repo: Repository, find_writer: FindWriter) -> None:
    """A file that a command generated belongs to no session."""
    repo.put_file("package-lock.json", '{\n  "lockfileVersion": 3\n}\n')
    repo.write_session(1, repo.shell_records("npm install && cat package-lock.json"))
    assert find_writer("package-lock.json:2") == ""


def test_an_unsuccessful_edit_wrote_no_line(repo: Repository, find_writer: FindWriter) -> None:
    """An edit that failed, was refused or has no result wrote no line."""
    repo.put_file("a.py", FIRST_VERSION_TEXT)
    refused = "The user doesn't want to proceed with this tool use."
    failed = repo.edit_file("a.py", PRICE_LINE, PRICE_WITH_TAX_LINE, failed=True, answer=refused)
    unanswered = repo.write_file("a.py", repo.read_text("a.py") + "LAST_LINE_OF_ALL = 1\n")[:1]
    repo.write_session(1, failed, unanswered)
    assert (find_writer("a.py:2"), find_writer("a.py:3")) == ("", "")


def test_a_rewound_edit_still_counts(repo: Repository, find_writer: FindWriter) -> None:
    """An edit on an abandoned branch still counts, because the file still contains the edit's line."""
    repo.put_file("a.py", FIRST_VERSION_TEXT)
    gone = repo.edit_file("a.py", PRICE_LINE, PRICE_WITH_TAX_LINE)
    went_on = [{**row, "parentUuid": None} for row in conversation(2, prefix="other")]
    own = repo.write_session(1, gone, went_on)
    assert find_writer("a.py:2") == f"{own}:1"


def test_a_subagent_that_wrote_a_line_is_named(repo: Repository, find_writer: FindWriter) -> None:
    """A line that a sub-agent wrote is found with the sub-agent's reference."""
    repo.put_file("a.py", FIRST_VERSION_TEXT)
    own = repo.write_session(1)
    repo.write_session(
        1, repo.edit_file("a.py", PRICE_LINE, PRICE_WITH_TAX_LINE), subagent_id="agent-a1"
    )
    assert find_writer("a.py:2") == f"{own}/agent-a1:1"


def test_a_copied_edit_belongs_to_the_parent_of_a_fork(
    repo: Repository, find_writer: FindWriter
) -> None:
    """An edit that a fork copied belongs to the fork's parent."""
    made = repo.write_file("a.py", FIRST_VERSION_TEXT)
    own = repo.write_session(1, made)
    metadata: Any = {"continue_metadata": {"parent_session_id": own, "parent_session_file": ""}}
    repo.write_session(2, [metadata], made, has_prompt=False)
    assert find_writer("a.py:2") == f"{own}:1"


def test_an_edit_of_the_current_turn_counts(repo: Repository, document: Document) -> None:
    """A line that the model wrote in the current turn is found."""
    own = repo.write_session(1, repo.write_file("a.py", FIRST_VERSION_TEXT))
    found = document(
        "search", "--file", "a.py:1", cwd=repo.root, environ={"CLAUDE_CODE_SESSION_ID": own}
    )
    assert [hit["session_id"] for hit in found["data"]["hits"]] == [own]


@pytest.mark.parametrize(
    ("command", "is_writer_found"),
    [
        ("cat > {0} <<'EOF'\n{1}EOF", True),
        ("cd src && cat <<EOF > {0}\n{1}EOF\n", True),
        ("cat >> \"{0}\" << 'EOF'\n{1}EOF\necho done", True),
        ("cat > other/{0} <<'EOF'\n{1}EOF", False),
        ("cat > {0} <<EOF\n{1}$HOME\nEOF", False),  # The shell expands variables in this text.
        ("cd $SOMEWHERE && cat > {0} <<'EOF'\n{1}EOF", False),
        ("sed -i 's/.*/    return sum(row.price for row in rows)/' {0}", False),
        ("cat > {0} <<'EOF'\n{1}", False),
    ],
)
def test_a_shell_command_counts_only_with_a_here_document(
    repo: Repository, find_writer: FindWriter, command: str, is_writer_found: bool
) -> None:
    """A shell command proves which lines it wrote only if it contains a here-document."""
    folder = "src/" if command.startswith("cd src") else ""
    own = repo.write_session(1, repo.shell_records(command.format("sums.py", FIRST_VERSION_TEXT)))
    repo.put_file(f"{folder}sums.py", FIRST_VERSION_TEXT)
    assert find_writer(f"{folder}sums.py:2") == (f"{own}:1" if is_writer_found else "")


def test_a_here_document_does_not_prove_the_lines_of_a_known_file(
    repo: Repository, find_writer: FindWriter
) -> None:
    """A here-document that overwrites a known file does not prove that it wrote the file's lines.

    The file was read before, so its lines may be older than the here-document.
    """
    path = repo.put_file("a.py", FIRST_VERSION_TEXT)
    looked = repo.call_records("Read", {"file_path": str(path)}, None)
    repo.write_session(
        1, looked, repo.shell_records(f"cat > a.py <<'EOF'\n{FIRST_VERSION_TEXT}EOF")
    )
    assert find_writer("a.py:2") == ""


def test_edits_count_in_every_worktree(
    repo: Repository, find_writer: FindWriter, git: Any, tmp_path: Path
) -> None:
    """An edit in one worktree of a repository is found in the repository's other worktrees."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(tmp_path, "init", "-q", "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    repo.root = linked
    own = repo.write_session(1, repo.write_file("a.py", FIRST_VERSION_TEXT))
    (main / "a.py").write_text(FIRST_VERSION_TEXT)
    assert find_writer("a.py:2", cwd=main) == f"{own}:1"


def test_edits_count_after_a_repository_moves(repo: Repository, find_writer: FindWriter) -> None:
    """If a repository was moved and its old folder is missing, its earlier edits are found.

    If a folder exists at the old path, it is treated as another repository.
    """
    own = repo.write_session(1, repo.write_file("src/sums.py", FIRST_VERSION_TEXT))
    moved = repo.root.rename(repo.root.with_name("moved"))
    assert find_writer("src/sums.py:2", "--all", cwd=moved) == f"{own}:1"
    repo.root.mkdir()
    assert find_writer("src/sums.py:2", "--all", cwd=moved) == ""


def test_crlf_and_byte_order_marks_do_not_matter(repo: Repository, find_writer: FindWriter) -> None:
    """Line ends and a byte order mark do not matter, but a tab differs from spaces."""
    text = "\tfirst_with_a_tab(1)\n    first_with_a_tab(2)\n"
    own = repo.write_session(1, repo.write_file("a.py", text))
    repo.put_file("a.py", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert find_writer("a.py:1") == find_writer("a.py:2") == f"{own}:1"
    repo.put_file("a.py", text.replace("\t", "    "))
    assert find_writer("a.py:1") == ""


def test_a_line_of_a_large_file_is_found(repo: Repository, find_writer: FindWriter) -> None:
    """A line of a file of one megabyte is found."""
    text = "".join(
        f"    the_value_of_row_number_{number} = computed({number})\n" for number in range(20_000)
    )
    assert len(text) > 1_000_000
    own = repo.write_session(
        1,
        repo.write_file("a.py", text),
        repo.edit_file("a.py", "computed(15000)", "computed_otherwise(15000)"),
    )
    assert find_writer("a.py:15001") == f"{own}:3"
    assert find_writer("a.py:14999") == f"{own}:1"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.py:3", FIRST_VERSION_TEXT, "a.py has no line 3"),
        ("a.py:0", FIRST_VERSION_TEXT, "a.py has no line 0"),
        ("a.py:1", "", "a.py has no line 1"),
        ("b.py:1", FIRST_VERSION_TEXT, "b.py can't be read: No such file or directory"),
        (".:1", FIRST_VERSION_TEXT, "is a folder, which has no lines"),
        ("a.py:1", b"\x89PNG\0\0", "a.py is a binary file, which has no lines"),
        ("a.py:2", b"first line\nd\xe9j\xe0 vu\n", "Line 2 of "),
    ],
)
def test_a_missing_line_is_a_usage_error(
    repo: Repository, cli: Cli, name: str, content: str | bytes, message: str
) -> None:
    """A line that does not exist is a usage error with the file's name and a remedy."""
    repo.put_file("a.py", content)
    done = cli("search", "--file", name, cwd=repo.root)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    error = json.loads(cli("search", "--file", name, "--json", cwd=repo.root).stdout)["error"]
    assert (error["code"], bool(error["remedy"])) == ("usage", True)


def test_a_line_beside_undecodable_lines_is_found(
    repo: Repository, find_writer: FindWriter
) -> None:
    """A line is found in a file in which other lines cannot be decoded."""
    own = repo.write_session(1, repo.write_file("a.txt", "a plain line of this file\n"))
    repo.put_file("a.txt", b"d\xe9j\xe0 vu\na plain line of this file\n")
    assert find_writer("a.txt:2") == f"{own}:1"


@pytest.mark.parametrize(
    "words", [["total"], ["--or", "total"], ["--tool", "Edit"], ["--role", "call"]]
)
def test_a_line_search_refuses_words_and_kinds(
    repo: Repository, cli: Cli, words: list[str]
) -> None:
    """The search for a line cannot be combined with words, roles or tools."""
    repo.put_file("a.py", FIRST_VERSION_TEXT)
    done = cli("search", "--file", "a.py:1", *words, cwd=repo.root)
    assert done.returncode == 2
    assert b"can't be combined with a line number" in done.stderr


def test_a_file_with_a_colon_in_its_name_is_not_a_line(
    repo: Repository, document: Document
) -> None:
    """If a file named ``a.py:1`` exists, ``--file a.py:1`` is that file and not a line."""
    repo.write_session(1, repo.write_file("a.py:1", FIRST_VERSION_TEXT))
    assert document("search", "--file", "a.py:1", cwd=repo.root)["data"]["query"] == ""


def test_a_line_search_respects_its_filters(repo: Repository, find_writer: FindWriter) -> None:
    """The search for a line respects the filters for session and time."""
    first = repo.write_session(1, repo.write_file("a.py", FIRST_VERSION_TEXT))
    repo.write_session(2, repo.edit_file("a.py", PRICE_LINE, PRICE_WITH_TAX_LINE))
    assert find_writer("a.py:2", "--session", first) == ""
    assert find_writer("a.py:1", "--session", first) == f"{first}:1"
    assert find_writer("a.py:1", "--since", "2027-01-01") == ""


def test_a_line_search_writes_no_project_or_session_file(
    repo: Repository, find_writer: FindWriter
) -> None:
    """The search for a line changes neither the project nor a transcript."""
    repo.write_session(1, repo.write_file("a.py", FIRST_VERSION_TEXT))

    def project_and_transcript_bytes() -> dict[str, tuple[int, bytes]]:
        folders = repo.root, repo.home.config / "projects"
        files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = project_and_transcript_bytes()
    assert find_writer("a.py:1")
    assert project_and_transcript_bytes() == before


def search_line(repo: Repository, line: str, max_seconds: float = float("inf")) -> SearchResult:
    """Search for a line, with a limit on the seconds that the search spends on indexing."""
    options = SimpleNamespace(file=line, words=(), other_wordings=(), where=repo.home.where)
    found = answer_line_search(
        options, Scope(), str(repo.root), max_seconds=max_seconds, progress=None
    )
    assert found is not None
    return found


def test_a_line_search_reads_archived_copies(repo: Repository, find_writer: FindWriter) -> None:
    """A line is found in the archived copy of a deleted session."""
    own = repo.write_session(1, repo.write_file("sums.py", FIRST_VERSION_TEXT))
    (path,) = repo.home.config.glob(f"projects/*/{own}.jsonl")
    archive_and_remove(path, repo.home.environ)
    assert find_writer("sums.py:2") == f"{own}:1"


def test_the_note_counts_sessions_not_indexed_yet(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the index is incomplete, the result counts the sessions that are not indexed yet.

    Only sessions that contain the file's name are counted.
    """
    repo.write_session(1, repo.write_file("sums.py", FIRST_VERSION_TEXT))
    repo.write_session(2, repo.write_file("elsewhere.txt", "something else\n"))
    with monkeypatch.context() as patch:
        # Another command seems to use the index.
        patch.setattr(connect, "lock_descriptor", lambda *_: False)
        patch.setattr(connect, "index_in_background", lambda *_: None)
        early = search_line(repo, "sums.py:2", max_seconds=0)
    assert (early.hits, early.unindexed_file_count, early.is_complete) == ([], 1, False)
    assert "Nothing found in what is indexed" in result_text(early)
    assert "1 file not indexed yet may contain more: search again in a minute." in result_text(
        early
    )
    assert [hit.session_id for hit in search_line(repo, "sums.py:2").hits] == [session_id(1)]


def test_a_file_without_sessions_is_reported(repo: Repository) -> None:
    """If no session has read or written the file, a note says so."""
    repo.write_session(1, repo.write_file("sums.py", FIRST_VERSION_TEXT))
    repo.put_file("other.py", FIRST_VERSION_TEXT)
    found = search_line(repo, "other.py:2")
    assert (found.hits, found.is_complete) == ([], True)
    assert "No tool read or wrote a file 'other.py'" in found.notes


@pytest.mark.part("codex")
@pytest.mark.parametrize(("exit_code", "is_edit"), [(0, True), (1, False)])
def test_a_codex_patch_counts_as_an_edit(repo: Repository, exit_code: int, is_edit: bool) -> None:
    """A patch by Codex counts as an edit if it succeeded."""
    from tests.parts.codex import rollouts

    head = "*** Begin Patch\n*** Update File: src/sums.py\n@@\n def total(rows):\n"
    patch = f"{head}-    return 0\n+    return sum(row.price for row in rows)\n*** End Patch\n"
    told = {"output": "Success" if is_edit else "failed", "metadata": {"exit_code": exit_code}}
    lines = [
        rollouts.meta_line(cwd=str(repo.root)),
        rollouts.message_line("user", "Sum it up", 1),
        rollouts.item_line("custom_tool_call", 2, name="apply_patch", input=patch, call_id="p"),
        rollouts.output_line("p", json.dumps(told), 3, "custom_tool_call_output"),
        rollouts.message_line("assistant", "Done", 4),
    ]
    rollouts.write_rollout(repo.home.root / ".codex", lines)
    repo.put_file("src/sums.py", FIRST_VERSION_TEXT)
    hits = search_line(repo, "src/sums.py:2").hits
    assert [(hit.agent, hit.session_id, hit.tool) for hit in hits] == [
        ("codex", rollouts.THREAD_ID, "Edit")
    ] * is_edit
    assert search_line(repo, "src/sums.py:1").hits == []


def test_a_line_search_reveals_no_files_outside_projects(
    repo: Repository, cli: Cli, tmp_path: Path
) -> None:
    """If a model searches for a line, the answer reveals nothing about files outside the projects.

    Models may run the search without permission.
    """
    own = repo.write_session(1, repo.write_file("src/sums.py", FIRST_VERSION_TEXT))
    (tmp_path / "shadow").write_text("root:x\n" * 7)
    (tmp_path / "binary").write_bytes(b"\0")
    model, said = {"CLAUDECODE": "1"}, set()
    for name in ("shadow", "binary", "missing"):
        done = cli("search", "--file", f"{tmp_path}/{name}:9999", cwd=tmp_path, environ=model)
        said.add(done.stderr.decode().replace(name, "x"))
    assert len(said) == 1
    assert "No session worked in a folder that contains" in said.pop()
    assert (
        own
        in cli("search", "--file", "src/sums.py:1", cwd=repo.root, environ=model).stdout.decode()
    )
    assert "has no line 9999" in cli("search", "--file", f"{tmp_path}/shadow:9999").stderr.decode()

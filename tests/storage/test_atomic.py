"""Tests of atomic writes: a session file is written completely or not at all."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resume_hooks.errors import CheckFailed, WriteFailed
from resume_hooks.storage.atomic import append_line, create_session, replace_session
from tests.builders import SESSION, session_id
from tests.crashes import kill_before_each_change, without_root_rights
from tests.needs import REPO

SESSION_FILE_NAME = f"{SESSION}.jsonl"
CHUNKS = [b"first\n", b"second " + b"x" * 100_000 + b"\n", b"third\n"]
FILE_CONTENT = b"".join(CHUNKS)


def accept_any_file(path: str) -> None:
    """A check that accepts any file."""


def session_files_in(folder: Path) -> list[str]:
    """Return the files that a client would read as sessions."""
    return sorted(
        path.name for path in folder.iterdir() if path.suffix == ".jsonl" and path.stat().st_size
    )


def test_create_writes_a_complete_private_file(tmp_path: Path) -> None:
    """A new session file has the given bytes and mode 0600, and no other file is left."""
    create_session(str(tmp_path / SESSION_FILE_NAME), CHUNKS, accept_any_file)
    assert (tmp_path / SESSION_FILE_NAME).read_bytes() == FILE_CONTENT
    assert [path.name for path in tmp_path.iterdir()] == [SESSION_FILE_NAME]
    assert (tmp_path / SESSION_FILE_NAME).stat().st_nlink == 1


@pytest.mark.parametrize("umask", [0, 0o777, 0o022])
def test_the_umask_never_makes_a_file_public(tmp_path: Path, umask: int) -> None:
    """Under any umask, a new file has mode 0600, and a file made by an append is closed to others."""
    before = os.umask(umask)
    try:
        create_session(str(tmp_path / SESSION_FILE_NAME), CHUNKS, accept_any_file)
        append_line(str(tmp_path / "log"), b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / SESSION_FILE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) & ~0o600 == 0


def test_the_check_reads_the_complete_file_before_the_rename(tmp_path: Path) -> None:
    """While a new file is checked, it is complete but has a temporary name."""
    seen = []

    def record_state_of_files(path: str) -> None:
        seen.append(
            (Path(path).read_bytes() == FILE_CONTENT, Path(path).suffix, session_files_in(tmp_path))
        )

    create_session(str(tmp_path / SESSION_FILE_NAME), iter(CHUNKS), record_state_of_files)
    assert seen == [(True, ".tmp", [])]


def failing_chunks(error: BaseException) -> Iterator[bytes]:
    """Yield some bytes, and then raise ``error``."""
    yield CHUNKS[0]
    raise error


def failing_check(error: BaseException) -> Callable[[str], None]:
    """Return a check that raises ``error``."""

    def raise_given_error(path: str) -> None:
        raise error

    return raise_given_error


@pytest.mark.parametrize(
    "error", [CheckFailed("no"), KeyboardInterrupt(), ValueError("bug"), SystemExit(3)]
)
def test_a_failed_write_leaves_no_file(tmp_path: Path, error: BaseException) -> None:
    """If the check fails or the chunks cannot be produced, the error is raised and no file is left."""
    with pytest.raises(type(error)):
        create_session(str(tmp_path / SESSION_FILE_NAME), CHUNKS, failing_check(error))
    with pytest.raises(type(error)):
        create_session(str(tmp_path / SESSION_FILE_NAME), failing_chunks(error), accept_any_file)
    assert list(tmp_path.iterdir()) == []


def test_create_never_overwrites_an_existing_file(tmp_path: Path) -> None:
    """An existing file with the chosen name keeps its bytes, and a link with that name is not followed."""
    (tmp_path / SESSION_FILE_NAME).write_bytes(b"mine\n")
    with pytest.raises(WriteFailed, match="File exists"):
        create_session(str(tmp_path / SESSION_FILE_NAME), CHUNKS, accept_any_file)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        (SESSION_FILE_NAME, b"mine\n")
    ]
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteFailed):
        create_session(str(link), CHUNKS, accept_any_file)
    assert not (tmp_path / "elsewhere").exists()


def test_a_write_to_a_missing_folder_raises_a_clear_error(tmp_path: Path) -> None:
    """If the folder is missing or is a file, the error names the path."""
    (tmp_path / "file").write_bytes(b"")
    for folder in ("gone", "file"):
        with pytest.raises(WriteFailed, match=f"Could not write .*{folder}"):
            create_session(str(tmp_path / folder / SESSION_FILE_NAME), CHUNKS, accept_any_file)


def test_a_write_to_a_read_only_folder_fails() -> None:
    """In a folder without write permission, the write fails with the reason and no file is created."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        with without_root_rights(), pytest.raises(WriteFailed, match="Permission denied"):
            create_session(os.path.join(folder, SESSION_FILE_NAME), CHUNKS, accept_any_file)
        assert os.listdir(folder) == []
        os.chmod(folder, 0o700)


FULL_DISK_SCRIPT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
from resume_hooks.errors import WriteFailed
from resume_hooks.storage.atomic import append_line, append_records, create_session
try:
    create_session(sys.argv[1], [b"x" * 40_000] * 9, lambda path: None)
except WriteFailed as error:
    print(error.message)
try:
    append_line(sys.argv[2], b"y" * 60_000)
except OSError as error:
    print("not appended")
try:
    append_records(sys.argv[2], [b"y" * 60_000])
except WriteFailed as error:
    print(error.message)
"""


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    """A write on a full disk raises an error, and no partial file or line is left."""
    command = [
        sys.executable,
        "-c",
        FULL_DISK_SCRIPT,
        str(tmp_path / SESSION_FILE_NAME),
        str(tmp_path / "log"),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(REPO / "src")},
    )
    assert "File too large" in done.stdout
    assert "not appended" in done.stdout
    assert "Could not add to" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    append_line(str(tmp_path / "log"), b"next")
    assert (tmp_path / "log").read_bytes() == b"next\n"


def test_a_killed_writer_leaves_a_complete_file_or_none(tmp_path: Path) -> None:
    """A writer that is killed at any step leaves a complete file or none.

    The next writer removes temporary files.
    """
    path, outcomes = tmp_path / SESSION_FILE_NAME, []

    def prepare_creation() -> Callable[[], object]:
        path.unlink(missing_ok=True)
        return lambda: create_session(str(path), CHUNKS, accept_any_file)

    for killed in kill_before_each_change(prepare_creation):
        assert not path.exists() or path.read_bytes() == FILE_CONTENT
        outcomes.append((killed, path.exists()))
        create_session(
            str(tmp_path / f"{session_id(len(outcomes))}.jsonl"), CHUNKS, accept_any_file
        )
        assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
    assert outcomes[0] == (True, False)
    assert outcomes[-1] == (False, True)
    assert (True, True) in outcomes  # One of the kills came after the file had its final name.


def test_create_never_overwrites_a_file_even_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without hard links, the file is renamed into place, and an existing file is not replaced."""

    def refuse_call(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse_call)
    create_session(str(tmp_path / SESSION_FILE_NAME), CHUNKS, accept_any_file)
    assert (tmp_path / SESSION_FILE_NAME).read_bytes() == FILE_CONTENT
    with pytest.raises(WriteFailed, match="File exists"):
        create_session(str(tmp_path / SESSION_FILE_NAME), [b"other"], accept_any_file)
    monkeypatch.setattr(os, "replace", refuse_call)
    with pytest.raises(WriteFailed, match="not permitted"):
        create_session(str(tmp_path / "other.jsonl"), CHUNKS, accept_any_file)
    assert [path.name for path in tmp_path.iterdir()] == [SESSION_FILE_NAME]


def _create_and_exit(path: str, chunk: bytes, start_event: object) -> None:
    start_event.wait()  # type: ignore[attr-defined]
    try:
        create_session(path, [chunk * 50_000], accept_any_file)
    except WriteFailed:
        os._exit(1)


def test_only_one_of_several_creators_succeeds(tmp_path: Path) -> None:
    """If several processes create a file with the same name, one of them succeeds.

    The file is complete, and no other file is left.
    """
    fork = multiprocessing.get_context("fork")
    for turn in range(10):
        folder = tmp_path / str(turn)
        folder.mkdir()
        ready = fork.Barrier(4)
        writers = [
            fork.Process(
                target=_create_and_exit, args=(str(folder / SESSION_FILE_NAME), b"%d" % n, ready)
            )
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert sorted(writer.exitcode or 0 for writer in writers) == [0, 1, 1, 1]
        content = (folder / SESSION_FILE_NAME).read_bytes()
        assert content == content[:1] * 50_000
        assert [path.name for path in folder.iterdir()] == [SESSION_FILE_NAME]


def replace_file(
    path: Path, chunks: list[bytes], check: Callable[[str], None] = accept_any_file
) -> bool:
    """Replace the content of ``path`` with ``chunks``."""
    kept = path.with_name("kept")
    kept.write_bytes(path.read_bytes())
    with path.open("rb") as original:
        return replace_session(str(path), original.fileno(), str(kept), chunks, check)


def test_replace_writes_all_new_bytes(tmp_path: Path) -> None:
    """A replaced file has the new bytes and mode 0600.

    Bytes that another program appends while the new file is checked follow the new content.
    """
    path = tmp_path / SESSION_FILE_NAME
    path.write_bytes(FILE_CONTENT)
    os.chmod(path, 0o644)

    def check_and_append_line(temporary_path: str) -> None:
        assert Path(temporary_path).read_bytes() == b"new\n"
        assert path.read_bytes() == FILE_CONTENT
        append_line(str(path), b"late")

    assert replace_file(path, [b"new\n"], check_and_append_line) is False
    assert path.read_bytes() == b"new\nlate\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == [SESSION_FILE_NAME, "kept"]


def test_replace_keeps_an_unfinished_last_line(tmp_path: Path) -> None:
    """An unfinished last line is kept unchanged if no process is writing it."""
    path = tmp_path / SESSION_FILE_NAME
    path.write_bytes(b'{"whole":1}\n{"torn":')
    replace_file(path, [b"new\n", b'{"torn":'])
    assert path.read_bytes() == b'new\n{"torn":'


@pytest.mark.parametrize(
    "error", [CheckFailed("no"), KeyboardInterrupt(), ValueError("bug"), OSError(28, "full")]
)
def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path, error: BaseException) -> None:
    """If a replacement fails, the file is unchanged and no other file is left."""
    path = tmp_path / SESSION_FILE_NAME
    path.write_bytes(FILE_CONTENT)
    with pytest.raises(WriteFailed if isinstance(error, OSError) else type(error)):
        replace_file(path, [b"new\n"], failing_check(error))
    assert path.read_bytes() == FILE_CONTENT
    assert sorted(found.name for found in tmp_path.iterdir()) == [SESSION_FILE_NAME, "kept"]


def test_replace_refuses_a_file_that_differs_from_the_copy(tmp_path: Path) -> None:
    """A replacement is refused if another program replaced the file or changed its bytes."""
    path = tmp_path / SESSION_FILE_NAME

    def replace_by_rename(_: str) -> None:
        (tmp_path / "other").write_bytes(FILE_CONTENT)
        os.replace(tmp_path / "other", path)

    def rewrite_file(_: str) -> None:
        path.write_bytes(b"F" + FILE_CONTENT[1:])

    def truncate_file(_: str) -> None:
        os.truncate(path, 5)

    for change in (replace_by_rename, rewrite_file, truncate_file):
        path.write_bytes(FILE_CONTENT)
        with pytest.raises(WriteFailed, match="by another program in the meantime"):
            replace_file(path, [b"new\n"], change)
        assert b"new" not in path.read_bytes()


def call_after_rename(path: Path, write: Callable[[int], object]) -> threading.Thread:
    """Call ``write`` with a descriptor of the old file as soon as ``path`` is a new file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    was = os.fstat(descriptor).st_ino

    def write_after_rename() -> None:
        while path.stat().st_ino == was:
            time.sleep(0.001)
        write(descriptor)
        os.close(descriptor)

    thread = threading.Thread(target=write_after_rename)
    thread.start()
    return thread


def test_replace_moves_lines_written_to_the_old_file(tmp_path: Path) -> None:
    """Lines that are written to the old file are added to the new one, complete and in order.

    This also applies to a line of 3 MB. A last line without a line feed gets one.
    """
    path = tmp_path / SESSION_FILE_NAME
    path.write_bytes(FILE_CONTENT)
    long = b"l" * 3_000_000

    def write_to_old_file(descriptor: int) -> None:
        os.write(descriptor, b"old 1\nold")
        append_line(str(path), b"new 1")
        time.sleep(0.02)
        os.write(descriptor, b" 2\n" + long + b"\nold 3")

    thread = call_after_rename(path, write_to_old_file)
    replace_file(path, [b"new\n"])
    thread.join()
    lines = path.read_bytes().split(b"\n")
    assert [found for found in lines if found != b"new 1"] == [
        b"new",
        b"old 1",
        b"old 2",
        long,
        b"old 3",
        b"",
    ]
    assert lines.count(b"new 1") == 1


def test_replace_keeps_the_modification_time(tmp_path: Path) -> None:
    """A replaced file keeps its modification time, unless another program wrote to it meanwhile."""
    path, old = tmp_path / SESSION_FILE_NAME, 1_600_000_000_123_456_789
    path.write_bytes(FILE_CONTENT)
    os.utime(path, ns=(old, old))
    replace_file(path, [b"new\n"])
    assert path.stat().st_mtime_ns == old
    replace_file(path, [b"newer\n"], lambda _: append_line(str(path), b"late"))
    assert path.read_bytes() == b"newer\nlate\n"
    assert time.time() - path.stat().st_mtime < 60
    os.utime(path, ns=(old, old))
    thread = call_after_rename(path, lambda descriptor: os.write(descriptor, b"later\n"))
    replace_file(path, [b"newest\n"])
    thread.join()
    assert path.read_bytes() == b"newest\nlater\n"
    assert time.time() - path.stat().st_mtime < 60


def test_a_moved_record_never_splits_another_line(tmp_path: Path) -> None:
    """A record from the old file is added only after the end of a line that another program is writing."""
    path = tmp_path / SESSION_FILE_NAME
    path.write_bytes(FILE_CONTENT)

    def write_to_old_file(descriptor: int) -> None:
        with path.open("ab", buffering=0) as stream:
            stream.write(b"he")
            os.write(descriptor, b"old 1\n")
            time.sleep(0.05)
            stream.write(b"re\n")
            time.sleep(0.05)
            stream.write(b"left")
            os.write(descriptor, b"old 2\n")

    thread = call_after_rename(path, write_to_old_file)
    replace_file(path, [b"new\n"])
    thread.join()
    assert path.read_bytes() == b"new\nhere\nold 1\nleft\nold 2\n"


FULL_DISK_REPLACEMENT_SCRIPT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from resume_hooks.errors import WriteFailed
from tests.storage.test_atomic import replace_file
path = Path(sys.argv[1])
path.write_bytes(b"old\\n")
print("ready", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    replace_file(path, [b"x" * 9_999 + b"\\n"] * int(sys.argv[2]))
except WriteFailed as error:
    print(error.message, error.remedy)
"""


@pytest.mark.parametrize(
    ("chunk_count", "expected_message"),
    [(9, "Nothing was changed"), (5, "the new lines of a running client")],
)
def test_replace_reports_a_full_disk(
    tmp_path: Path, chunk_count: int, expected_message: str
) -> None:
    """If the disk becomes full before the rename, the error says that nothing was changed.

    If it becomes full after the rename, the error says which lines may be missing.
    """
    path = tmp_path / SESSION_FILE_NAME
    command = [sys.executable, "-c", FULL_DISK_REPLACEMENT_SCRIPT, str(path), str(chunk_count)]
    env = {"PYTHONPATH": f"{REPO / 'src'}:{REPO}"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        thread = (
            call_after_rename(path, lambda old: os.write(old, b"late\n"))
            if chunk_count == 5
            else None
        )
        assert expected_message in process.communicate("go\n")[0]
    if thread is not None:
        thread.join()
    assert path.read_bytes() == (b"old\n" if thread is None else (b"x" * 9_999 + b"\n") * 5)


def _append_marked_lines(path: str, letter: str) -> None:
    for number in range(50):
        append_line(path, f"{letter}:{number}:{letter * 200}".encode())


def test_parallel_appends_never_mix_lines(tmp_path: Path) -> None:
    """If eight processes append at the same time, every line is complete and appears once."""
    path = tmp_path / "links.jsonl"
    fork = multiprocessing.get_context("fork")
    writers = [
        fork.Process(target=_append_marked_lines, args=(str(path), mark)) for mark in "abcdefgh"
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    expected = [f"{mark}:{number}:{mark * 200}" for mark in "abcdefgh" for number in range(50)]
    assert sorted(path.read_text().splitlines()) == sorted(expected)


def test_append_ends_an_unfinished_line_first(tmp_path: Path) -> None:
    """An append first ends an unfinished last line."""
    path = tmp_path / "links.jsonl"
    path.write_bytes(b'{"whole":1}\n{"torn":')
    append_line(str(path), b'{"next":1}')
    append_line(str(path), b'{"last":1}')
    assert path.read_bytes() == b'{"whole":1}\n{"torn":\n{"next":1}\n{"last":1}\n'


def test_append_refuses_a_link(tmp_path: Path) -> None:
    """An append to a symbolic link is refused, and the link is not followed."""
    (tmp_path / "links.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(str(tmp_path / "links.jsonl"), b"x")
    assert not (tmp_path / "elsewhere").exists()


def test_append_refuses_a_pipe(tmp_path: Path) -> None:
    """An append to a pipe is refused immediately."""
    os.mkfifo(tmp_path / "links.jsonl")
    with pytest.raises(OSError, match="regular"):
        append_line(str(tmp_path / "links.jsonl"), b"x")

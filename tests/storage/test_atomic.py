"""Rewrite: a session file is there whole or not at all, whatever fails or whoever else writes."""

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
from tests.crashes import an_ordinary_user, crashes
from tests.needs import REPO

NAME = f"{SESSION}.jsonl"
CHUNKS = [b"first\n", b"second " + b"x" * 100_000 + b"\n", b"third\n"]
WHOLE = b"".join(CHUNKS)
KILLED = 9


def accept(path: str) -> None:
    """A check that finds nothing to object to."""


def visible(folder: Path) -> list[str]:
    """Return the files that a client would read as sessions."""
    return sorted(
        path.name for path in folder.iterdir() if path.suffix == ".jsonl" and path.stat().st_size
    )


def test_the_file_is_whole_and_private(tmp_path: Path) -> None:
    """Bytes as given, mode 0600, nothing else left in the folder."""
    create_session(str(tmp_path / NAME), CHUNKS, accept)
    assert (tmp_path / NAME).read_bytes() == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).stat().st_nlink == 1


@pytest.mark.parametrize("mask", [0, 0o777, 0o022])
def test_the_mode_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """0600 under any umask, also for appended files where the umask allows it."""
    before = os.umask(mask)
    try:
        create_session(str(tmp_path / NAME), CHUNKS, accept)
        append_line(str(tmp_path / "log"), b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) & ~0o600 == 0


def test_the_check_sees_the_whole_file_before_it_has_its_name(tmp_path: Path) -> None:
    """While it is checked, the file is complete, on disk, and no session yet."""
    seen = []

    def check(path: str) -> None:
        seen.append((Path(path).read_bytes() == WHOLE, Path(path).suffix, visible(tmp_path)))

    create_session(str(tmp_path / NAME), iter(CHUNKS), check)
    assert seen == [(True, ".tmp", [])]


def failing_chunks(error: BaseException) -> Iterator[bytes]:
    """Some bytes, then ``error``."""
    yield CHUNKS[0]
    raise error


def failing_check(error: BaseException) -> Callable[[str], None]:
    """A check that raises ``error``."""

    def check(path: str) -> None:
        raise error

    return check


@pytest.mark.parametrize(
    "error", [CheckFailed("no"), KeyboardInterrupt(), ValueError("bug"), SystemExit(3)]
)
def test_a_failure_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    """A failed check, a bug, Ctrl+C: the error comes through and the folder is as it was."""
    with pytest.raises(type(error)):
        create_session(str(tmp_path / NAME), CHUNKS, failing_check(error))
    with pytest.raises(type(error)):
        create_session(str(tmp_path / NAME), failing_chunks(error), accept)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_name_is_never_written_over(tmp_path: Path) -> None:
    """The file that has the name keeps its bytes; a link in its place is not followed."""
    (tmp_path / NAME).write_bytes(b"mine\n")
    with pytest.raises(WriteFailed, match="File exists"):
        create_session(str(tmp_path / NAME), CHUNKS, accept)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(NAME, b"mine\n")]
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteFailed):
        create_session(str(link), CHUNKS, accept)
    assert not (tmp_path / "elsewhere").exists()


def test_a_missing_folder_is_a_sentence(tmp_path: Path) -> None:
    """Where there is no folder, or a file in its place, the failure says what and where."""
    (tmp_path / "file").write_bytes(b"")
    for folder in ("gone", "file"):
        with pytest.raises(WriteFailed, match=f"Could not write .*{folder}"):
            create_session(str(tmp_path / folder / NAME), CHUNKS, accept)


def test_a_read_only_folder() -> None:
    """Without the right to write nothing is made, and the sentence says why."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        with an_ordinary_user(), pytest.raises(WriteFailed, match="Permission denied"):
            create_session(os.path.join(folder, NAME), CHUNKS, accept)
        assert os.listdir(folder) == []
        os.chmod(folder, 0o700)


FULL_DISK = """
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


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A write that the system cuts short fails as a sentence, the folder is empty again, nothing half is appended."""
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / NAME), str(tmp_path / "log")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(REPO / "src")}
    )
    assert "File too large" in done.stdout
    assert "not appended" in done.stdout
    assert "Could not add to" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    append_line(str(tmp_path / "log"), b"next")
    assert (tmp_path / "log").read_bytes() == b"next\n"


def test_killed_at_any_step_leaves_nothing_or_the_whole(tmp_path: Path) -> None:
    """Killed before each step of the writer in turn: no session, or the whole one.

    The next writer cleans up.
    """
    path, outcomes = tmp_path / NAME, []

    def prepare() -> Callable[[], object]:
        path.unlink(missing_ok=True)
        return lambda: create_session(str(path), CHUNKS, accept)

    for killed in crashes(prepare):
        assert not path.exists() or path.read_bytes() == WHOLE
        outcomes.append((killed, path.exists()))
        create_session(str(tmp_path / f"{session_id(len(outcomes))}.jsonl"), CHUNKS, accept)
        assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
    assert outcomes[0] == (True, False)
    assert outcomes[-1] == (False, True)
    assert (True, True) in outcomes  # killed after it had its name, too


def test_without_hard_links_the_name_is_still_exclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On volumes that know no hard links the file comes by a rename, and never over another one."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    create_session(str(tmp_path / NAME), CHUNKS, accept)
    assert (tmp_path / NAME).read_bytes() == WHOLE
    with pytest.raises(WriteFailed, match="File exists"):
        create_session(str(tmp_path / NAME), [b"other"], accept)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WriteFailed, match="not permitted"):
        create_session(str(tmp_path / "other.jsonl"), CHUNKS, accept)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def _create(path: str, mark: bytes, ready: object) -> None:
    ready.wait()  # type: ignore[attr-defined]
    try:
        create_session(path, [mark * 50_000], accept)
    except WriteFailed:
        os._exit(1)


def test_of_two_creators_one_wins(tmp_path: Path) -> None:
    """Several writers of one name: exactly one succeeds, its bytes are whole, nothing else is left."""
    fork = multiprocessing.get_context("fork")
    for turn in range(10):
        folder = tmp_path / str(turn)
        folder.mkdir()
        ready = fork.Barrier(4)
        writers = [
            fork.Process(target=_create, args=(str(folder / NAME), b"%d" % n, ready))
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert sorted(writer.exitcode or 0 for writer in writers) == [0, 1, 1, 1]
        content = (folder / NAME).read_bytes()
        assert content == content[:1] * 50_000
        assert [path.name for path in folder.iterdir()] == [NAME]


def replaced(path: Path, chunks: list[bytes], check: Callable[[str], None] = accept) -> bool:
    """Put ``chunks`` in place of what ``path`` holds now."""
    kept = path.with_name("kept")
    kept.write_bytes(path.read_bytes())
    with path.open("rb") as original:
        return replace_session(str(path), original.fileno(), str(kept), chunks, check)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """New bytes, private, and what is appended while they are checked continues behind them."""
    path = tmp_path / NAME
    path.write_bytes(WHOLE)
    os.chmod(path, 0o644)

    def check(temporary: str) -> None:
        assert Path(temporary).read_bytes() == b"new\n"
        assert path.read_bytes() == WHOLE
        append_line(str(path), b"late")

    assert replaced(path, [b"new\n"], check) is False
    assert path.read_bytes() == b"new\nlate\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == [NAME, "kept"]


def test_an_abandoned_half_line_stays(tmp_path: Path) -> None:
    """A last line without its end is nobody's any more: it stays as it is."""
    path = tmp_path / NAME
    path.write_bytes(b'{"whole":1}\n{"torn":')
    replaced(path, [b"new\n", b'{"torn":'])
    assert path.read_bytes() == b'new\n{"torn":'


@pytest.mark.parametrize(
    "error", [CheckFailed("no"), KeyboardInterrupt(), ValueError("bug"), OSError(28, "full")]
)
def test_a_replacement_that_fails_changes_nothing(tmp_path: Path, error: BaseException) -> None:
    """A failed check, a bug, Ctrl+C, a full disk: the file is as it was, and nothing else is left."""
    path = tmp_path / NAME
    path.write_bytes(WHOLE)
    with pytest.raises(WriteFailed if isinstance(error, OSError) else type(error)):
        replaced(path, [b"new\n"], failing_check(error))
    assert path.read_bytes() == WHOLE
    assert sorted(found.name for found in tmp_path.iterdir()) == [NAME, "kept"]


def test_a_file_that_differs_from_the_copy_is_not_replaced(tmp_path: Path) -> None:
    """It has the same name but belongs to another program, or its bytes differ."""
    path = tmp_path / NAME

    def rename(_: str) -> None:
        (tmp_path / "other").write_bytes(WHOLE)
        os.replace(tmp_path / "other", path)

    def rewrite(_: str) -> None:
        path.write_bytes(b"F" + WHOLE[1:])

    def shrink(_: str) -> None:
        os.truncate(path, 5)

    for change in (rename, rewrite, shrink):
        path.write_bytes(WHOLE)
        with pytest.raises(WriteFailed, match="by another program meanwhile"):
            replaced(path, [b"new\n"], change)
        assert b"new" not in path.read_bytes()


def after_the_rename(path: Path, write: Callable[[int], object]) -> threading.Thread:
    """Have ``write`` called with the old file's descriptor as soon as ``path`` is another file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    was = os.fstat(descriptor).st_ino

    def run() -> None:
        while path.stat().st_ino == was:
            time.sleep(0.001)
        write(descriptor)
        os.close(descriptor)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_lines_written_to_the_old_file_are_carried_over(tmp_path: Path) -> None:
    """Lines arrive whole and in order among other programs' lines, even one of 3 MB. A partial line is ended."""
    path = tmp_path / NAME
    path.write_bytes(WHOLE)
    long = b"l" * 3_000_000

    def write(descriptor: int) -> None:
        os.write(descriptor, b"old 1\nold")
        append_line(str(path), b"new 1")
        time.sleep(0.02)
        os.write(descriptor, b" 2\n" + long + b"\nold 3")

    thread = after_the_rename(path, write)
    replaced(path, [b"new\n"])
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


def test_a_replaced_file_keeps_its_times(tmp_path: Path) -> None:
    """An old session stays old, to the nanosecond.

    One that somebody wrote to meanwhile is as new as that.
    """
    path, old = tmp_path / NAME, 1_600_000_000_123_456_789
    path.write_bytes(WHOLE)
    os.utime(path, ns=(old, old))
    replaced(path, [b"new\n"])
    assert path.stat().st_mtime_ns == old
    replaced(path, [b"newer\n"], lambda _: append_line(str(path), b"late"))
    assert path.read_bytes() == b"newer\nlate\n"
    assert time.time() - path.stat().st_mtime < 60
    os.utime(path, ns=(old, old))
    thread = after_the_rename(path, lambda descriptor: os.write(descriptor, b"later\n"))
    replaced(path, [b"newest\n"])
    thread.join()
    assert path.read_bytes() == b"newest\nlater\n"
    assert time.time() - path.stat().st_mtime < 60


def test_a_carried_over_record_never_splits_a_line(tmp_path: Path) -> None:
    """If another program is writing a line of the new file, the old file's record waits and then follows."""
    path = tmp_path / NAME
    path.write_bytes(WHOLE)

    def write(descriptor: int) -> None:
        with path.open("ab", buffering=0) as stream:
            stream.write(b"he")
            os.write(descriptor, b"old 1\n")
            time.sleep(0.05)
            stream.write(b"re\n")
            time.sleep(0.05)
            stream.write(b"left")
            os.write(descriptor, b"old 2\n")

    thread = after_the_rename(path, write)
    replaced(path, [b"new\n"])
    thread.join()
    assert path.read_bytes() == b"new\nhere\nold 1\nleft\nold 2\n"


NO_ROOM = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from resume_hooks.errors import WriteFailed
from tests.storage.test_atomic import replaced
path = Path(sys.argv[1])
path.write_bytes(b"old\\n")
print("ready", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    replaced(path, [b"x" * 9_999 + b"\\n"] * int(sys.argv[2]))
except WriteFailed as error:
    print(error.message, error.remedy)
"""


@pytest.mark.parametrize(
    ("chunks", "said"), [(9, "Nothing was changed"), (5, "a running client's new lines")]
)
def test_a_full_disk_is_reported(tmp_path: Path, chunks: int, said: str) -> None:
    """Before the rename nothing was changed; after it the message says what may be missing."""
    path = tmp_path / NAME
    command = [sys.executable, "-c", NO_ROOM, str(path), str(chunks)]
    env = {"PYTHONPATH": f"{REPO / 'src'}:{REPO}"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        thread = (
            after_the_rename(path, lambda old: os.write(old, b"late\n")) if chunks == 5 else None
        )
        assert said in process.communicate("go\n")[0]
    if thread is not None:
        thread.join()
    assert path.read_bytes() == (b"old\n" if thread is None else (b"x" * 9_999 + b"\n") * 5)


def _append(path: str, mark: str) -> None:
    for number in range(50):
        append_line(path, f"{mark}:{number}:{mark * 200}".encode())


def test_appended_lines_never_mix(tmp_path: Path) -> None:
    """Eight processes at once: every line is there once and whole."""
    path = tmp_path / "links.jsonl"
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_append, args=(str(path), mark)) for mark in "abcdefgh"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    expected = [f"{mark}:{number}:{mark * 200}" for mark in "abcdefgh" for number in range(50)]
    assert sorted(path.read_text().splitlines()) == sorted(expected)


def test_a_torn_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    """A last line without its end is ended first."""
    path = tmp_path / "links.jsonl"
    path.write_bytes(b'{"whole":1}\n{"torn":')
    append_line(str(path), b'{"next":1}')
    append_line(str(path), b'{"last":1}')
    assert path.read_bytes() == b'{"whole":1}\n{"torn":\n{"next":1}\n{"last":1}\n'


def test_append_follows_no_link(tmp_path: Path) -> None:
    """A link in the place of our file leads nowhere."""
    (tmp_path / "links.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(str(tmp_path / "links.jsonl"), b"x")
    assert not (tmp_path / "elsewhere").exists()


def test_append_writes_to_no_pipe(tmp_path: Path) -> None:
    """A pipe in the place of our file is refused, not waited for."""
    os.mkfifo(tmp_path / "links.jsonl")
    with pytest.raises(OSError, match="regular"):
        append_line(str(tmp_path / "links.jsonl"), b"x")

"""Tests that a trim in place changes only trimmed lines, backs up the originals, and keeps new lines."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks import clock
from resume_hooks.archive import link_sessions
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim.options import EnteredOptions, make_options
from resume_hooks.derive.trim.selection import TrimEdit
from resume_hooks.derive.verbs import trim_in_place
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import (
    CheckFailed,
    NothingToTrim,
    ResumeHooksError,
    SessionInUse,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where
from resume_hooks.sessions import held_links
from resume_hooks.sessions.session_files import session_file
from resume_hooks.storage import append_carryover, backups
from resume_hooks.transcripts.lines import BOM
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    conversation,
    last_prompt,
    line,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
)
from tests.cli.conftest import Cli, Document, cli, document
from tests.crashes import (
    exit_code_of_fork,
    kill_before_each_change,
    limit_file_size,
    without_root_rights,
)
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    ClientHome,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi

__all__ = ["cli", "document"]

OLD_TIME = 1_000_000_000.0
CHARACTERS_PER_READ = 2_000


def make_turns_with_reads(turn_count: int, size: int = CHARACTERS_PER_READ) -> list[Record]:
    """Return turns that each read a file of ``size`` characters."""
    records: list[Record] = []
    above: str | None = None
    for n in range(turn_count):
        text = f"{n:06d} " + f"{n % 7}x" * (size // 2)
        records += [
            user(f"look at {n}", uuid=f"p{n}", parent=above, ts=4 * n),
            tool_use(
                f"t{n}",
                uuid=f"c{n}",
                parent=f"p{n}",
                ts=4 * n + 1,
                tokens=1_000 + n * (size // 4 + 20),
            ),
            tool_result(
                f"t{n}",
                text,
                uuid=f"r{n}",
                parent=f"c{n}",
                ts=4 * n + 2,
                toolUseResult={"file": text},
            ),
            assistant(
                f"seen {n}",
                uuid=f"a{n}",
                parent=f"r{n}",
                ts=4 * n + 3,
                tokens=1_500 + n * (size // 4 + 20),
            ),
        ]
        above = f"a{n}"
    return records


ODD_LINES = [
    b"",
    b"not JSON at all",
    line(user("a dead branch " + "d" * 3_000, uuid="dead", parent="a1", ts=6)).replace(
        b'":', b'": ', 3
    ),
    b'{"type":"strange","kept":"\xe2\x80\xa8raw","big":123456789012345678901234567890}',
    b"\xff\xfe invalid",
    line(last_prompt("a5")),
]
"""Lines that don't belong to the conversation, or that no client writes in this form."""


def make_odd_session() -> bytes:
    """Return a session with a byte order mark, CRLF, ``ODD_LINES`` and an incomplete last line."""
    records = make_turns_with_reads(6)
    body = b"\n".join([*map(line, records[:8]), *ODD_LINES, *map(line, records[8:-1])])
    return BOM + body.replace(b"\n", b"\r\n", 3) + b"\n" + line(records[-1]) + b'\n{"torn":"li'


def write_old_session(
    home: ConfigHome, content: list[Record] | bytes, session_number: int = 0
) -> Path:
    """Write a session whose file was last changed long ago."""
    name = session_id(session_number) if session_number else SESSION
    path = home.project() / f"{name}.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else session_bytes(content))
    os.utime(path, (OLD_TIME, OLD_TIME))
    return path


def trim(
    home: ConfigHome, path: Path, *, force: bool = False, dry_run: bool = False, **options: Any
) -> Receipt:
    """Trim a session in place and return the receipt."""
    return trim_in_place.trim_in_place(
        session_file(str(path)),
        make_options(EnteredOptions(**options)),
        Caller(home.where, dry_run=dry_run),
        force=force,
    ).receipt


def list_backups(home: ConfigHome) -> list[Path]:
    """Return the paths of all backups."""
    return sorted(Path(home.config, "resume-hooks", "backups").glob("*/*.jsonl"))


def assert_only_trimmed_lines_differ(
    path: Path, original_content: bytes, backup: Path
) -> list[int]:
    """Check that only trimmed records differ from the original file, and return their line numbers."""
    before, after = original_content.split(b"\n"), path.read_bytes().split(b"\n")
    assert len(before) == len(after)
    changed = [
        number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
    ]
    for number in changed:
        old, new = (
            orjson.loads(lines[number].strip().removeprefix(BOM)) for lines in (before, after)
        )
        assert (new["truncated"], new["original_session"]) == (True, str(backup))
        assert (new["original_session_id"], new["original_index"], new["original_uuid"]) == (
            path.stem,
            number,
            old["uuid"],
        )
        same = set(old) - {"message", "toolUseResult"}
        assert {key: new[key] for key in same} == {key: old[key] for key in same}
        assert old["message"].get("usage") == new["message"].get("usage")
        assert f"original: {path.stem[:8]}:{number}" in str(new["message"])
    return changed


@pytest.mark.parametrize(
    "content", [session_bytes(make_turns_with_reads(6)), make_odd_session()], ids=["plain", "odd"]
)
def test_a_trim_in_place_changes_only_chosen_outputs(
    config_home: ConfigHome, content: bytes
) -> None:
    """A trim in place replaces only the chosen outputs. Their placeholders refer to the backup.

    The receipt names the session as its own parent. It warns that a running client keeps the old
    conversation, and that the token counts in the file are unchanged.
    """
    path = write_old_session(config_home, content)
    done = trim(config_home, path)
    assert list_backups(config_home) == [Path(done.backup)]
    changed = assert_only_trimmed_lines_differ(path, content, Path(done.backup))
    # The last two of the six turns are protected, so four outputs are trimmed.
    assert len(changed) == 4
    assert (done.kind, done.written, done.tools_trimmed) == ("trim", True, 4)
    assert (done.session_id, done.parent_session_id, done.file, done.parent_file) == (
        *[SESSION] * 2,
        *[str(path)] * 2,
    )
    assert done.tokens_after < done.tokens_before
    assert all(check.ok for check in done.checks)
    assert any("keeps the old conversation" in note for note in done.warnings)
    assert any("token counts in the file are unchanged" in note for note in done.warnings)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_the_backup_equals_the_original_file(config_home: ConfigHome) -> None:
    """The backup is a separate private file with the original bytes, in the session's backup folder."""
    content = make_odd_session()
    path = write_old_session(config_home, content)
    os.chmod(path, 0o644)
    was = path.stat().st_ino
    backup = Path(trim(config_home, path).backup)
    assert backup.read_bytes() == content
    assert backup.stat().st_ino != was
    assert backup.parent == Path(backups.backup_folder(SESSION, config_home.where))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    for folder in (backup.parent, backup.parent.parent, backup.parent.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert ":" not in backup.name


def test_a_trimmed_session_is_linked_again(config_home: ConfigHome) -> None:
    """A trim in place breaks the hard link to the session. Linking all sessions again makes a new link."""
    path = write_old_session(config_home, make_turns_with_reads(8))
    for number in range(2):
        link_sessions.link_all_sessions(config_home.where, lambda: False)
        link = Path(held_links.links_folder(config_home.where), path.parent.name, path.name)
        assert link.samefile(path)
        if not number:
            trim(config_home, path)
            assert not link.exists()
    assert not Path(config_home.config, "resume-hooks", "vault").exists()


def test_a_second_trim_keeps_the_references_of_the_first(config_home: ConfigHome) -> None:
    """A second trim in place keeps the references of the first and refers to its own backup.

    If there is nothing to trim, it writes nothing and does not change the file's time.
    """
    path = write_old_session(config_home, make_turns_with_reads(6))
    first = Path(trim(config_home, path).backup)
    between = path.read_bytes()
    second = trim(config_home, path, force=True, keep_recent=0)
    assert Path(second.backup).read_bytes() == between
    records = [orjson.loads(body) for body in path.read_bytes().splitlines()]
    pointing = {
        n: record["original_session"] for n, record in enumerate(records) if "truncated" in record
    }
    assert [n for n, file in pointing.items() if file == str(first)] == [2, 6, 10, 14]
    assert [n for n, file in pointing.items() if file == second.backup] == [18, 22]
    assert all(
        record["original_index"] == n for n, record in enumerate(records) if "truncated" in record
    )
    between = path.read_bytes()
    again = trim(config_home, path, force=True)
    assert (again.backup, again.written, again.file) == ("", False, "")
    assert (path.read_bytes(), path.stat().st_mtime, len(list_backups(config_home))) == (
        between,
        OLD_TIME,
        2,
    )


def test_planning_a_trim_in_place_writes_nothing(config_home: ConfigHome) -> None:
    """A dry run of a trim in place writes nothing and warns that an open session needs ``--force``."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    os.utime(path)
    before = path.read_bytes()
    done = trim(config_home, path, dry_run=True)
    assert (done.backup, done.written, done.session_id) == ("", False, SESSION)
    assert done.tokens_after < done.tokens_before
    assert "will need --force" in done.warnings[0]
    assert path.read_bytes() == before
    assert not (config_home.config / "resume-hooks").exists()


def test_a_trim_in_place_refuses_an_open_session(config_home: ConfigHome) -> None:
    """A session that was written a moment ago is refused, and the error names a remedy.

    With ``--force``, the session is trimmed.
    """
    path = write_old_session(config_home, make_turns_with_reads(6))
    os.utime(path)
    before = path.read_bytes()
    with pytest.raises(
        ResumeHooksError, match="may be open: it was written 0 seconds ago"
    ) as caught:
        trim(config_home, path)
    assert "--force" in caught.value.remedy
    assert "Quit" in caught.value.remedy
    assert path.read_bytes() == before
    assert list_backups(config_home) == []
    assert trim(config_home, path, force=True).written


def test_a_trim_in_place_refuses_links_renamed_files_and_backups(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A trim in place refuses a symbolic link, a session file that was renamed, and a backup."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    link = path.with_name(f"{session_id(5)}.jsonl")
    link.symlink_to(path)
    other = tmp_path / "other.jsonl"
    shutil.copy(path, other)
    for wrong in (link, other):
        with pytest.raises(UsageError, match="not the main transcript of a session"):
            trim(config_home, wrong, force=True)
    assert link.is_symlink()
    with pytest.raises(UsageError, match="not the main transcript of a session"):
        trim(config_home, Path(trim(config_home, path).backup), force=True)


def test_a_failed_check_keeps_the_session(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a check fails, the session is unchanged and the backup is removed."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    before = path.read_bytes()
    monkeypatch.setattr(TrimEdit, "__call__", lambda _self, record: {**record, "uuid": "another"})
    with pytest.raises(CheckFailed, match="ids, links, timestamps"):
        trim(config_home, path)
    assert path.read_bytes() == before
    assert list_backups(config_home) == []
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_a_session_is_trimmed_by_one_command_at_a_time(config_home: ConfigHome) -> None:
    """While a session is being trimmed in place, a second trim of the same session is refused.

    Other sessions can be trimmed at the same time.
    """
    path, other = (
        write_old_session(config_home, make_turns_with_reads(6)),
        write_old_session(config_home, make_turns_with_reads(6), session_number=2),
    )
    with backups.lock_rewrite(SESSION, config_home.where):
        with pytest.raises(ResumeHooksError, match="already being trimmed in place"):
            trim(config_home, path)
        assert trim(config_home, other).written
    assert trim(config_home, path).written


def test_a_trim_in_place_refuses_a_read_only_session(config_home: ConfigHome) -> None:
    """A read-only session is refused, and the error names the command that makes the file writable."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    path.chmod(0o400)
    before = path.read_bytes()
    with pytest.raises(WriteFailed, match="read-only") as caught:
        trim(config_home, path, force=True)
    assert f"chmod u+w {path}" in caught.value.remedy
    with pytest.raises(WriteFailed, match="read-only"):
        trim(config_home, path, dry_run=True)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o400)
    assert list_backups(config_home) == []


def test_a_backup_is_never_overwritten(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a backup with the same name exists, a trim in place is refused and nothing is changed.

    Two backups can get the same name if the clock is set back.
    """
    path = write_old_session(config_home, make_turns_with_reads(6))
    monkeypatch.setattr(clock, "now", lambda: "2026-01-02T03:04:05.678Z")
    first = Path(trim(config_home, path).backup)
    before = path.read_bytes(), first.read_bytes()
    with pytest.raises(WriteFailed, match="could not be copied"):
        trim(config_home, path, force=True, keep_recent=0)
    assert (path.read_bytes(), first.read_bytes()) == before


def test_a_trim_without_a_backup_leaves_no_folder(config_home: ConfigHome) -> None:
    """A trim that saves too little or finds no conversation leaves no backup folder."""
    folder = Path(backups.backup_folder(SESSION, config_home.where))
    path = write_old_session(config_home, conversation(3))
    assert not trim(config_home, path).written
    assert not folder.exists()
    with pytest.raises(NothingToTrim):
        trim(config_home, write_old_session(config_home, b'{"type":"summary"}\n'))
    assert not folder.exists()
    trim(config_home, write_old_session(config_home, make_turns_with_reads(6)))
    assert len(list(folder.iterdir())) == 2


def _take_lock_repeatedly(where: Where, file_path: str, attempt_count: int) -> None:
    for _ in range(attempt_count):
        try:
            with backups.lock_rewrite(SESSION, where):
                # If two processes had the lock, this would raise ``FileExistsError``.
                os.close(os.open(file_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                os.unlink(file_path)
        except SessionInUse:
            pass


def test_a_lock_that_is_repeatedly_removed_has_one_holder_at_a_time(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If four processes repeatedly take and remove a lock, only one process holds it at any time."""
    fork = multiprocessing.get_context("fork")
    given = (config_home.where, str(tmp_path / "place"), 500)
    holders = [fork.Process(target=_take_lock_repeatedly, args=given) for _ in range(4)]
    for holder in holders:
        holder.start()
    for holder in holders:
        holder.join()
    assert [holder.exitcode for holder in holders] == [0] * 4
    assert not Path(backups.backup_folder(SESSION, config_home.where)).exists()


@pytest.mark.parametrize("file_change", ["shrunk", "rewritten", "replaced", "removed", "a link"])
def test_a_trim_in_place_refuses_a_changing_file(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, file_change: str
) -> None:
    """If the file changes during a trim in place, the trim is refused and the changed file is kept."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    made: list[bytes] = []

    def change_file(*arguments: Any) -> list[Any]:
        if file_change == "shrunk":
            os.truncate(path, 1_000)
        elif file_change == "rewritten":
            path.write_bytes(path.read_bytes().replace(b"seen 3", b"SEEN 3"))
        elif file_change == "replaced":
            os.replace(shutil.copy(path, f"{path}.new"), path)
        else:
            path.rename(f"{path}.away")
            if file_change == "a link":
                path.symlink_to(f"{path}.away")
        made.append(path.read_bytes() if path.exists() else b"")
        return []

    monkeypatch.setattr(trim_in_place, "_check_trimmed_file", change_file)
    with pytest.raises(WriteFailed) as caught:
        trim(config_home, path)
    assert "Nothing was changed" in caught.value.remedy
    assert made == [path.read_bytes() if path.exists() else b""]
    assert not [name for name in path.parent.iterdir() if name.suffix == ".tmp"]


def test_a_trim_in_place_killed_at_any_step_leaves_a_whole_file(config_home: ConfigHome) -> None:
    """A trim in place that is killed at any step leaves a whole file.

    The file is either the original, or the trimmed file with a backup.
    """
    content = session_bytes(make_turns_with_reads(6))
    path = write_old_session(config_home, content)
    outcomes = []

    def prepare_trim() -> Callable[[], object]:
        shutil.rmtree(config_home.config / "resume-hooks", ignore_errors=True)
        write_old_session(config_home, content)
        return lambda: trim(config_home, path)

    for _ in kill_before_each_change(prepare_trim):
        replaced = path.read_bytes() != content
        if replaced:
            assert_only_trimmed_lines_differ(path, content, list_backups(config_home)[0])
            assert list_backups(config_home)[0].read_bytes() == content
        outcomes.append(replaced)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
    write_old_session(config_home, content)
    assert trim(config_home, path).written  # Leftovers don't prevent the next trim.
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_a_trim_in_place_fails_in_a_read_only_folder() -> None:
    """In a read-only folder, a trim in place fails, keeps the file, and leaves no backup."""
    with tempfile.TemporaryDirectory() as folder:
        home = ConfigHome(Path(folder), Path(folder), {"HOME": folder, "CLAUDE_CONFIG_DIR": folder})
        path = write_old_session(home, make_turns_with_reads(6))
        before = path.read_bytes()
        with without_root_rights(Path(folder)):
            path.parent.chmod(0o555)
            with pytest.raises(WriteFailed, match=r"Could not rewrite .*Permission denied"):
                trim(home, path)
            assert list_backups(home) == []
            path.parent.chmod(0o755)
            shutil.rmtree(Path(folder, "resume-hooks"))
            Path(folder).chmod(0o555)
            with pytest.raises(WriteFailed, match=r"not backed up .*Permission denied"):
                trim(home, path)
            Path(folder).chmod(0o755)
        assert path.read_bytes() == before


def test_a_trim_in_place_on_a_full_disk_leaves_the_session_unchanged(
    config_home: ConfigHome,
) -> None:
    """If the disk is full, a trim in place fails, keeps the file, and leaves no backup."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    before = path.read_bytes()

    def trim_and_report_failure() -> None:
        limit_file_size(10_000)
        try:
            trim(config_home, path)
        except WriteFailed as error:
            os._exit(7 if "Nothing was changed" in error.remedy else 8)

    assert exit_code_of_fork(trim_and_report_failure) == 7
    assert path.read_bytes() == before
    assert list_backups(config_home) == []


WRITER_SCRIPT = """
import os, sys, time
path, name, keeps_open = sys.argv[1], sys.argv[2], sys.argv[3] == "open"
was, number, after = os.stat(path).st_ino, 0, 0
held = os.open(path, os.O_WRONLY | os.O_APPEND)
print("ready", flush=True)
while after < 40 and number < 6000:
    body = '{"type":"queue-operation","writer":"%s","n":%d,"content":"%s"}\\n' % (name, number, "y" * (number % 900))
    out = held if keeps_open else os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(out, body.encode())
    if not keeps_open:
        os.close(out)
    number += 1
    after += os.stat(path).st_ino != was
    time.sleep(0.005)
print(number, flush=True)
"""


def test_no_record_of_a_running_writer_is_lost(config_home: ConfigHome, tmp_path: Path) -> None:
    """No record is lost if three programs write to the session while 5 MB of it are trimmed in place."""
    content = session_bytes(make_turns_with_reads(620, 4_000))
    assert len(content) > 5_000_000
    path = write_old_session(config_home, content)
    os.link(path, tmp_path / "old")
    command = [sys.executable, "-c", WRITER_SCRIPT, str(path)]
    writers = [
        subprocess.Popen([*command, name, how], stdout=subprocess.PIPE, text=True)
        for name, how in (("a", "path"), ("b", "open"), ("c", "path"))
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    done = trim(config_home, path, force=True)
    counts = {
        name: int(writer.communicate()[0]) for name, writer in zip("abc", writers, strict=True)
    }
    size = Path(done.backup).stat().st_size
    assert Path(done.backup).read_bytes() == (tmp_path / "old").read_bytes()[:size]
    body = path.read_bytes()
    assert body.endswith(b"\n")
    records = [orjson.loads(part) for part in body.splitlines()]  # Every line is complete.
    for name, count in counts.items():
        assert [record["n"] for record in records if record.get("writer") == name] == list(
            range(count)
        )
    there = set(body.splitlines())
    assert {
        part for part in (tmp_path / "old").read_bytes()[size:].splitlines() if part not in there
    } == set()
    assert sum("truncated" in record for record in records) > 500


def test_a_program_that_keeps_the_file_open_is_mentioned(config_home: ConfigHome) -> None:
    """The receipt warns if another program has the file open and the system can detect that."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    with path.open("ab") as held:
        if append_carryover.is_open_for_writing(held.fileno()) is None:
            pytest.skip("this system does not tell")
        assert trim_in_place.FILE_STILL_OPEN_NOTE in trim(config_home, path, force=True).warnings
    assert (
        trim_in_place.FILE_STILL_OPEN_NOTE
        not in trim(config_home, path, force=True, keep_recent=0).warnings
    )


def test_lines_appended_during_the_rewrite_are_kept(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are appended during a trim in place are added unchanged to the end of the new file.

    One of these lines is incomplete at first.
    """
    path = write_old_session(config_home, make_turns_with_reads(6))
    content, real = path.read_bytes(), trim_in_place._check_trimmed_file
    late = [
        line(user("late", uuid="late1", parent="a5", ts=90)),
        line(assistant("yes", uuid="late2", parent="late1")),
    ]
    writing = []

    def append_lines_during_check(*arguments: Any) -> Any:
        with path.open("ab") as stream:
            stream.write(late[0] + b"\n" + late[1][:40])
        writing.append(threading.Timer(0.1, _append_bytes, args=(path, late[1][40:] + b"\n")))
        writing[0].start()
        return real(*arguments)

    monkeypatch.setattr(trim_in_place, "_check_trimmed_file", append_lines_during_check)
    done = trim(config_home, path)
    writing[0].join()
    assert path.read_bytes().splitlines()[-2:] == late
    assert Path(done.backup).read_bytes() == content


def _append_bytes(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_the_command_line_trims_a_session_in_place(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """The verb ``trim --in-place`` trims a session. Its JSON receipt and its text name the backup.

    A dry run writes nothing. An open session is refused without ``--force``.
    """
    path = write_old_session(config_home, make_turns_with_reads(6))
    dry = document("trim", SESSION, "--in-place", "--dry-run")
    assert (dry["data"]["in_place"], dry["data"]["backup"], dry["data"]["written"]) == (
        True,
        None,
        False,
    )
    found = document("trim", SESSION, "--in-place")["data"]
    assert (found["in_place"], found["written"], found["file"]) == (True, True, str(path))
    assert found["backup"] == str(list_backups(config_home)[0])
    assert found["commands"]["in_client"] == f"/resume {SESSION}"
    os.utime(path)
    done = cli("trim", SESSION, "--in-place", "--keep-recent", "0")
    assert (done.returncode, b"may be open" in done.stderr) == (1, True)
    done = cli("trim", SESSION, "--in-place", "--keep-recent", "0", "--force")
    assert done.returncode == 0
    assert str(list_backups(config_home)[1]).encode() in done.stdout
    assert b"keeps the old conversation" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--force",),
        ("--in-place", "--output-dir", "/"),
        ("--in-place", "--force", "--start", "--dry-run"),
    ],
    ids=["live alone", "elsewhere", "live and start"],
)
def test_contradictory_options_of_a_trim_in_place_are_refused(
    config_home: ConfigHome, cli: Cli, arguments: tuple[str, ...]
) -> None:
    """Contradictory options of a trim in place are refused, and the session is unchanged."""
    path = write_old_session(config_home, make_turns_with_reads(6))
    before = path.read_bytes()
    done = cli("trim", SESSION, *arguments)
    assert (done.returncode, path.read_bytes() == before) == (2, True)


@pytest.mark.e2e
@pytest.mark.parametrize("version", [OLDEST_VERSION, NEWEST_VERSION])
def test_clients_resume_a_session_trimmed_in_place(version: str, tmp_path: Path) -> None:
    """A client that resumes a session trimmed in place sends no trimmed content.

    The client sends the placeholders and all calls with their results.
    """
    client, home = find_client(version), ClientHome(tmp_path / "home")
    path = home.install_session(session_bytes(make_turns_with_reads(6)), SESSION, set_cwd=True)
    os.utime(path, (OLD_TIME, OLD_TIME))
    trim(ConfigHome(home.root, home.config, {"CLAUDE_CONFIG_DIR": str(home.config)}), path)
    with MockApi() as api:
        result = run_print(client, home, api, "go on", resume=SESSION)
        sent = orjson.dumps(api.main_requests()[-1]["messages"]).decode()
    assert result.returncode == 0, result.stderr
    assert sent.count('"tool_use"') == sent.count('"tool_result"') == 6
    assert sent.count("original: 11111111:") == 4
    assert "000003 " not in sent
    assert "000004 " in sent


@pytest.mark.e2e
def test_an_open_session_can_be_trimmed_in_place_with_force(tmp_path: Path) -> None:
    """After a trim in place with ``--force``, the running client continues with its copy in memory.

    ``/resume`` loads the trimmed conversation.
    """
    home = ClientHome(tmp_path / "home")
    path = home.install_session(session_bytes(make_turns_with_reads(6)), SESSION, set_cwd=True)
    environ = {"CLAUDE_CONFIG_DIR": str(home.config)}
    with MockApi() as api:
        tui = Tui(find_client(NEWEST_VERSION), home, api)
        try:
            tui.start(resume=SESSION)
            tui.submit("the first prompt")
            tui.wait_for("Mock reply 1")
            tui.wait_until_idle()
            os.utime(path, (OLD_TIME, OLD_TIME))
            with pytest.raises(
                ResumeHooksError, match=r"the running client [0-9]+ has the session open"
            ):
                trim(ConfigHome(home.root, home.config, environ), path)
            # The mock's answers report very few tokens, so a trim would seem to save nothing.
            done = trim(
                ConfigHome(home.root, home.config, environ), path, force=True, min_savings=0
            )
            assert done.written
            tui.submit("the second prompt")
            tui.wait_for("Mock reply 2")
            tui.wait_until_idle()
            # The client still uses the conversation in its memory.
            assert "000001 " in str(api.main_requests()[-1])
            tui.submit(f"/resume {SESSION}")
            tui.wait_until_idle()
            tui.submit("the third prompt")
            tui.wait_for("Mock reply 3")
            sent = str(api.main_requests()[-1])
        finally:
            tui.close()
            home.end_processes()
    assert "000001 " not in sent
    assert all(
        said in sent
        for said in ("the first prompt", "Mock reply 1", "the second prompt", "Mock reply 2")
    )

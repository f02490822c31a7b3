"""Moving files and folders: whole, exclusive, never through a link; between file systems compared first."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.storage import atomic
from resume_hooks.storage import move as moving
from resume_hooks.storage.move import inside, is_same, move, remove, take, weigh
from resume_hooks.storage.state_file import sync_folder


@pytest.fixture(params=["same", "other"])
def file_systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the two places are on one file system; on two, neither a link nor a rename leads over."""
    if request.param == "other":
        across(monkeypatch)
    return str(request.param)


def across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no rename and no link lead from one folder to another."""

    def only_within(call: str) -> None:
        real: Callable[..., None] = getattr(os, call)

        def guarded(source: str, target: str, **how: object) -> None:
            if os.path.dirname(source) != os.path.dirname(target):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source)
            real(source, target, **how)

        monkeypatch.setattr(os, call, guarded)

    for call in ("rename", "replace", "link"):
        only_within(call)


def a_folder(path: Path) -> Path:
    """A folder with files, a deeper one, an empty one and a link that leads nowhere."""
    (path / "deep" / "er").mkdir(parents=True)
    (path / "empty").mkdir()
    (path / "a.txt").write_bytes(b"a" * 3_000_000)
    (path / "deep" / "er" / "b").write_bytes(b"b")
    (path / "deep" / "link").symlink_to("/nowhere")
    os.utime(path / "a.txt", (1, 1_600_000_000))
    os.chmod(path / "a.txt", 0o600)
    return path


def test_a_file_moves_with_its_time_and_mode(tmp_path: Path, file_systems: str) -> None:
    """It is the same file, elsewhere."""
    source, target = tmp_path / "one" / "f", tmp_path / "two" / "f"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(b"contents")
    os.utime(source, (1, 1_600_000_000))
    move(str(source), str(target))
    assert not source.exists()
    assert (target.read_bytes(), target.stat().st_mtime, target.stat().st_nlink) == (b"contents", 1_600_000_000, 1)
    assert os.listdir(target.parent) == ["f"], file_systems


def test_a_folder_moves_with_all_in_it(tmp_path: Path, file_systems: str) -> None:
    """Files, folders, empty ones, and links as links."""
    source, target = a_folder(tmp_path / "one" / "d"), tmp_path / "two" / "d"
    target.parent.mkdir()
    was = weigh(str(source))
    move(str(source), str(target))
    assert not os.path.lexists(source), file_systems
    assert weigh(str(target)) == was
    assert os.readlink(target / "deep" / "link") == "/nowhere"
    assert (target / "empty").is_dir()
    assert (target / "a.txt").stat().st_mtime == 1_600_000_000


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_what_is_there_is_never_written_over(tmp_path: Path, file_systems: str, taken: str) -> None:
    """Whatever it is; the source stays."""
    source, target = tmp_path / "one" / "f", tmp_path / "two" / "f"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(b"mine")
    ways: dict[str, Callable[[], None]] = {"file": target.touch, "folder": target.mkdir}
    ways.get(taken, lambda: target.symlink_to("/nowhere"))()
    with pytest.raises(FileExistsError):
        move(str(source), str(target))
    assert source.read_bytes() == b"mine", file_systems


def test_of_two_that_move_a_file_one_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other fails and leaves nothing."""
    source = tmp_path / "f"
    source.write_bytes(b"mine")
    link = atomic.name_exclusively

    def and_somebody_else(old: str, new: str) -> bool:
        linked = link(old, new)
        os.rename(old, tmp_path / "theirs")
        return linked

    monkeypatch.setattr(moving, "name_exclusively", and_somebody_else)
    with pytest.raises(FileNotFoundError):
        move(str(source), str(tmp_path / "ours"))
    assert sorted(os.listdir(tmp_path)) == ["theirs"]


def test_a_disk_that_fills_up_leaves_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a copy goes again."""
    across(monkeypatch)
    source, target = a_folder(tmp_path / "one" / "d"), tmp_path / "two" / "d"
    target.parent.mkdir()
    was = weigh(str(source))
    real = moving._copy_file

    def full(old: str, new: str) -> None:
        if old.endswith("/b"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), new)
        real(old, new)

    monkeypatch.setattr(moving, "_copy_file", full)
    with pytest.raises(OSError, match="No space"):
        move(str(source), str(target))
    assert weigh(str(source)) == was
    assert os.listdir(target.parent) == []


def test_a_copy_lasts_before_the_first_file_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, too: two file systems keep no order between them."""
    across(monkeypatch)
    source, target = tmp_path / "one" / "f", tmp_path / "two" / "f"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(b"contents")
    done: list[tuple[str, str]] = []

    def noted(name: str, call: Callable[[str], None]) -> Callable[[str], None]:
        def note(path: str) -> None:
            done.append((name, path))
            call(path)

        return note

    monkeypatch.setattr(os, "unlink", noted("unlink", os.unlink))
    monkeypatch.setattr(moving, "sync_folder", noted("sync", sync_folder))
    move(str(source), str(target))
    assert done[:2] == [("sync", str(target.parent)), ("unlink", str(source))]


def test_a_copy_that_differs_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is removed only after both were compared."""
    across(monkeypatch)
    source, target = tmp_path / "one" / "f", tmp_path / "two" / "f"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(b"mine")
    real = moving._copy_file

    def damaged(old: str, new: str) -> None:
        real(old, new)
        Path(new).write_bytes(b"mink")

    monkeypatch.setattr(moving, "_copy_file", damaged)
    with pytest.raises(OSError, match="Changed while"):
        move(str(source), str(target))
    assert source.read_bytes() == b"mine"
    assert os.listdir(target.parent) == []


def test_what_comes_into_a_folder_while_it_is_copied_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what was copied is removed then: nothing says how much more comes."""
    across(monkeypatch)
    source, target = a_folder(tmp_path / "one" / "d"), tmp_path / "two" / "d"
    target.parent.mkdir()
    real = moving._copy

    def then_another(old: str, new: str) -> None:
        real(old, new)
        (source / "deep" / "late").write_bytes(b"late")

    monkeypatch.setattr(moving, "_copy", then_another)
    with pytest.raises(OSError, match="Changed while it was copied"):
        move(str(source), str(target))
    assert inside(str(source)) == ["a.txt", "deep/er/b", "deep/late", "deep/link"]
    assert os.listdir(target.parent) == []


def test_a_pipe_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would ever write to it: it moves by name, and is not copied."""
    folder = tmp_path / "one" / "d"
    folder.mkdir(parents=True)
    (tmp_path / "two").mkdir()
    os.mkfifo(folder / "pipe")
    assert weigh(str(folder)).files == 1
    move(str(folder), str(tmp_path / "two" / "d"))
    across(monkeypatch)
    with pytest.raises(OSError, match="Not a regular file"):
        move(str(tmp_path / "two" / "d"), str(folder))
    assert os.listdir(tmp_path / "two" / "d") == ["pipe"]


def test_the_same_bytes_and_the_same_kind(tmp_path: Path) -> None:
    """A link is not the file that it leads to."""
    one, two, link = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    link.symlink_to(one)
    assert is_same(str(one), str(two))
    assert not is_same(str(one), str(link))
    two.write_bytes(b"diff")
    assert not is_same(str(one), str(two))


def test_removing_follows_no_link(tmp_path: Path) -> None:
    """What a link in a folder leads to stays."""
    kept, folder = tmp_path / "kept", a_folder(tmp_path / "d")
    kept.mkdir()
    (folder / "deep" / "out").symlink_to(kept)
    remove(str(folder))
    assert kept.is_dir()
    assert not folder.exists()


def digested(monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], object]) -> None:
    """Do something just after the ``at``-th digest, when a comparison is over."""
    real, calls = moving._digest, 0

    def then(path: str) -> bytes:
        nonlocal calls
        found = real(path)
        calls += 1
        if calls == at:
            act()
        return found

    monkeypatch.setattr(moving, "_digest", then)


def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Source, target, and the hidden name beside the source."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path / "one" / "f", tmp_path / "two" / "f", tmp_path / "one" / ".f.moving"


@pytest.mark.parametrize("at", [1, 2])
def test_what_is_appended_by_name_meanwhile_begins_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Whatever the moment: the old one went whole, the new one stays."""
    across(monkeypatch)
    source, target, hidden = places(tmp_path)
    source.write_bytes(b"mine")

    def append() -> None:
        with open(source, "ab") as stream:
            stream.write(b"more")

    digested(monkeypatch, at, append)
    take(str(source), str(target), str(hidden))
    assert (source.read_bytes(), target.read_bytes(), hidden.exists()) == (b"more", b"mine", False)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("way", [take, move])
def test_what_is_appended_to_the_open_file_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, way: Callable[..., None]
) -> None:
    """After the second digest, too: all goes back, with what was added."""
    across(monkeypatch)
    source, target, hidden = places(tmp_path)
    source.write_bytes(b"mine")
    with open(source, "ab", buffering=0) as held:
        digested(monkeypatch, at, lambda: held.write(b"more"))
        with pytest.raises(OSError, match="Changed while"):
            way(str(source), str(target), *([str(hidden)] if way is take else []))
    assert (source.read_bytes(), target.exists(), hidden.exists()) == (b"minemore", False, False)


def test_a_file_of_a_folder_that_grows_after_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are looked at once more before the first is removed."""
    across(monkeypatch)
    source, target, hidden = places(tmp_path)
    a_folder(source)
    with open(source / "a.txt", "ab", buffering=0) as held:
        digested(monkeypatch, 4, lambda: held.write(b"more"))
        with pytest.raises(OSError, match="Changed while it was copied"):
            take(str(source), str(target), str(hidden))
    assert inside(str(source)) == ["a.txt", "deep/er/b", "deep/link"]
    assert (source / "a.txt").stat().st_size == 3_000_004
    assert sorted(os.listdir(tmp_path / "one") + os.listdir(tmp_path / "two")) == ["f"]


def test_a_name_that_was_taken_meanwhile_leaves_the_old_one_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun anew by one program while another went on writing: both are there."""
    across(monkeypatch)
    source, target, hidden = places(tmp_path)
    source.write_bytes(b"mine")
    with open(source, "ab", buffering=0) as held:

        def both() -> None:
            held.write(b"more")
            source.write_bytes(b"new")

        digested(monkeypatch, 2, both)
        with pytest.raises(OSError, match="Changed while"):
            take(str(source), str(target), str(hidden))
    assert (source.read_bytes(), hidden.read_bytes(), target.exists()) == (b"new", b"minemore", False)

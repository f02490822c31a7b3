"""Second names of files: exclusive, never through a link; between file systems compared copies."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.storage import hard_links as moving
from resume_hooks.storage.hard_links import has_same_bytes, link_or_copy, list_files_below


@pytest.fixture(params=["same", "other"])
def file_systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the two places are on one file system.

    On two, neither a link nor a rename leads over.
    """
    if request.param == "other":
        forbid_moves(monkeypatch)
    return str(request.param)


def forbid_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every rename and link between two folders fail."""

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


def places(tmp_path: Path) -> tuple[Path, Path]:
    """Source and target, in folders of their own."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path / "one" / "f", tmp_path / "two" / "f"


def test_a_second_name_has_time_and_mode(tmp_path: Path, file_systems: str) -> None:
    """It leads to the same file, or to one that is the same."""
    source, target = places(tmp_path)
    source.write_bytes(b"contents")
    os.chmod(source, 0o640)
    os.utime(source, (1, 1_600_000_000))
    link_or_copy(str(source), str(target))
    status = target.stat()
    assert (target.read_bytes(), status.st_mtime, status.st_mode & 0o777) == (
        b"contents",
        1_600_000_000,
        0o640,
    )
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"contents", ["f"])
    assert os.path.samefile(source, target) is (file_systems == "same")


def test_a_link_stays_a_link(tmp_path: Path, file_systems: str) -> None:
    """Its target is not read."""
    source, target = places(tmp_path)
    source.symlink_to("/nowhere")
    link_or_copy(str(source), str(target))
    assert os.readlink(target) == "/nowhere", file_systems


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_an_existing_file_is_never_overwritten(
    tmp_path: Path, file_systems: str, taken: str
) -> None:
    """This applies to any kind of file; the source stays."""
    source, target = places(tmp_path)
    source.write_bytes(b"mine")
    ways: dict[str, Callable[[], None]] = {"file": target.touch, "folder": target.mkdir}
    ways.get(taken, lambda: target.symlink_to("/nowhere"))()
    with pytest.raises(FileExistsError):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", ["f"]), file_systems


def test_a_disk_that_fills_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a copy goes again."""
    forbid_moves(monkeypatch)
    source, target = places(tmp_path)
    source.write_bytes(b"mine")

    def full(old: str, new: str) -> None:
        Path(new).write_bytes(b"mi")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), new)

    monkeypatch.setattr(moving, "_copy_file", full)
    with pytest.raises(OSError, match="No space"):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", [])


def test_a_copy_that_differs_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are compared before it has its name."""
    forbid_moves(monkeypatch)
    source, target = places(tmp_path)
    source.write_bytes(b"mine")
    real = moving._copy_file

    def damaged(old: str, new: str) -> None:
        real(old, new)
        Path(new).write_bytes(b"mink")

    monkeypatch.setattr(moving, "_copy_file", damaged)
    with pytest.raises(OSError, match="Changed while"):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", [])


def test_a_pipe_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would ever write to it."""
    forbid_moves(monkeypatch)
    source, target = places(tmp_path)
    os.mkfifo(source)
    with pytest.raises(OSError, match="Not a regular file"):
        link_or_copy(str(source), str(target))


def test_everything_inside_a_folder(tmp_path: Path) -> None:
    """Files and links by their paths from there; what is not a folder is itself."""
    folder = a_folder(tmp_path / "d")
    assert list_files_below(str(folder)) == ["a.txt", "deep/er/b", "deep/link"]
    assert list_files_below(str(folder / "a.txt")) == [""]


def test_the_same_bytes_and_the_same_kind(tmp_path: Path) -> None:
    """A link is not the file that it leads to."""
    one, two, link = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    link.symlink_to(one)
    assert has_same_bytes(str(one), str(two))
    assert not has_same_bytes(str(one), str(link))
    two.write_bytes(b"diff")
    assert not has_same_bytes(str(one), str(two))


def run_after_digest(monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], object]) -> None:
    """Run a function just after the ``at``-th digest, when a comparison is complete."""
    real, calls = moving.hash_file, 0

    def then(path: str) -> str:
        nonlocal calls
        found = real(path)
        calls += 1
        if calls == at:
            act()
        return found

    monkeypatch.setattr(moving, "hash_file", then)

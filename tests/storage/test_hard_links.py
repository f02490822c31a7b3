"""Tests of hard links to files, and of the verified copies that replace them on other file systems."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.storage import hard_links as moving
from resume_hooks.storage.hard_links import has_same_bytes, link_or_copy, list_files_below


@pytest.fixture(params=["same", "other"])
def same_or_other_file_system(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return whether source and target are on the "same" or on "other" file systems.

    On other file systems, links and renames between folders fail.
    """
    if request.param == "other":
        forbid_moves_between_folders(monkeypatch)
    return str(request.param)


def forbid_moves_between_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every rename and link between two folders fail."""

    def forbid_call_between_folders(function_name: str) -> None:
        real: Callable[..., None] = getattr(os, function_name)

        def call_within_folder(source: str, target: str, **options: object) -> None:
            if os.path.dirname(source) != os.path.dirname(target):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source)
            real(source, target, **options)

        monkeypatch.setattr(os, function_name, call_within_folder)

    for call in ("rename", "replace", "link"):
        forbid_call_between_folders(call)


def create_filled_folder(path: Path) -> Path:
    """Create a folder with files, a nested folder, an empty folder and a dangling link."""
    (path / "deep" / "er").mkdir(parents=True)
    (path / "empty").mkdir()
    (path / "a.txt").write_bytes(b"a" * 3_000_000)
    (path / "deep" / "er" / "b").write_bytes(b"b")
    (path / "deep" / "link").symlink_to("/nowhere")
    os.utime(path / "a.txt", (1, 1_600_000_000))
    os.chmod(path / "a.txt", 0o600)
    return path


def source_and_target(tmp_path: Path) -> tuple[Path, Path]:
    """Return a source and a target path, each in its own folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path / "one" / "f", tmp_path / "two" / "f"


def test_a_linked_file_keeps_its_time_and_mode(
    tmp_path: Path, same_or_other_file_system: str
) -> None:
    """The target is the same file as the source, or a copy with the same bytes, time and mode."""
    source, target = source_and_target(tmp_path)
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
    assert os.path.samefile(source, target) is (same_or_other_file_system == "same")


def test_a_symbolic_link_is_copied_as_a_link(
    tmp_path: Path, same_or_other_file_system: str
) -> None:
    """A symbolic link is copied as a link, and its target is not read."""
    source, target = source_and_target(tmp_path)
    source.symlink_to("/nowhere")
    link_or_copy(str(source), str(target))
    assert os.readlink(target) == "/nowhere", same_or_other_file_system


@pytest.mark.parametrize("existing_kind", ["file", "folder", "link"])
def test_an_existing_file_is_never_overwritten(
    tmp_path: Path, same_or_other_file_system: str, existing_kind: str
) -> None:
    """If the target is an existing file, folder or link, an error is raised and nothing is changed."""
    source, target = source_and_target(tmp_path)
    source.write_bytes(b"mine")
    ways: dict[str, Callable[[], None]] = {"file": target.touch, "folder": target.mkdir}
    ways.get(existing_kind, lambda: target.symlink_to("/nowhere"))()
    with pytest.raises(FileExistsError):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", ["f"]), (
        same_or_other_file_system
    )


def test_a_full_disk_leaves_no_partial_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, the partial copy is removed."""
    forbid_moves_between_folders(monkeypatch)
    source, target = source_and_target(tmp_path)
    source.write_bytes(b"mine")

    def copy_to_full_disk(source: str, target: str) -> None:
        Path(target).write_bytes(b"mi")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    monkeypatch.setattr(moving, "_copy_file", copy_to_full_disk)
    with pytest.raises(OSError, match="No space"):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", [])


def test_a_copy_that_differs_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the copy differs from the source, an error is raised and the copy is removed."""
    forbid_moves_between_folders(monkeypatch)
    source, target = source_and_target(tmp_path)
    source.write_bytes(b"mine")
    real = moving._copy_file

    def copy_with_damage(source: str, target: str) -> None:
        real(source, target)
        Path(target).write_bytes(b"mink")

    monkeypatch.setattr(moving, "_copy_file", copy_with_damage)
    with pytest.raises(OSError, match="Changed while"):
        link_or_copy(str(source), str(target))
    assert (source.read_bytes(), os.listdir(target.parent)) == (b"mine", [])


def test_a_pipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is refused, because reading it could wait forever."""
    forbid_moves_between_folders(monkeypatch)
    source, target = source_and_target(tmp_path)
    os.mkfifo(source)
    with pytest.raises(OSError, match="Not a regular file"):
        link_or_copy(str(source), str(target))


def test_files_below_a_folder_are_listed(tmp_path: Path) -> None:
    """Files and links below a folder are listed by relative path.

    If the path is a file, the list contains one empty path.
    """
    folder = create_filled_folder(tmp_path / "d")
    assert list_files_below(str(folder)) == ["a.txt", "deep/er/b", "deep/link"]
    assert list_files_below(str(folder / "a.txt")) == [""]


def test_a_link_differs_from_its_target(tmp_path: Path) -> None:
    """A symbolic link is not equal to its target. Two files with the same bytes are equal."""
    one, two, link = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    link.symlink_to(one)
    assert has_same_bytes(str(one), str(two))
    assert not has_same_bytes(str(one), str(link))
    two.write_bytes(b"diff")
    assert not has_same_bytes(str(one), str(two))


def call_after_hash(
    monkeypatch: pytest.MonkeyPatch, file_number: int, action: Callable[[], object]
) -> None:
    """Call ``action`` immediately after file number ``file_number`` was hashed."""
    real, calls = moving.hash_file, 0

    def hash_file_and_act(path: str) -> str:
        nonlocal calls
        found = real(path)
        calls += 1
        if calls == file_number:
            action()
        return found

    monkeypatch.setattr(moving, "hash_file", hash_file_and_act)

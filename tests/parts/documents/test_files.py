"""Tests of the documents that a handoff writes.

A document is written only on request, completely, and inside the project. A failure never prevents
the child.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from resume_hooks import settings
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import AccompanyingFiles
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents, FreshChildPlan
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.parts.documents.document import list_documents, resolve_out_path, write_documents
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import session_file
from resume_hooks.storage import stored_settings
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session
from tests.redaction.test_handoff import GITHUB_TOKEN, PASSWORD, session_with_secrets

__all__ = ["session_with_secrets"]


@pytest.fixture
def project(config_home: ConfigHome) -> Path:
    """Return the folder of the session's project."""
    folder = config_home.root / "proj"
    folder.mkdir()
    return folder


def plan_handoff(home: ConfigHome, project: Path) -> FreshChildPlan:
    """Write a session of the project and return the plan of its handoff."""
    records = [{**record, "cwd": str(project)} for record in conversation(2)]
    path = write_session(
        home.project(str(project)), SESSION, [*records, custom_title("Fix the parser")]
    )
    return agents.plan_fresh_child(locate.session_file(path), home.where, kind="handoff")


def write_child_and_documents(
    home: ConfigHome, project: Path, out: str = "", **settings: str
) -> AccompanyingFiles:
    """Write a handoff with these settings and return its documents."""
    decided = plan_handoff(home, project)
    for name, value in settings.items():
        stored_settings.store_setting(name, value, home.where)
    receipt = write_child(decided, home.where)
    files = write_documents(decided, receipt, home.where, out)
    assert os.path.exists(receipt.file), "whatever comes of them, the child is there"
    return files


def test_a_handoff_writes_no_document_by_default(config_home: ConfigHome, project: Path) -> None:
    """Without the setting, a handoff writes no document."""
    assert write_child_and_documents(config_home, project) == AccompanyingFiles()
    assert list(project.iterdir()) == []


def test_environment_variables_cannot_set_the_documents_folder(
    config_home: ConfigHome, project: Path
) -> None:
    """An environment variable cannot set the documents' folder, because it may come from a repository."""
    where = Where(
        {
            **config_home.environ,
            "RESUME_HOOKS_HANDOFF_DIR": "_h",
            "CLAUDE_PLUGIN_OPTION_HANDOFF_DIR": "_h",
        }
    )
    decided = plan_handoff(config_home, project)
    assert list_documents(decided, where) == AccompanyingFiles()
    assert any(
        "can't set handoff_dir" in sentence
        for sentence in settings.describe_invalid_settings(where)
    )


def test_handoff_dir_writes_a_document_to_a_new_folder(
    config_home: ConfigHome, project: Path
) -> None:
    """The setting ``handoff_dir`` writes a document to a new folder of the project."""
    files = write_child_and_documents(config_home, project, handoff_dir="_handoffs")
    (path,) = (project / "_handoffs").iterdir()
    assert files == AccompanyingFiles((str(path),), ())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-fix-the-parser-[0-9a-f]{8}\.md", path.name)
    assert os.listdir(project) == ["_handoffs"]


def test_an_absolute_folder_may_be_anywhere(
    config_home: ConfigHome, project: Path, tmp_path: Path
) -> None:
    """An absolute ``handoff_dir``, or one below the home, may be outside the project."""
    (tmp_path / "notes").mkdir()
    for setting, folder in (
        ("~/all", config_home.root / "all"),
        (str(tmp_path / "notes"), tmp_path / "notes"),
    ):
        files = write_child_and_documents(config_home, project, handoff_dir=setting)
        assert files.warnings == ()
        assert os.path.dirname(files.documents[0]) == str(folder)
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    "setting", ["../out", "a/../../out", "link", "link/sub", "inner/../../out", "inner"]
)
def test_a_relative_folder_stays_inside_the_project(
    config_home: ConfigHome, project: Path, setting: str
) -> None:
    """A relative ``handoff_dir`` that leads outside the project gives a warning and no document."""
    outside = config_home.root / "out"
    (outside / "sub").mkdir(parents=True)
    (project / "link").symlink_to(outside)
    (project / "a" / "deep").mkdir(parents=True)
    (project / "inner").symlink_to(project / "a" / "deep")
    files = write_child_and_documents(config_home, project, handoff_dir=setting)
    assert files.documents == ()
    assert ["is outside" in warning or "a link leads" in warning for warning in files.warnings] == [
        True
    ]
    assert sorted(os.listdir(project)) == ["a", "inner", "link"]
    assert list(outside.rglob("*")) == [outside / "sub"]


@pytest.mark.parametrize("kind", ["deep", "file", "/proc"])
def test_an_unwritable_document_gives_a_warning(
    config_home: ConfigHome, project: Path, kind: str
) -> None:
    """If a document cannot be written, the result has a warning and no document.

    No part of the document's path is created.
    """
    if kind == "file":
        (project / "a").write_text("x")
    folder = "/proc/b" if kind == "/proc" else "a/b"
    files = write_child_and_documents(config_home, project, handoff_dir=folder)
    assert files.documents == ()
    assert ["document was not" in warning for warning in files.warnings] == [True]
    assert os.listdir(project) == (["a"] if kind == "file" else [])


def test_a_foreign_transcript_gets_no_document(
    config_home: ConfigHome, project: Path, tmp_path: Path
) -> None:
    """A session outside the project folders gets no document in a relative ``handoff_dir``.

    Such a session could name any folder as its project.
    """
    stray = tmp_path / "stray"
    stray.mkdir()
    path = write_session(
        stray, SESSION, [{**record, "cwd": str(project)} for record in conversation(2)]
    )
    decided = agents.plan_fresh_child(locate.session_file(path), config_home.where, kind="handoff")
    stored_settings.store_setting("handoff_dir", "_handoffs", config_home.where)
    files = write_documents(decided, write_child(decided, config_home.where), config_home.where)
    assert (files.documents, len(files.warnings)) == ((), 1)
    assert list(project.iterdir()) == []


def test_a_missing_project_gets_no_document(config_home: ConfigHome, project: Path) -> None:
    """If the project's folder is missing, the result has a warning, and the folder is not created."""
    project.rmdir()
    files = write_child_and_documents(config_home, project, handoff_dir="_handoffs")
    assert "uncertain which folder" in files.warnings[0]
    assert not project.exists()


def test_a_dry_run_lists_the_documents_that_a_write_returns(
    config_home: ConfigHome, project: Path
) -> None:
    """``list_documents`` returns the documents that a later write returns, and writes none."""
    stored_settings.store_setting("handoff_dir", "_handoffs", config_home.where)
    decided = plan_handoff(config_home, project)
    wanted = list_documents(decided, config_home.where)
    assert list(project.iterdir()) == []
    assert (
        write_documents(decided, write_child(decided, config_home.where), config_home.where)
        == wanted
    )


def test_out_accepts_a_file_or_a_folder(config_home: ConfigHome, project: Path) -> None:
    """``--out`` accepts a file or a folder. In a folder, the document gets its usual name."""
    decided = plan_handoff(config_home, project)
    assert resolve_out_path(str(project / "x.md"), decided, force=False) == str(project / "x.md")
    named = resolve_out_path(str(project), decided, force=False)
    assert os.path.dirname(named) == str(project)
    assert (
        os.path.dirname(resolve_out_path(f"{project}/new/", decided, force=False))
        == f"{project}/new"
    )
    assert not (project / "new").exists()
    stored_settings.store_setting("handoff_dir", ".", config_home.where)
    assert list_documents(decided, config_home.where, named).documents == (named,)


@pytest.mark.parametrize(
    "out_option",
    ["x.txt", "none/x.md", "none/new/", "new", "new.md/", "there.md", ".git", "x.md\0"],
)
def test_out_refuses_unusable_paths(
    config_home: ConfigHome, project: Path, out_option: str
) -> None:
    """``--out`` refuses existing files, files that are not Markdown, and missing folders.

    With ``--force``, an existing file is accepted.
    """
    decided = plan_handoff(config_home, project)
    (project / "there.md").write_text("mine")
    with pytest.raises((UsageError, WriteFailed)):
        resolve_out_path(f"{project}/{out_option}", decided, force=False)
    assert resolve_out_path(f"{project}/there.md", decided, force=True) == f"{project}/there.md"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder.md"])
def test_force_overwrites_only_regular_files(
    config_home: ConfigHome, project: Path, kind: str
) -> None:
    """``--force`` overwrites neither a link nor a pipe.

    If the path is a folder, the document gets its usual name in this folder.
    """
    decided = plan_handoff(config_home, project)
    path = project / "x.md"
    if kind == "folder.md":
        path.mkdir()
        assert resolve_out_path(str(path), decided, force=True).startswith(f"{path}/20")
        return
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(project / "target.md")
    with pytest.raises(WriteFailed, match="left alone"):
        resolve_out_path(str(path), decided, force=True)


def test_a_full_disk_leaves_no_partial_document(
    config_home: ConfigHome, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, the result has a warning, and no partial document or empty folder is left."""
    decided = plan_handoff(config_home, project)
    stored_settings.store_setting("handoff_dir", "_handoffs", config_home.where)
    receipt = write_child(decided, config_home.where)

    def raise_full_disk(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", raise_full_disk)
    files = write_documents(decided, receipt, config_home.where)
    assert [warning.partition(": ")[2][:15] for warning in files.warnings] == ["Could not write"]
    assert os.listdir(project) == []


def test_a_folder_name_may_have_undecodable_bytes(config_home: ConfigHome, project: Path) -> None:
    """``--out`` accepts a folder whose name cannot be decoded."""
    folder = os.fsdecode(os.fsencode(project) + b"/caf\xe9")
    os.mkdir(folder)
    files = write_child_and_documents(config_home, project, out=os.path.join(folder, "x.md"))
    assert files.documents == (os.path.join(folder, "x.md"),)
    assert os.listdir(os.fsencode(folder)) == [b"x.md"]


def test_temporary_files_of_a_killed_handoff_are_removed(
    config_home: ConfigHome, project: Path
) -> None:
    """A handoff deletes the temporary files of an earlier handoff that was killed."""
    (project / "_handoffs").mkdir()
    (project / "_handoffs" / ".resume-hooks-999999999-abcd.tmp").write_text("torn")
    write_child_and_documents(config_home, project, handoff_dir="_handoffs")
    assert [path.suffix for path in (project / "_handoffs").iterdir()] == [".md"]


def test_secrets_are_redacted_in_a_document(
    config_home: ConfigHome, session_with_secrets: str, tmp_path: Path
) -> None:
    """A document contains no secret of the session."""
    stored_settings.store_setting("handoff_dir", "_handoffs", config_home.where)
    contents = ChildContents(build_digest(session_file(session_with_secrets), config_home.where))
    decided = agents.plan_fresh_child(
        session_file(session_with_secrets),
        config_home.where,
        kind="handoff",
        next_step="go on",
        contents=contents,
    )
    receipt = write_child(decided, config_home.where)
    files = write_documents(decided, receipt, config_home.where)
    (path,) = files.documents
    written = Path(path).read_text()
    assert not any(secret in written for secret in (GITHUB_TOKEN, PASSWORD))

"""Tests that project keys are the same as the client's, and that only real session files are found."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resume_hooks import paths, settings
from resume_hooks.paths import (
    Where,
    find_session,
    is_session_file,
    is_session_id,
    project_folders,
    project_key,
    session_id_from_path,
)
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session

LONG_PATH = "/srv/" + "a_long/path.of-many/parts/" * 12
TEXTS_OF_BASIC_PLANE = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=300,
)


def sdk_key(folder: str) -> str:
    """Return the key that the official SDK computes for a folder."""
    # Imported here because the import takes a second in each worker.
    from claude_agent_sdk import project_key_for_directory

    return project_key_for_directory(folder)


@given(TEXTS_OF_BASIC_PLANE)
def test_a_project_key_equals_the_sdks_key(name: str) -> None:
    """The engine computes the same key for a project's folder as the SDK.

    This includes long paths and composed accents. Characters beyond the basic plane are excluded,
    because the SDK counts them as one character, but the client counts them as two.
    """
    assume(
        ".." not in name
        and all(character <= "\uffff" for character in unicodedata.normalize("NFC", name))
    )
    folder = f"/nowhere/{name}"
    assert project_key(folder) == sdk_key(folder)


@pytest.mark.parametrize(
    ("folder", "key"),
    [
        ("/home/user/proj", "-home-user-proj"),
        ("/home/user/my_proj.v2", "-home-user-my-proj-v2"),
        ("/home/user/", "-home-user"),
        ("/", "-"),
        ("/x/caf\u00e9", "-x-caf-"),
        (unicodedata.normalize("NFD", "/x/caf\u00e9"), "-x-caf-"),
        ("/x/\U0001f680", "-x---"),
        ("/x/\u65e5\u672c", "-x---"),
        ("/x/ a", "-x--a"),
    ],
)
def test_a_project_key_has_only_letters_digits_and_dashes(folder: str, key: str) -> None:
    """A project key has a dash in place of each UTF-16 unit that is not an ASCII letter or digit.

    An emoji therefore becomes two dashes.
    """
    assert project_key(folder) == key


def test_the_key_of_an_emoji_differs_from_the_sdks_key() -> None:
    """For a folder with an emoji, the engine computes the client's key, which differs from the SDK's key.

    The client counts UTF-16 units.
    """
    assert project_key("/x/\U0001f680") == "-x---"
    assert sdk_key("/x/\U0001f680") == "-x--"


def test_long_keys_are_cut_and_hashed() -> None:
    """A key with more than 200 characters is cut, followed by a dash and a hash of the whole path."""
    assert len(LONG_PATH) > 200
    key = project_key(LONG_PATH)
    assert key == sdk_key(LONG_PATH)
    assert key[:200] == "".join(c if c.isalnum() else "-" for c in LONG_PATH)[:200]
    assert key[200] == "-"
    assert project_key(LONG_PATH + "x")[:201] == key[:201]
    assert project_key(LONG_PATH + "x") != key


def test_a_link_has_the_key_of_its_target(tmp_path: Path) -> None:
    """The key of a link to a folder is the same as the folder's key."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert project_key(str(tmp_path / "link")) == project_key(str(tmp_path / "real"))


def test_an_invalid_path_has_a_key() -> None:
    """A path with a NUL character or a lone surrogate has a key and causes no error."""
    assert project_key("/a\0b") == "-a-b"
    assert project_key("/a\ud800b") == "-a-b"


def test_long_keys_are_looked_up_by_their_start(config_home: ConfigHome) -> None:
    """The folder of a long path is found by the first 200 characters of its key and the dash after them.

    The hash after the dash is different in different clients.
    """
    key = project_key(LONG_PATH)
    projects = config_home.config / "projects"
    for name in (key, key[:201] + "other", key[:200] + "x", "-unrelated"):
        (projects / name).mkdir()
    assert project_folders(LONG_PATH, config_home.where) == [
        str(projects / key),
        str(projects / (key[:201] + "other")),
    ]
    assert project_folders("/a", config_home.where) == [str(projects / "-a")]


@pytest.mark.parametrize(
    ("name", "config_folder", "is_used"),
    [
        ("Mine_1", "/c", True),
        ("x" * 64, "/c", True),
        ("x" * 65, "/c", False),
        ("", "/c", False),
        ("a/b", "/c", False),
        ("..", "/c", False),
        ("caf\u00e9", "/c", False),
        ("NUL", "/c", False),
        ("lpt1", "/c", False),
        ("Mine", "", False),
    ],
)
def test_a_variable_may_name_the_project_folder(
    name: str, config_folder: str, *, is_used: bool
) -> None:
    """CLAUDE_CODE_PROJECT_DIR_NAME is used if it is a plain name and CLAUDE_CONFIG_DIR is set.

    The folder that is named after the path is searched as well.
    """
    environ = {
        paths.PROJECT_FOLDER_VARIABLE: name,
        "CLAUDE_CONFIG_DIR": config_folder,
        "HOME": "/h",
    }
    assert paths.project_folder_names("/w", Where(environ)) == [*([name] if is_used else []), "-w"]


def test_the_key_of_a_long_path_without_a_folder_has_the_engines_hash(
    config_home: ConfigHome,
) -> None:
    """If a long path has no project folder yet, its key ends with the engine's own hash."""
    expected = [str(config_home.config / "projects" / project_key(LONG_PATH))]
    assert project_folders(LONG_PATH, config_home.where) == expected
    (config_home.config / "projects").rmdir()
    assert project_folders(LONG_PATH, config_home.where) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/h"}, "/h/.claude"),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": ""}, "/h/.claude"),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c/x/"}, "/c/x"),
        ({"CLAUDE_CONFIG_DIR": unicodedata.normalize("NFD", "/caf\u00e9")}, "/caf\u00e9"),
    ],
)
def test_a_variable_overrides_the_home_folder(environ: dict[str, str], expected: str) -> None:
    """CLAUDE_CONFIG_DIR, converted to Unicode NFC as in the client, overrides ``~/.claude``.

    RESUME_HOOKS_HOME overrides the state folder if it is an absolute path.
    """
    where = Where(environ)
    assert where.config == expected
    assert where.projects == f"{expected}/projects"
    assert where.state == f"{expected}/resume-hooks"
    assert Where({**environ, "RESUME_HOOKS_HOME": "/s"}).state == "/s"
    # If the path were relative, sessions would be stored in the folder in which a hook runs.
    for relative in (
        "state",
        "~/state",
        "./s",
    ):
        assert Where({**environ, "RESUME_HOOKS_HOME": relative}).state == f"{expected}/resume-hooks"


@pytest.mark.parametrize(
    "text",
    ["", "x", "1" * 36, "-" * 36, "../" + SESSION[3:], None, 7, b"x", [SESSION], SESSION[:-1], SESSION + "1",
     SESSION.replace("1", "A"), SESSION.replace("-", "_"), SESSION[:-1] + "\n", SESSION[:-1] + "\u0661"],
)  # fmt: skip
def test_text_that_is_not_a_uuid_is_not_a_session_id(text: object) -> None:
    """Only a lower-case UUID is a session id, so that no other text becomes part of a path."""
    assert not is_session_id(text)


@given(st.uuids())
def test_every_uuid_is_a_session_id(any_uuid: object) -> None:
    """Every UUID is a session id and can be the name of a session's file."""
    assert is_session_id(str(any_uuid))
    assert session_id_from_path(f"/any/{any_uuid}.jsonl") == str(any_uuid)


def test_only_regular_named_files_are_sessions(tmp_path: Path) -> None:
    """Only a regular file with a session id as its name is a session.

    Empty files, links, folders and backups are not sessions.
    """
    real = write_session(tmp_path, SESSION, conversation(1))
    assert is_session_file(real)
    (tmp_path / f"{session_id(1)}.jsonl").touch()
    (tmp_path / f"{session_id(2)}.jsonl").symlink_to(real)
    (tmp_path / f"{session_id(3)}.jsonl").mkdir()
    names = [f"{session_id(n)}.jsonl" for n in range(1, 5)]
    names += [
        "agent-a.jsonl",
        f"{SESSION}.orphaned-1.jsonl",
        f"{SESSION}.jsonl.bak",
        f"{SESSION}.JSONL",
        SESSION,
    ]
    for name in names[4:]:
        (tmp_path / name).write_bytes(b"{}\n")
    assert [name for name in names if is_session_file(str(tmp_path / name))] == []


def test_the_newest_copy_of_a_session_is_found(config_home: ConfigHome) -> None:
    """``find_session`` returns the newest file of a session in any project.

    It skips links, empty files and linked folders.
    """
    assert find_session(SESSION, config_home.where) is None
    old = write_session(config_home.project("/a"), SESSION, conversation(1), mtime=1_000)
    assert find_session(SESSION, config_home.where) == old
    new = write_session(config_home.project("/b"), SESSION, conversation(1), mtime=2_000)
    (config_home.project("/c") / f"{SESSION}.jsonl").touch()
    (config_home.project("/d") / f"{SESSION}.jsonl").symlink_to(old)
    elsewhere = Path(
        write_session(config_home.root / "elsewhere", SESSION, conversation(1), mtime=9_000)
    )
    (config_home.config / "projects" / "-e").symlink_to(elsewhere.parent)
    (config_home.config / "projects" / f"{SESSION}.jsonl").write_bytes(b"{}\n")
    assert find_session(SESSION, config_home.where) == new


@pytest.mark.parametrize(
    "hostile_text", ["../../../etc/passwd", "", SESSION + "/../x", "*", SESSION[:8], "\0" * 36]
)
def test_find_session_accepts_only_ids(config_home: ConfigHome, hostile_text: str) -> None:
    """``find_session`` returns None if the text is not a session id."""
    assert find_session(hostile_text, config_home.where) is None


def test_a_private_folder_is_made_or_reused(tmp_path: Path) -> None:
    """``make_private_folder`` creates a folder that only its owner can read, or uses an existing one."""
    folder = paths.make_private_folder(str(tmp_path / "a" / "b"), paths.Where())
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert paths.make_private_folder(folder, paths.Where()) == folder


def write_special_file(path: Path, kind: str) -> None:
    """Create a pipe, a folder, a link to a device, or a link to a missing file at ``path``."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path.with_name("nowhere"))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "dangling"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    """Pipes, devices, folders and broken links are not read, and no attempt to read them hangs.

    ``read_json_object`` returns an empty object for them. The other functions raise OSError.
    """
    path = tmp_path / "settings.json"
    write_special_file(path, kind)
    assert paths.read_json_object(str(path)) == {}
    with pytest.raises(OSError, match=r"regular|No such file|directory"):
        paths.read_regular_file(str(path), 10)
    with pytest.raises(OSError, match=r"regular|No such file|directory|symbolic"):
        paths.open_regular(str(path), follow=False)


def test_a_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    """A link to a regular file is read, because users may link their settings to a folder of dotfiles.

    ``open_regular`` with ``follow=False`` raises an error instead.
    """
    (tmp_path / "dotfiles.json").write_text('{"a": 1}')
    (tmp_path / "link.json").symlink_to(tmp_path / "dotfiles.json")
    assert paths.read_json_object(str(tmp_path / "link.json")) == {"a": 1}
    with pytest.raises(OSError, match="symbolic"):
        paths.open_regular(str(tmp_path / "link.json"), follow=False)


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    """A file that is larger than the limit is not read.

    In this case, ``read_json_object`` returns an empty object.
    """
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    assert paths.read_regular_file(str(path), 8) == b'{"a": 1}'
    with pytest.raises(OSError, match="too large"):
        paths.read_regular_file(str(path), 7)
    path.write_text('{"a": 1}' + " " * paths.MAX_JSON_BYTES)
    assert paths.read_json_object(str(path)) == {}


def test_a_foreign_folder_does_not_become_the_state_folder(tmp_path: Path) -> None:
    """RESUME_HOOKS_HOME is ignored if it names a folder that contains files of another program.

    The plugin would replace these files. A new or an empty folder is accepted.
    """
    site = tmp_path / "site"
    (site / "index").mkdir(parents=True)
    (site / "index.db").write_text("mine")
    (site / "links.jsonl").write_text("mine")
    environ = {"HOME": str(tmp_path), "RESUME_HOOKS_HOME": str(site)}
    assert Where(environ).state == f"{tmp_path}/.claude/resume-hooks"
    assert settings.describe_invalid_settings(Where(environ)) == [
        "RESUME_HOOKS_HOME has no effect: it contains index, which is not a file of resume-hooks"
    ]
    (site / "pending").mkdir()
    (site / "page.html").touch()
    assert settings.describe_invalid_settings(Where(environ)) == [
        "RESUME_HOOKS_HOME has no effect: it contains page.html, which is not a file of resume-hooks"
    ]
    for name in ("new", "empty"):
        own = environ | {"RESUME_HOOKS_HOME": str(tmp_path / name)}
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert Where(own).state == str(tmp_path / name)
        paths.make_private_folder(os.path.join(Where(own).state, "index"), Where(own))
        assert Where(own).state == str(tmp_path / name)
        assert settings.describe_invalid_settings(Where(own)) == []


def test_a_folder_of_the_project_does_not_become_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RESUME_HOOKS_HOME is ignored if it names a folder in the project or in a repository.

    Settings in such a folder could send sessions to other people. Links to it are ignored, too.
    """
    project, other = tmp_path / "unpacked", tmp_path / "clone"
    for folder in (project, other):
        (folder / ".rh" / "pending").mkdir(parents=True)
    (other / ".git").mkdir()
    (tmp_path / "link").symlink_to(project / ".rh")
    monkeypatch.chdir(project)
    home = {"HOME": str(tmp_path), "CLAUDE_PROJECT_DIR": str(project)}
    for named in (project / ".rh", "/proc/self/cwd/.rh", tmp_path / "link", other / ".rh", other):
        environ = home | {"RESUME_HOOKS_HOME": str(named)}
        assert Where(environ).state == f"{tmp_path}/.claude/resume-hooks", named
        (said,) = settings.describe_invalid_settings(Where(environ))
        assert said.endswith("it is in the project or in a repository")
    assert Where(home | {"RESUME_HOOKS_HOME": str(tmp_path / "own")}).state == str(tmp_path / "own")


def test_team_settings_in_a_project_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the config folder is in the project, the team settings in it are ignored.

    The reason is that a repository may set ``CLAUDE_CONFIG_DIR`` and ``HOME``.
    """
    project = tmp_path / "project"
    state = project / ".cc" / "resume-hooks"
    state.mkdir(parents=True)
    (state / "settings.json").write_text(
        '{"version": 1, "team_model_search": "on", "notice_percent": 50}'
    )
    monkeypatch.chdir(project)
    for environ in (
        {"CLAUDE_CONFIG_DIR": "/proc/self/cwd/.cc"},
        {"CLAUDE_CONFIG_DIR": str(project / ".cc")},
    ):
        where = Where({"HOME": str(tmp_path), **environ})
        assert paths.is_state_folder_in_project(where)
        given = settings.load_settings(where)
        assert (given["team_model_search"].value, given["notice_percent"].value) == ("off", 50)
        assert any("are ignored" in said for said in settings.describe_invalid_settings(where))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (project / ".git").mkdir()
    assert paths.is_state_folder_in_project(
        Where({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(project / ".cc")})
    )
    assert not paths.is_state_folder_in_project(
        Where({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "own")})
    )

"""Tests of a scrub in place: no secret is left, and all else is unchanged."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock, seam
from resume_hooks.archive import link_sessions
from resume_hooks.archive.vault import archive_session, commit, delete, restore, trash
from resume_hooks.archive.vault.packs import verify_archived
from resume_hooks.derive import untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.parts.secrets import child, findings
from resume_hooks.parts.secrets.audit import audit_sessions_for_secrets
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.parts.secrets.findings import (
    EXCLUDED_STATE,
    REMAINING_STATE,
    REMOVED_STATE,
    LocationWithSecrets,
    ScrubScope,
)
from resume_hooks.parts.secrets.literals import parse_supplied_secrets
from resume_hooks.parts.secrets.purge import remove_scrub_leftovers, remove_secrets_from_files
from resume_hooks.sessions import held_links, locate
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import archive_folder, vault_folder
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.crashes import kill_before_each_change
from tests.parts.secrets.scrub.planting import (
    SECRETS,
    UNRELATED_SESSION_ID,
    PlantedHome,
    find_secrets_by_path,
    plant_secrets,
    write_old_file,
)
from tests.redaction.test_neighbors import (
    CleanText,
    clean_in_record,
    test_any_neighboring_characters_are_kept,
    test_every_rule_keeps_neighboring_characters,
)

__all__ = [
    "test_any_neighboring_characters_are_kept",
    "test_every_rule_keeps_neighboring_characters",
]


FULL_SCOPE = ScrubScope(
    includes_ancestors=True,
    includes_other_sessions=True,
    includes_file_backups=True,
    includes_documents=True,
    includes_client_files=True,
)

INDEX_PATH_PREFIX = ".claude/resume-hooks/index"
"""The beginning of the path of each file of the index.

A scrub need not remove a secret from the index, which has the words of all sessions, because other
sessions still contain the secret.
"""


def files_with_secrets(home: ConfigHome) -> set[str]:
    """Return the paths of the files with a secret, except the files of the index."""
    return {path for path in find_secrets_by_path(home) if not path.startswith(INDEX_PATH_PREFIX)}


@pytest.fixture
def planted_home(config_home: ConfigHome) -> PlantedHome:
    """Write a home with secrets in every kind of file."""
    return plant_secrets(config_home)


def scrub_in_place(
    home: ConfigHome,
    path: Path,
    scope: ScrubScope = FULL_SCOPE,
    supplied_secrets: Mapping[str, str] | None = None,
) -> list[LocationWithSecrets]:
    """Scrub a session in place and return the locations of its secrets."""
    found = findings.search_all_files(
        session_file(str(path)), home.where, scope=scope, supplied_secrets=supplied_secrets
    )
    return remove_secrets_from_files(found, home.where)


def test_no_secret_is_left_anywhere(planted_home: PlantedHome) -> None:
    """After a scrub with all options, only the client's settings contain a secret.

    The scrub's report contains no secret. A deleted session is searched even if its manifest has no
    digests.
    """
    home, before = planted_home.home, find_secrets_by_path(planted_home.home)
    assert len(before) > 30
    (entry,) = trash.list_trashed_sessions(home.where)
    commit.commit_manifest(
        entry._replace(parts=tuple(part._replace(sha256="") for part in entry.parts)), home.where
    )
    rows = scrub_in_place(home, planted_home.path)
    (entry,) = trash.list_trashed_sessions(home.where)
    assert all(part.sha256 for part in entry.parts)
    assert not [secret for secret in SECRETS if secret in repr(rows)]
    index = [row.location for row in rows if "/resume-hooks/index" in row.location.path]
    assert [(place.kind, Path(place.path).name) for place in index] == [("index", "index.db")]
    assert list(find_secrets_by_path(home)) == [".claude/settings.json"]
    assert [row.location.path for row in rows if row.scrub_state == EXCLUDED_STATE] == [
        str(home.config / "settings.json")
    ]
    assert not [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert {row.location.kind for row in rows if row.scrub_state == REMOVED_STATE} == {
        "transcript",
        "sub-agent",
        "sidecar",
        "copy",
        "backup",
        "trash",
        "vault",
        "note",
        "index",
        "file backup",
        "client",
        *(["document"] if seam.is_installed("documents") else []),
    }
    assert not findings.search_all_files(
        session_file(str(planted_home.path)), home.where, scope=FULL_SCOPE
    ).locations_to_change


def test_hard_links_do_not_keep_a_secret(planted_home: PlantedHome) -> None:
    """After a scrub, no hard link in the plugin's folder leads to the secret.

    If a link is the last copy of a file that the client deleted, the scrub rewrites this copy.
    """
    home, top = planted_home.home, Path(held_links.links_folder(planted_home.home.where))
    lost = top / home.project().name / SESSION / "subagents" / "agent-3.jsonl"
    assert f"{lost.relative_to(home.root)}" in find_secrets_by_path(home)
    scrub_in_place(home, planted_home.path)
    assert not (top / home.project().name / planted_home.path.name).exists()
    assert SECRETS[0] not in lost.read_text()
    link_sessions.link_all_sessions(home.where, lambda: False)
    assert (top / home.project().name / planted_home.path.name).samefile(planted_home.path)
    assert files_with_secrets(home) == {".claude/settings.json"}
    assert [
        path for path in top.rglob("*") if path.is_file() and SECRETS[0] in path.read_text()
    ] == []


def test_a_scrub_changes_only_secrets(planted_home: PlantedHome) -> None:
    """A scrub keeps lines, ids, links, times and modes, and leaves no temporary file.

    Archived and deleted sessions stay valid, and ``untrim`` finds the remaining originals.
    """
    home, paths = planted_home.home, [planted_home.path, *planted_home.children]
    before = [scan_transcript(str(path)) for path in paths]
    lines = planted_home.path.read_bytes().split(b"\n")
    times = [path.stat().st_mtime for path in paths]
    scrub_in_place(home, planted_home.path)
    for old, path in zip(before, paths, strict=True):
        new = scan_transcript(str(path))
        assert [(n.line_number, n.uuid, n.parent_uuid) for n in new.nodes] == [
            (n.line_number, n.uuid, n.parent_uuid) for n in old.nodes
        ]
        assert [n.uuid for n in new.chain] == [n.uuid for n in old.chain]
        assert (new.line_count, new.damaged_lines, new.is_torn) == (
            old.line_count,
            old.damaged_lines,
            old.is_torn,
        )
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path.stat().st_mtime for path in paths] == times
    after = planted_home.path.read_bytes().split(b"\n")
    assert all(
        new == old
        for old, new in zip(lines, after, strict=True)
        if b"secret removed" not in new and b'"content":[]' not in new
    )
    assert not [path for path in home.root.rglob(".resume-hooks-*") if path.suffix == ".tmp"]
    assert not (home.config / "resume-hooks" / "scrub").exists()
    assert not [
        finding for kept in manifest.list_archived(home.where) for finding in verify_archived(kept)
    ]
    (entry,) = trash.list_trashed_sessions(home.where)
    assert SECRETS[0] not in entry.title
    back = restore.execute_restore_plan(restore.plan_restore(entry, home.where), home.where)
    assert not [warning for warning in back.warnings if "changed" in warning]
    plan = untrim.plan_untrim(
        scan_trimmed_session(session_file(str(planted_home.children[0]))), home.where
    )
    assert [missing.line_number for missing in plan.missing_originals] == [3], (
        "the thinking that told a secret is gone for good"
    )


def test_only_the_requested_places_are_scrubbed(planted_home: PlantedHome) -> None:
    """By default, a scrub covers the session, its descendants, its copies and the index.

    Other files with the secret are listed with the option that includes them.
    """
    home = planted_home.home
    rows = scrub_in_place(home, planted_home.path, ScrubScope())
    left = files_with_secrets(home)
    other = f".claude/projects/-home-user-proj/{UNRELATED_SESSION_ID}.jsonl"
    assert left == {
        ".claude/settings.json",
        ".claude/history.jsonl",
        ".claude/paste-cache/ab.txt",
        other,
        f".claude/file-history/{SESSION}/0a@v1",
        *(["docs/2026-01-31-token-11111111.md"] if seam.is_installed("documents") else []),
    }
    outside = {
        str(Path(row.location.path).relative_to(home.root)): row.state_reason
        for row in rows
        if row.scrub_state == EXCLUDED_STATE
    }
    assert set(outside) == left
    assert "--everywhere" in outside[other]
    assert "--backups" in outside[f".claude/file-history/{SESSION}/0a@v1"]


def test_a_scrub_of_a_child_keeps_the_parent(planted_home: PlantedHome) -> None:
    """A scrub of a child lists the child's parent, and changes the parent only with ``ancestors``."""
    home, child = planted_home.home, planted_home.children[1]
    rows = scrub_in_place(home, child, ScrubScope())
    assert str(planted_home.path) in {
        row.location.path for row in rows if row.scrub_state == EXCLUDED_STATE
    }
    assert SECRETS[0].encode() in planted_home.path.read_bytes()
    scrub_in_place(home, planted_home.children[0], ScrubScope(includes_ancestors=True))
    assert SECRETS[0].encode() not in planted_home.path.read_bytes()


def test_an_open_child_is_reported_and_not_changed(planted_home: PlantedHome) -> None:
    """A scrub does not change a child that is open, and prints the command that scrubs this child."""
    live = planted_home.children[1]
    with live.open("ab") as stream:
        stream.write(
            session_bytes([user("go on", uuid="live", parent=None, timestamp=clock.now())])
        )
    rows = scrub_in_place(planted_home.home, planted_home.path)
    (left,) = [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert (left.location.path, f"scrub {live.stem}" in left.state_reason) == (str(live), True)
    assert files_with_secrets(planted_home.home) == {
        str(live.relative_to(planted_home.home.root)),
        ".claude/settings.json",
    }


def test_a_failed_file_does_not_stop_the_scrub_of_others(
    planted_home: PlantedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file cannot be replaced, the scrub reports it and continues with the other files.

    A second scrub removes the remaining secret.
    """
    broken, replace = str(planted_home.children[1]), os.replace

    def refuse_replacement(source: str, target: str, **options: int) -> None:
        if target == broken:
            raise OSError(28, "No space left on device")
        replace(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse_replacement)
        rows = scrub_in_place(planted_home.home, planted_home.path)
    (left,) = [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert left.location.path == broken
    assert "No space left" in left.state_reason
    scrub_in_place(planted_home.home, planted_home.path)
    assert list(find_secrets_by_path(planted_home.home)) == [".claude/settings.json"]


def test_a_named_secret_is_removed_in_all_its_forms(config_home: ConfigHome) -> None:
    """If a named secret matches no rule, its JSON, URL and HTML forms are removed nevertheless."""
    phrase = 'corr"ect/horse <bätt> & staple'
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl",
        session_bytes(
            [
                user(f"it is {phrase}", uuid="u"),
                assistant(f"I noted {phrase}.", uuid="a", parent="u", ts=1),
            ]
        ),
    )
    assert not findings.search_all_files(
        session_file(str(path)), config_home.where
    ).locations_to_change
    scrub_in_place(config_home, path, supplied_secrets=parse_supplied_secrets(phrase.encode()))
    assert b"staple" not in path.read_bytes()
    assert path.read_bytes().count(b"[secret removed: named]") == 2


def test_links_are_neither_followed_nor_changed(config_home: ConfigHome) -> None:
    """A scrub neither follows nor changes links among a session's files."""
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl", session_bytes([user(SECRETS[0], uuid="u")])
    )
    strange = write_old_file(config_home.root / "strange.txt", SECRETS[0].encode())
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "link.txt").symlink_to(strange)
    (path.parent / session_id(5)).symlink_to(config_home.root)
    scrub_in_place(config_home, path)
    assert strange.read_bytes() == SECRETS[0].encode()
    assert b"secret removed" in path.read_bytes()


def test_a_session_only_in_the_vault_is_scrubbed(config_home: ConfigHome) -> None:
    """A session that only exists as an archived copy can be scrubbed, and so can a child of it."""
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl", session_bytes([user(SECRETS[0], uuid="u")])
    )
    archive_session.archive_session(session_file(str(path)), config_home.where)
    path.unlink()
    kept = locate.resolve_locator(SESSION, "/", config_home.where)
    found = findings.search_all_files(kept, config_home.where)
    made = write_child(
        child.plan_scrubbed_child(kept, config_home.where, found.scanning_cleaner),
        config_home.where,
    )
    assert SECRETS[0].encode() not in Path(made.file).read_bytes()
    assert [row.location.kind for row in found.locations_to_change] == ["unpacked", "vault"]
    remove_secrets_from_files(found, config_home.where)
    assert find_secrets_by_path(config_home) == {}
    assert not verify_archived(next(iter(manifest.list_archived(config_home.where))))


def test_a_transcript_outside_the_projects_is_scrubbed(config_home: ConfigHome) -> None:
    """A transcript outside the projects is scrubbed in its own folder."""
    path = write_old_file(
        config_home.root / "mine.jsonl", session_bytes([user(SECRETS[0], uuid="u")])
    )
    scrub_in_place(config_home, path)
    assert b"[secret removed: github-pat]" in path.read_bytes()


def test_a_secret_in_a_tool_name_and_in_a_key_is_removed(config_home: ConfigHome) -> None:
    """A secret in the name of a tool or in a key is removed, even if the secret is nowhere else."""
    name, key = SECRETS[0], SECRETS[1]
    call = {"type": "tool_use", "id": "toolu_1", "name": f"mcp__{name}", "input": {key: "x"}}
    records = [user("hello", uuid="a", parent=None), assistant([call], uuid="b", parent="a")]
    path = write_old_file(config_home.project() / f"{SESSION}.jsonl", session_bytes(records))
    rows = scrub_in_place(config_home, path)
    assert not find_secrets_by_path(config_home)
    assert not [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert b'"mcp__secret_removed"' in path.read_bytes() or b'"secret_removed"' in path.read_bytes()
    assert not findings.search_all_files(
        session_file(str(path)), config_home.where
    ).locations_to_change


def test_partial_secrets_in_a_child_are_removed(config_home: ConfigHome) -> None:
    """A line of a private key, and a password without the words before it, are removed."""
    body = [f"MIIEowIBAAKCAQEA{SECRETS[n][8:36]}{n}" for n in range(3)]
    pem = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"])
    told = [
        user(f"DB_PASSWORD=q7!Zk2pWx and\n{pem}", uuid="a", parent=None),
        assistant("I use q7!Zk2pWx.", uuid="b", parent="a"),
        user(f"decided: {body[1]}", uuid="c", parent="b"),
    ]
    path = write_old_file(config_home.project() / f"{SESSION}.jsonl", session_bytes(told))
    found = findings.search_all_files(session_file(str(path)), config_home.where)
    assert not found.short_secrets
    assert not [
        row
        for row in remove_secrets_from_files(found, config_home.where)
        if row.scrub_state == REMAINING_STATE
    ]
    assert not any(
        part in path.read_bytes() for part in (b"q7!Zk2pWx", *(line.encode() for line in body))
    )


def test_a_printed_secret_is_removed_from_every_record(config_home: ConfigHome) -> None:
    """A password that a command printed is removed from every record."""
    value = "vkWqzTe482Q"
    rows = [
        user("the database refuses us", uuid="a", parent=None),
        tool_use(
            "toolu_1",
            uuid="b",
            parent="a",
            name="Bash",
            tool_input={"command": "printenv DB_PASSWORD"},
        ),
        tool_result("toolu_1", f"{value}\n", uuid="c", parent="b"),
        assistant(f"It still uses {value}, as before.", uuid="d", parent="c"),
    ]
    path = write_old_file(config_home.project() / f"{SESSION}.jsonl", session_bytes(rows))
    assert not [
        row for row in scrub_in_place(config_home, path) if row.scrub_state == REMAINING_STATE
    ]
    assert value.encode() not in path.read_bytes()
    assert not findings.search_all_files(
        session_file(str(path)), config_home.where
    ).locations_to_change


@pytest.fixture(scope="module", name="clean_functions")
def clean_functions() -> list[CleanText]:
    """Return three functions that remove secrets.

    The first two clean a line of a transcript, with and without ASCII escapes. The third cleans any
    text.
    """
    return [
        lambda text: clean_in_record(
            text, lambda line: SecretCleaner().clean_record(line).cleaned_bytes, is_ascii=True
        ),
        lambda text: clean_in_record(
            text, lambda line: SecretCleaner().clean_record(line).cleaned_bytes, is_ascii=False
        ),
        lambda text: SecretCleaner().clean_text(text.encode()).cleaned_bytes.decode(),
    ]


SAMPLE_INTERVAL = 149
"""Every 149th step is tested, or every step if the variable ``RUN_ALL`` is 1."""


def scrub_planted_session(home: ConfigHome) -> list[str]:
    """Scrub the planted session in place and return the places that still have a secret."""
    remove_scrub_leftovers(home.where)
    session = session_file(str(home.project() / f"{SESSION}.jsonl"))
    rows = remove_secrets_from_files(
        findings.search_all_files(session, home.where, scope=FULL_SCOPE), home.where
    )
    return [
        f"{row.location.kind}: {row.state_reason}"
        for row in rows
        if row.scrub_state == REMAINING_STATE
    ]


def bytes_of_client_files(home: ConfigHome) -> dict[str, bytes]:
    """Return the content of each session file that a client reads, by its path."""
    found = [*home.project().glob("*.jsonl"), *home.project().rglob("*/*.*")]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found if path.is_file()}


def test_a_scrub_killed_at_any_step_can_be_repeated(config_home: ConfigHome) -> None:
    """If a scrub is killed at any step, each transcript is complete, either old or new.

    The next scrub removes all secrets and all temporary files.
    """
    plant_secrets(config_home)
    model = config_home.root.with_name("model")
    config_home.root.rename(model)

    def prepare_scrub() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        shutil.copytree(model, config_home.root, symlinks=True)
        return lambda: scrub_planted_session(config_home)

    prepare_scrub()
    before = bytes_of_client_files(config_home)
    assert scrub_planted_session(config_home) == []
    after, tries = bytes_of_client_files(config_home), 0
    for _ in kill_before_each_change(
        prepare_scrub, every=1 if os.environ.get("RUN_ALL") == "1" else SAMPLE_INTERVAL
    ):
        there = bytes_of_client_files(config_home)
        whole = {
            path: (before.get(path), after.get(path))
            for path in there
            if ".resume-hooks-" not in path
        }
        assert [path for path, both in whole.items() if there[path] not in both] == []
        assert scrub_planted_session(config_home) == []
        assert [
            path for path in find_secrets_by_path(config_home) if not path.endswith("settings.json")
        ] == []
        assert bytes_of_client_files(config_home) == after, (
            "a run that ends another one's work comes to the same files"
        )
        tries += 1
    assert tries > 4


ARCHIVED_SESSION_ID = session_id(5)
UNREADABLE_MANIFESTS = (b"{", json.dumps({"version": 99}).encode())


@pytest.fixture
def session_with_secret(config_home: ConfigHome) -> Path:
    """Write two sessions with a secret: one to scrub, and one that is archived and then deleted.

    Return the path of the first.
    """
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl", session_bytes([user(SECRETS[0], uuid="u")])
    )
    other = write_old_file(
        path.with_name(f"{ARCHIVED_SESSION_ID}.jsonl"), session_bytes([user(SECRETS[0], uuid="o")])
    )
    archive_session.archive_session(session_file(str(other)), config_home.where)
    other.unlink()
    return path


def scrub_one_session(home: ConfigHome, path: Path) -> list[LocationWithSecrets]:
    """Scrub a session in place and return the places that still have a secret."""
    remove_scrub_leftovers(home.where)
    rows = remove_secrets_from_files(
        findings.search_all_files(session_file(str(path)), home.where), home.where
    )
    assert SECRETS[0].encode() not in path.read_bytes()
    return [row for row in rows if row.scrub_state == REMAINING_STATE]


def test_a_vault_file_without_a_manifest_is_deleted(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """A file in the vault without a manifest is deleted, because no program could find it."""
    os.unlink(os.path.join(archive_folder(ARCHIVED_SESSION_ID, config_home.where), "manifest.json"))
    assert scrub_one_session(config_home, session_with_secret) == []
    assert find_secrets_by_path(config_home) == {}


@pytest.mark.parametrize("manifest_content", UNREADABLE_MANIFESTS)
def test_files_with_an_unreadable_manifest_stay(
    config_home: ConfigHome, session_with_secret: Path, manifest_content: bytes
) -> None:
    """Files in the vault stay unchanged if their manifest is damaged or has a newer version.

    The scrub and an audit report these files.
    """
    folder = archive_folder(ARCHIVED_SESSION_ID, config_home.where)
    Path(folder, "manifest.json").write_bytes(manifest_content)
    (left,) = scrub_one_session(config_home, session_with_secret)
    assert (left.location.kind, left.location.path, "could not be read" in left.state_reason) == (
        "vault",
        folder,
        True,
    )
    assert any(
        folder in said
        for said in audit_sessions_for_secrets(config_home.where, sessions=None).unreadable_files
    )
    assert audit_sessions_for_secrets(config_home.where, sessions={SESSION}).unreadable_files == []


def test_a_vault_behind_a_link_is_not_changed(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """A vault that is a link is not changed; the scrub and an audit report it."""
    home = vault_folder(config_home.where)
    os.rename(home, config_home.root / "elsewhere")
    os.symlink(config_home.root / "elsewhere", home)
    (left,) = scrub_one_session(config_home, session_with_secret)
    assert (left.location.path, "symbolic link" in left.state_reason) == (home, True)
    assert any(
        home in said
        for said in audit_sessions_for_secrets(
            config_home.where, sessions={SESSION}
        ).unreadable_files
    )


def test_deleted_files_with_a_newer_manifest_are_only_reported(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """If a deleted session's manifest has a newer version, its files are reported and not changed."""
    gone = write_old_file(
        session_with_secret.with_name(f"{session_id(6)}.jsonl"),
        session_bytes([user(SECRETS[0], uuid="g")]),
    )
    delete.move_to_trash(
        delete.plan_delete(session_file(str(gone)), config_home.where), config_home.where
    )
    (note,) = (config_home.config / "resume-hooks" / "trash").rglob("*.json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "version": 99}))
    left = scrub_one_session(config_home, session_with_secret)
    assert {(row.location.kind, "manifest can't be read" in row.state_reason) for row in left} == {
        ("trash", True)
    }
    assert note.parent.name in left[0].location.path


@pytest.mark.parametrize("subfolder", ["subagents", "tool-results", "."])
def test_an_unreadable_folder_is_reported(
    config_home: ConfigHome,
    session_with_secret: Path,
    monkeypatch: pytest.MonkeyPatch,
    subfolder: str,
) -> None:
    """A folder that cannot be listed is reported by a scrub and by an audit."""
    closed = os.path.normpath(session_with_secret.with_suffix("") / subfolder)
    write_old_file(Path(closed) / "a.txt", SECRETS[0].encode())
    deny_listing_of_folder(monkeypatch, closed)
    assert [row.location.path for row in scrub_one_session(config_home, session_with_secret)] == [
        closed
    ]
    assert any(
        closed in said
        for said in audit_sessions_for_secrets(
            config_home.where, sessions={SESSION}
        ).unreadable_files
    )


def test_a_project_folder_behind_a_link_is_reported(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """A project folder that is a link is reported, because it may contain children."""
    linked = session_with_secret.parent.with_name("-elsewhere")
    linked.symlink_to(config_home.root)
    (left,) = scrub_one_session(config_home, session_with_secret)
    assert left.location.path == str(linked)


def test_an_unreadable_folder_outside_the_scrub_is_not_a_failure(
    config_home: ConfigHome, session_with_secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a folder that is not to be scrubbed cannot be listed, the scrub does not fail.

    The scrub reports that the folder was not changed.
    """
    closed = config_home.config / "todos"
    closed.mkdir()
    deny_listing_of_folder(monkeypatch, str(closed))
    assert scrub_one_session(config_home, session_with_secret) == []
    found = findings.search_all_files(session_file(str(session_with_secret)), config_home.where)
    assert [
        row.scrub_state for row in found.locations_with_secrets if row.location.path == str(closed)
    ] == [EXCLUDED_STATE]


def deny_listing_of_folder(monkeypatch: pytest.MonkeyPatch, denied_folder: str) -> None:
    """Make the listing of a folder fail, as it does for a user without permission."""
    scandir = os.scandir

    def refuse_listing(folder: Any = ".") -> Any:
        if not isinstance(folder, int) and os.fspath(folder) == denied_folder:
            raise PermissionError(13, "Permission denied", denied_folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse_listing)


def test_a_secret_in_a_folder_name_is_kept_and_reported(config_home: ConfigHome) -> None:
    """A secret in the name of a session's folder is kept in the records and reported as remaining.

    The client finds a session by the folder that the records name.
    """
    secret = SECRETS[0]
    rows = [{**user(f"use {secret}", uuid="u0", parent=None), "cwd": f"/x/{secret}"}]
    path = Path(write_session(config_home.project(), SESSION, rows))
    os.utime(path, (1_770_000_000,) * 2)
    (row,) = [row for row in scrub_in_place(config_home, path) if row.location.path == str(path)]
    assert (row.scrub_state, "folder's name" in row.state_reason) == (REMAINING_STATE, True)
    assert f"use {secret}" not in path.read_text()
    assert f"/x/{secret}" in path.read_text()

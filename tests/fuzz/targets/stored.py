"""Fuzz targets for manifests and packs of the vault, for bundles, and for secrets."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.packs import verify_archived
from resume_hooks.derive.imports.read_bundle import unpack_bundle
from resume_hooks.errors import ResumeHooksError
from resume_hooks.reading.bundle import export_bundle
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.redaction.texts import find_secrets as secrets_in
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.archived.manifest import find_archived, list_archived
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts.records import parse_record
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.fuzz.draws import Draws
from tests.fuzz.material import draw_line
from tests.fuzz.targets.state import draw_note
from tests.fuzz.targets.target import Target, TryCase, assert_expected_error

SECRET_FRAGMENTS = (
    "ghp_" + "aB3dE5fG7h" * 3 + "aB3dE5", "AKIA" + "Z3Y5X7W2V4U6T1S9", "password=", "token: ",
    "-----BEGIN RSA PRIVATE KEY-----",
    "\\n", "\\u0041", "://user:pa55w0rd@host/", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.",
    "Authorization: Bearer ", '"', "\\",
)  # fmt: skip
OLD_MTIME = 1_000_000_000.0


def make_vault_note_check(home: ConfigHome) -> TryCase:
    """Return a check that a changed manifest in the vault leads only to files of its session.

    Otherwise it is reported as invalid. The client's file of the session stays unchanged.
    """
    path = write_session(home.project(), SESSION, conversation(3), mtime=OLD_MTIME)
    whole = Path(path).read_bytes()
    kept = archive_session(session_file(path), home.where)
    file = Path(kept.folder) / "manifest.json"
    valid_fields = orjson.loads(file.read_bytes())
    outside = home.root / "outside.jsonl"
    outside.write_text("outside")
    places = (
        "projects/../../../outside.jsonl",
        "/etc/passwd",
        f"projects/x/{SESSION}.jsonl",
        "",
        "..",
        "pack-0.xz",
    )

    def try_case(draws: Draws) -> None:
        made = dict(valid_fields)
        if draws.flip_coin():
            part = list(valid_fields["parts"][0])
            part[draws.number_below(len(part))] = draws.pick((draws.pick(places), draws.json(1)))
            made["parts"] = [part]
        file.write_bytes(draw_note(draws, made))
        for found in (find_archived(SESSION, home.where), *list_archived(home.where)):
            if found is None:
                continue
            assert found.session_id == SESSION
            assert isinstance(verify_archived(found), list)
            try:
                there = unpacked_transcript(found, home.where)
            except ResumeHooksError as error:
                assert_expected_error(error)
            else:
                assert there.startswith(str(home.config / "resume-hooks"))
                assert Path(there).read_bytes() != b"outside"
        assert Path(path).read_bytes() == whole
        assert outside.read_text() == "outside"

    return try_case


def make_vault_pack_check(home: ConfigHome) -> TryCase:
    """Return a check that a file in a changed pack is read without a difference or cannot be read."""
    path = write_session(home.project(), SESSION, conversation(8), mtime=OLD_MTIME)
    whole = Path(path).read_bytes()
    packed = archive_session(session_file(path), home.where)
    (file,) = Path(packed.folder).glob("pack-*")
    sound = file.read_bytes()

    def try_case(draws: Draws) -> None:
        raw = bytearray(sound)
        for _ in range(draws.number_below(4)):
            start = draws.number_below(len(raw))
            raw[start : start + 3] = draws.take_bytes(8)
        os.chmod(file, 0o600)
        file.write_bytes(
            bytes(raw[: len(raw) if draws.number_below(4) else draws.number_below(len(raw) + 1)])
        )
        found = find_archived(SESSION, home.where)
        assert found is not None
        try:
            there = unpacked_transcript(found, home.where)
        except ResumeHooksError as error:
            assert_expected_error(error)
            assert verify_archived(found)
        else:
            assert Path(there).read_bytes() == whole
        for left in (home.config / "resume-hooks").rglob("*.jsonl"):
            left.unlink()

    return try_case


def make_secret_check(_: ConfigHome) -> TryCase:
    """Return a check that the spans of found secrets are inside the text.

    A line without secrets keeps its bytes, and a line of JSON remains JSON.
    """

    def try_case(draws: Draws) -> None:
        text = "".join(
            draws.pick(SECRET_FRAGMENTS) if draws.flip_coin() else draws.text()
            for _ in range(1 + draws.number_below(5))
        )
        found = secrets_in(text)
        assert all(0 <= each.start < each.end <= len(text) for each in found)
        cleaned, gone = redact(text)
        assert bool(gone) == bool(found)
        assert gone or cleaned == text
        body = (
            draw_line(draws)
            if draws.flip_coin()
            else orjson.dumps({"type": "user", "uuid": "u", "text": _without_surrogates(text)})
        )
        after, out = redact_line(body)
        assert out or after == body
        before = parse_record(body)
        if before is not None:
            again = parse_record(after)
            assert again is not None
            assert not isinstance(before.get("uuid"), str) or again.get("uuid") == before["uuid"]

    return try_case


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def make_bundle_check(home: ConfigHome) -> TryCase:
    """Return a check that a changed bundle is refused or unpacked into the state folder.

    No temporary file is left.
    """
    path = write_session(home.project(), SESSION, conversation(4))
    sound = b"".join(export_bundle([session_file(path)], home.where, None))
    file = home.root / "bundle.json"
    state = home.config / "resume-hooks"
    rows = sound.split(b"\n")

    def try_case(draws: Draws) -> None:
        made = list(rows)
        for _ in range(draws.number_below(3)):
            place = draws.number_below(len(made))
            changes = (
                draw_line(draws),
                draws.take_bytes(30),
                made[place][: draws.number_below(len(made[place]) + 1)],
                draws.pick(made),
            )
            made[place] = draws.pick(changes)
        file.write_bytes(b"\n".join(made))
        try:
            with unpack_bundle(str(file), home.where) as found:
                assert all(os.path.dirname(each.records_path) == str(state) for each in found)
                assert all(os.path.isfile(each.records_path) for each in found)
        except ResumeHooksError as error:
            assert_expected_error(error)
        assert not [name for name in os.listdir(state) if name.endswith(".tmp")]

    return try_case


TARGETS = (
    Target("vault notes", 400, make_vault_note_check),
    Target("vault packs", 150, make_vault_pack_check),
    Target("secrets", 500, make_secret_check),
    Target("bundles", 700, make_bundle_check),
)

"""A bundle, made on one machine and imported on another: the real client goes on there with what it was sent here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.write import write
from resume_hooks.derive.imports.bundle.bring_in import BundleOptions, ImportedSession, import_sessions
from resume_hooks.derive.imports.bundle.read_bundle import unpacked
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import BundleRedactor, export
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import Family
from tests.e2e.harness.client import NEWEST, ClientHome, ClientVersion, Tui, find_client
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import spoken
from tests.e2e.test_fork import environ_of
from tests.e2e.test_import import INTRODUCTION, said
from tests.e2e.test_trim_corpus import sent
from tests.needs import REPO, corpus, one_in

SAMPLE = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__cli/062a8bdd-4322-4ffa-bc38-3e8b8bfb5a56.jsonl",
)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[ClientHome]:
    """Another machine, with the project under another path."""
    fresh = ClientHome(tmp_path / "elsewhere", project="moved")
    yield fresh
    fresh.reap()


def packed(sessions: list[Path], home: ClientHome) -> bytes:
    """Sessions as a bundle, with redaction as ever."""
    files = [locate.session_file(str(session)) for session in sessions]
    return b"".join(export(files, Where(environ_of(home)), BundleRedactor()))


def brought(bundle: bytes, elsewhere: ClientHome, *, whole: bool) -> list[ImportedSession]:
    """A bundle imported on the other machine."""
    path = elsewhere.root / "x.bundle.json"
    path.write_bytes(bundle)
    environ, folder = environ_of(elsewhere), os.path.realpath(elsewhere.cwd)
    with unpacked(str(path), Where(environ)) as sessions:
        return import_sessions(
            sessions, str(path), BundleOptions(folder, whole, force=False, dry_run=False), Where(environ)
        )


@pytest.mark.parametrize("name", one_in(2, SAMPLE))
def test_it_goes_on_elsewhere(
    name: str, client: ClientVersion, home: ClientHome, elsewhere: ClientHome, api: MockApi
) -> None:
    """A session and its fork, whole: same ids, what is sent is what was sent, the lineage stands."""
    root = home.install_session(corpus() / name, str(uuid.uuid4()), set_cwd=True)
    child = write(fork.plan(locate.session_file(str(root)), Where(environ_of(home))), Where(environ_of(home)))
    bundle = packed([root, Path(child.file)], home)
    before = said(sent(client, home, api, child.session_id))
    shutil.rmtree(home.config / "projects")
    found = brought(bundle, elsewhere, whole=True)
    assert [came.session_id for came in found] == [root.stem, child.session_id]
    request = sent(client, elsewhere, api, child.session_id)
    assert said(request) == before
    rows = Family(Where(environ_of(elsewhere))).lineage(found[1].receipt.file)
    assert [(row.session_id, row.status) for row in rows] == [(root.stem, "present"), (child.session_id, "present")]


def test_its_conversation_alone(
    every_client: ClientVersion, home: ClientHome, elsewhere: ClientHome, api: MockApi
) -> None:
    """As any import: what was said, and first that nobody verified it."""
    root = home.install_session(corpus() / SAMPLE[0], str(uuid.uuid4()), set_cwd=True)
    bundle = packed([root], home)
    before = said(sent(find_client(NEWEST), home, api, root.stem))
    (came,) = brought(bundle, elsewhere, whole=False)
    request = sent(every_client, elsewhere, api, came.session_id)
    assert spoken(request).count(INTRODUCTION) == 1
    assert said(request) == before


def homeless(words: str, home: ClientHome) -> str:
    """A text without anybody's home, in paths and in the names of project folders."""
    return re.sub(rf"{re.escape(str(home.root))}|/home/user|~", "H", re.sub(r"-(?:~|home-user[\w-]*)", "-H", words))


def test_a_shared_page(client: ClientVersion, home: ClientHome, elsewhere: ClientHome, api: MockApi) -> None:
    """One file, written by ``share`` and imported on the other machine, where the client says what was said here."""
    root = home.install_session(corpus() / SAMPLE[0], str(uuid.uuid4()), set_cwd=True)
    page = elsewhere.root / "talk.html"
    ours(home, "share", root.stem, "--yes", "-o", str(page))
    before = said(sent(find_client(NEWEST), home, api, root.stem))
    shutil.rmtree(home.config / "projects")
    made = json.loads(ours(elsewhere, "import", str(page), "--json"))["data"]
    request = sent(client, elsewhere, api, made["session_id"])
    assert spoken(request).count(INTRODUCTION) == 1
    assert str(home.root) not in json.dumps(request)
    assert [homeless(words, home) for _, words in said(request)] == [homeless(words, home) for _, words in before]


def ours(home: ClientHome, *words: str) -> bytes:
    """What the command line prints in a home."""
    command = [sys.executable, "-m", "resume_hooks", *words]
    environ = environ_of(home) | {"PYTHONPATH": str(REPO / "src"), "PATH": os.defpath}
    return subprocess.run(command, env=environ, cwd=home.cwd, check=True, capture_output=True).stdout


def test_the_picker_shows_it(client: ClientVersion, home: ClientHome, elsewhere: ClientHome, api: MockApi) -> None:
    """The client's own list in the new folder has it, and one can go on."""
    root = home.install_session(corpus() / SAMPLE[1], str(uuid.uuid4()), set_cwd=True)
    (came,) = brought(packed([root], home), elsewhere, whole=True)
    with Tui(client, elsewhere, api) as tui:
        tui.start(["--resume", came.session_id], ready=False)
        tui.wait_idle()
        tui.submit("and now")
        tui.wait_for("Mock reply 1")
    assert came.receipt.file.startswith(str(elsewhere.config))

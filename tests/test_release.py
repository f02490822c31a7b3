"""The output of ``make release`` is complete, small, with checksums, and needs a changed version."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.version import __version__
from tests.e2e.harness.client import ClientVersion
from tests.e2e.installed import clone_at
from tools import release

MOST_FILES, MOST_BYTES = 600, 6_000_000
PINNED = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
"""A package and its version, as a lock names them."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is published."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    release.build_release(folder)
    return folder


def test_each_file_is_there_by_its_sum(dist: Path) -> None:
    """Two packages, two archives that unpack to what is next to them, two lists of parts, their sums, the changes."""
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sorted(sums) == [
        "resume-hooks-edition.tar.gz",
        "resume-hooks-plugin.tar.gz",
        "resume-hooks-team.cdx.json",
        "resume-hooks.cdx.json",
        f"resume_hooks-{__version__}-py3-none-any.whl",
        f"resume_hooks-{__version__}.tar.gz",
    ]
    assert sorted(sums) == sorted(
        path.name for path in dist.iterdir() if path.suffix in {".whl", ".gz", ".json"}
    )
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    for kind in ("plugin", "edition"):
        with tarfile.open(dist / f"resume-hooks-{kind}.tar.gz") as archive:
            packed = {Path(each.name): each.size for each in archive if each.isfile()}
        files = {
            path.relative_to(dist / kind): path.stat().st_size for path in files_of(dist / kind)
        }
        assert packed == files


@pytest.mark.parametrize(
    ("name", "lock"), [("resume-hooks", "requirements"), ("resume-hooks-team", "requirements-team")]
)
def test_each_package_of_a_lock_is_in_its_list_of_parts(dist: Path, name: str, lock: str) -> None:
    """CycloneDX, of this very version: every package by its version and by all the hashes that the lock accepts."""
    document = json.loads((dist / f"{name}.cdx.json").read_text(encoding="utf-8"))
    assert (document["bomFormat"], document["metadata"]["component"]["version"]) == (
        "CycloneDX",
        __version__,
    )
    text = (dist / "plugin" / f"{lock}.lock").read_text(encoding="utf-8")
    assert {(each["name"], each["version"]) for each in document["components"]} == set(
        PINNED.findall(text)
    )
    listed = {digest["content"] for each in document["components"] for digest in hashes_of(each)}
    assert listed == set(re.findall(r"--hash=sha256:(\w+)", text))


@pytest.mark.parametrize("kind", ["plugin", "edition"])
def test_a_client_copies_a_small_plugin(dist: Path, kind: str) -> None:
    """The directory rejects a large file, and a client copies every file."""
    sizes = [path.stat().st_size for path in files_of(dist / kind)]
    assert len(sizes) <= MOST_FILES
    assert sum(sizes) <= MOST_BYTES
    assert max(sizes) <= 256 * 1024


def test_no_hook_of_the_edition_looks_at_a_prompt(dist: Path) -> None:
    """Nor at a command of the model's.

    All else of the plugin's hooks is there, and its manifests say the same.
    """
    ours, whole = (
        json.loads((dist / kind / "hooks" / "hooks.json").read_text())
        for kind in ("edition", "plugin")
    )
    assert set(whole["hooks"]) - set(ours["hooks"]) == {"UserPromptSubmit", "PreToolUse"}
    assert ours["modules"] == whole["modules"]
    plugin, market = (
        json.loads((dist / "edition" / ".claude-plugin" / f"{name}.json").read_text())
        for name in ("plugin", "marketplace")
    )
    assert plugin["description"] == market["plugins"][0]["description"] == release.ABOUT
    assert market["plugins"][0]["source"] == "./"


def test_the_changes_of_a_version() -> None:
    """Its section of the changelog, without its heading; without one nothing is released."""
    said = release.changelog_section(__version__)
    assert said.startswith("### Added\n")
    assert "\n## [" not in said
    with pytest.raises(ValueError, match="no section of 9\\.9\\.9"):
        release.changelog_section("9.9.9")


@pytest.mark.e2e
def test_the_tag(client: ClientVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would make it: the manifests agree, and nothing is left to be committed."""
    clone = clone_at(tmp_path / "clone")
    commit = (
        "git",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.com",
        "commit",
        "-qam",
        "all",
        "--allow-empty",
    )
    subprocess.run(commit, cwd=clone, check=True)
    monkeypatch.setattr(release, "ROOT", clone)
    assert f"would create tag resume-hooks--v{__version__}" in release.release_tag(
        client.command[0]
    )


def hashes_of(component: dict[str, Any]) -> list[dict[str, str]]:
    """The digests of a package's files, each as its algorithm and content."""
    (source,) = component["externalReferences"]
    found: list[dict[str, str]] = source["hashes"]
    return found


def files_of(folder: Path) -> list[Path]:
    """Every file below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]

"""Tests that the files which ``make release`` builds are complete and small, and have checksums."""

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
from tests.e2e.installed import clone_repository
from tools import release

MAX_FILES, MAX_BYTES = 600, 6_000_000
PINNED_PACKAGE_PATTERN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
"""A pattern for a package and its version in a lock file."""


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all published files and return their folder."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    release.build_release(folder)
    return folder


def test_each_published_file_has_a_checksum(release_folder: Path) -> None:
    """Each published file has a checksum: packages, archives and lists of components."""
    sums = dict(
        line.split("  ")[::-1] for line in (release_folder / "SHA256SUMS").read_text().splitlines()
    )
    assert sorted(sums) == [
        "resume-hooks-edition.tar.gz",
        "resume-hooks-plugin.tar.gz",
        "resume-hooks-team.cdx.json",
        "resume-hooks.cdx.json",
        f"resume_hooks-{__version__}-py3-none-any.whl",
        f"resume_hooks-{__version__}.tar.gz",
    ]
    assert sorted(sums) == sorted(
        path.name for path in release_folder.iterdir() if path.suffix in {".whl", ".gz", ".json"}
    )
    for name, digest in sums.items():
        assert hashlib.sha256((release_folder / name).read_bytes()).hexdigest() == digest
    for kind in ("plugin", "edition"):
        with tarfile.open(release_folder / f"resume-hooks-{kind}.tar.gz") as archive:
            packed = {Path(each.name): each.size for each in archive if each.isfile()}
        files = {
            path.relative_to(release_folder / kind): path.stat().st_size
            for path in files_below(release_folder / kind)
        }
        assert packed == files


@pytest.mark.parametrize(
    ("name", "lock_file_name"),
    [("resume-hooks", "requirements"), ("resume-hooks-team", "requirements-team")],
)
def test_each_package_of_a_lock_file_is_in_the_component_list(
    release_folder: Path, name: str, lock_file_name: str
) -> None:
    """The CycloneDX list contains each package of a lock file, with its version and its hashes."""
    document = json.loads((release_folder / f"{name}.cdx.json").read_text(encoding="utf-8"))
    assert (document["bomFormat"], document["metadata"]["component"]["version"]) == (
        "CycloneDX",
        __version__,
    )
    text = (release_folder / "plugin" / f"{lock_file_name}.lock").read_text(encoding="utf-8")
    assert {(each["name"], each["version"]) for each in document["components"]} == set(
        PINNED_PACKAGE_PATTERN.findall(text)
    )
    listed = {
        digest["content"] for each in document["components"] for digest in list_package_hashes(each)
    }
    assert listed == set(re.findall(r"--hash=sha256:(\w+)", text))


@pytest.mark.parametrize("kind", ["plugin", "edition"])
def test_the_plugin_and_the_edition_are_small(release_folder: Path, kind: str) -> None:
    """The plugin and the edition have few files, and all these files are small.

    A client copies all files, and the plugin directory rejects large files.
    """
    sizes = [path.stat().st_size for path in files_below(release_folder / kind)]
    assert len(sizes) <= MAX_FILES
    assert sum(sizes) <= MAX_BYTES
    assert max(sizes) <= 256 * 1024


def test_the_edition_has_no_hooks_on_prompts_or_commands(release_folder: Path) -> None:
    """The edition has all hooks of the plugin, except those on prompts and on commands.

    The edition is for Anthropic's plugin directory. Its manifests have the same description.
    """
    ours, whole = (
        json.loads((release_folder / kind / "hooks" / "hooks.json").read_text())
        for kind in ("edition", "plugin")
    )
    assert set(whole["hooks"]) - set(ours["hooks"]) == {"UserPromptSubmit", "PreToolUse"}
    assert ours["modules"] == whole["modules"]
    plugin, market = (
        json.loads((release_folder / "edition" / ".claude-plugin" / f"{name}.json").read_text())
        for name in ("plugin", "marketplace")
    )
    assert (
        plugin["description"] == market["plugins"][0]["description"] == release.EDITION_DESCRIPTION
    )
    assert market["plugins"][0]["source"] == "./"


def test_the_changes_of_a_version_come_from_the_changelog() -> None:
    """``read_changelog_section`` returns the changes of a version, and raises an error if there are none."""
    said = release.read_changelog_section(__version__)
    assert said.startswith("### Added\n")
    assert "\n## [" not in said
    with pytest.raises(ValueError, match="no section of 9\\.9\\.9"):
        release.read_changelog_section("9.9.9")


@pytest.mark.e2e
def test_the_client_names_the_tag_of_a_release(
    client: ClientVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's own command names the tag of a release, but fails if there are uncommitted changes."""
    clone = clone_repository(tmp_path / "clone")
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
    assert f"would create tag resume-hooks--v{__version__}" in release.find_release_tag(
        client.command[0]
    )
    (clone / "README.md").write_text("a change")
    with pytest.raises(subprocess.CalledProcessError):
        release.find_release_tag(client.command[0])


def list_package_hashes(component: dict[str, Any]) -> list[dict[str, str]]:
    """Return the algorithm and the value of each hash in a package's entry."""
    (source,) = component["externalReferences"]
    found: list[dict[str, str]] = source["hashes"]
    return found


def files_below(folder: Path) -> list[Path]:
    """Return every file below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]

"""Build everything that is published, in the folder ``dist``.

These are the wheel, the sdist, the plugin, the plugin's edition for Anthropic's directory, package
lists, checksums and the changes. The plugin's folder is also a marketplace that contains only this
plugin. The edition for the directory has no hooks on prompts or on the model's commands.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hatchling.build

from resume_hooks.system.plugin_files import assemble_plugin
from resume_hooks.version import __version__
from tools.manifests import ROOT

DIST_FOLDER = ROOT / "dist"
LOCK_FILE_BY_PACKAGE_LIST = {
    "resume-hooks.cdx.json": "requirements.lock",
    "resume-hooks-team.cdx.json": "requirements-team.lock",
}
"""The package lists (SBOM), each with the lock file from which it is made."""

OMITTED_HOOK_EVENTS = ("UserPromptSubmit", "PreToolUse")
"""The hooks of the plugin that the edition for Anthropic's directory does not have."""

EDITION_DESCRIPTION = (
    "When a session is full: /handoff continues in a fresh, linked one, /trim in a copy without old tool output; "
    "/search finds anything that was said. Keeps an index and copies of sessions, up to 20 GB (off with one "
    "setting); downloads 80 MB of Python packages once. Reads no prompt; its search asks for permission."
)


def assemble_edition(target: Path) -> None:
    """Assemble the edition for Anthropic's plugin directory in the folder ``target``. Raise WriteFailed."""
    assemble_plugin(str(target))
    # The commands in these folders need the hook on prompts, which the edition does not have.
    for folder in ("commands", ".codex-plugin"):
        shutil.rmtree(target / folder)
    with _rewrite_json(target / "hooks" / "hooks.json") as declared:
        declared["description"] = (
            "Installs the engine; links sessions across /clear; holds what Claude Code may delete"
        )
        for event in OMITTED_HOOK_EVENTS:
            del declared["hooks"][event]
    with _rewrite_json(target / ".claude-plugin" / "plugin.json") as manifest:
        manifest["description"] = EDITION_DESCRIPTION
    with _rewrite_json(target / ".claude-plugin" / "marketplace.json") as shelf:
        shelf["plugins"][0]["description"] = EDITION_DESCRIPTION
    shutil.copyfile(ROOT / "tools" / "edition.md", target / "README.md")


@contextlib.contextmanager
def _rewrite_json(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON document of a file. After the block, write the changed document to the file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    yield document
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_changelog_section(version: str) -> str:
    """Return the section of the changelog about a version. Raise ValueError if there is none."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(
        rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL
    )
    if not found:
        raise ValueError(f"CHANGELOG.md has no section of {version}")
    return found[1].strip() + "\n"


def write_package_list(target: Path, lock: str) -> None:
    """Write the packages that the installer fetches for a lock file, in the format CycloneDX.

    If the tool fails, raise CalledProcessError. The tool prints its message to stderr.
    """
    tool = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "cyclonedx_py",
        "requirements",
        "--output-reproducible",
    ]
    subprocess.run(
        [*tool, "--pyproject", "pyproject.toml", "-o", str(target), lock], cwd=ROOT, check=True
    )
    with _rewrite_json(target) as document:  # The version in pyproject.toml is read from the code.
        document["metadata"]["component"]["version"] = __version__


def build_release(target: Path) -> list[Path]:
    """Build everything in the folder ``target``, and replace the files of an earlier release there.

    Return the files to publish.
    """
    said = read_changelog_section(__version__)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    found = [
        target / make(str(target))
        for make in (hatchling.build.build_wheel, hatchling.build.build_sdist)
    ]
    for name, put in (
        ("plugin", lambda path: assemble_plugin(str(path))),
        ("edition", assemble_edition),
    ):
        put(target / name)
        found.append(
            Path(shutil.make_archive(str(target / f"resume-hooks-{name}"), "gztar", target / name))
        )
    for name, lock in LOCK_FILE_BY_PACKAGE_LIST.items():
        write_package_list(target / name, lock)
        found.append(target / name)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in found]
    (target / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    (target / "CHANGES.md").write_text(said, encoding="utf-8")
    return [*found, target / "SHA256SUMS", target / "CHANGES.md"]


def find_release_tag(client: str) -> str:
    """Return the git tag that the client would set for a release.

    If the client refuses, for example because of uncommitted changes, raise CalledProcessError.
    """
    # The client always writes its settings, so it gets a temporary home.
    with tempfile.TemporaryDirectory() as home:
        command = [client, "plugin", "tag", "--dry-run", str(ROOT)]
        environ = {"HOME": home, "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, env=environ, check=True, stdout=subprocess.PIPE, text=True
        ).stdout


def main() -> None:
    """Build the release and print its files. If a client is installed, also print the release's tag."""
    for path in build_release(DIST_FOLDER):
        print(f"{path.stat().st_size:>9,}  {path.relative_to(ROOT)}")
    client = shutil.which("claude")
    print(find_release_tag(client) if client else "No tag was tried: claude is not on PATH.")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))

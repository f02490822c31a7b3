"""Make a temporary copy of the plugin whose engine only records how it was called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resume_hooks import part_table, questions, seam
from tests.needs import REPO

FAKE_HOOK_SOURCE = """
import os, sys
def main():
    with open(os.environ["REACHED"], "ab") as log:
        log.write(b"NAME %d.%d\\n" % sys.version_info[:2] + sys.stdin.buffer.read())
    print("reply of NAME")
"""
FAKE_MAIN_SOURCE = """
import sys
def start():
    print(" ".join(["engine", *sys.argv[1:]]))
    if sys.argv[1:2] == ["slash"]:
        print(sys.stdin.read())
"""

FAKE_MODULES_BY_RECORDED_NAME = {
    "prompt": "prompt",
    "notice": "context_notice",
    "session": "session",
    "later": "background",
    "fallback": "fallback",
}
"""The modules of ``resume_hooks.hooks`` that the tests replace with fake ones.

The keys are the names that the fake modules record.
"""

FAKE_PART_CALL = "team"
"""The name that the fake module of a part records when a turn has ended."""

# Prefixes of variables that describe this machine's package index and certificates.
INDEX_VARIABLE_PREFIXES = ("PIP_", "UV_", "SSL_CERT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class PluginCopy:
    """A plugin's folder, its data folder, and the environment that a client gives to hooks."""

    root: Path
    data_folder: Path
    env: dict[str, str]

    @property
    def project_folder(self) -> Path:
        """The user's project folder. It contains none of the programs that the tests use."""
        return Path(self.env["HOME"], "project")

    @property
    def engine_calls(self) -> bytes:
        """What the fake engine has recorded: the hook's name, the version of Python, and the input."""
        log = Path(self.env["REACHED"])
        return log.read_bytes() if log.exists() else b""

    def delete_engine_calls(self) -> None:
        """Delete what the fake engine has recorded."""
        Path(self.env["REACHED"]).unlink(missing_ok=True)

    def run_hook(
        self, event: str, stdin: bytes, *shell: str, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the first command for an event in hooks.json with ``/bin/sh -c`` or with ``shell``."""
        return self.run_command_of_event(event, 0, stdin, *shell, **env)

    def run_background_hook(self, stdin: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the hook that runs in the background at a session's start."""
        return self.run_command_of_event("SessionStart", 1, stdin, **env)

    def run_command_of_event(
        self, event: str, hook_index: int, stdin: bytes, *shell: str, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command with this index for an event in hooks.json."""
        hooks = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
        command = hooks[event][0]["hooks"][hook_index]["command"]
        return subprocess.run(
            [*(shell or ("/bin/sh",)), "-c", command],
            input=stdin, env=self.env | env, cwd=self.project_folder, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    def run_engine(
        self, *arguments: str, stdin: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run hooks/engine with a pipe as stdout, as the model's shell does."""
        return subprocess.run(
            [str(self.root / "hooks" / "engine"), *arguments],
            input=stdin, env=self.env | env, cwd=self.project_folder, capture_output=True, timeout=300, check=False,
            encoding="utf-8",
        )  # fmt: skip


def make_plugin(folder: Path) -> PluginCopy:
    """Copy the hooks into a folder whose name needs quotes in a shell.

    The engine runs with the Python of the tests.
    """
    root, data = (
        folder / "plug in $HOME's",
        folder / "config" / "plugins" / "data" / "resume-hooks-inline",
    )
    shutil.copytree(REPO / "hooks", root / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    for lock in ("requirements.lock", "requirements-team.lock"):
        shutil.copy(REPO / lock, root)
    engine = root / "src" / "resume_hooks"
    for package in (engine, engine / "hooks", engine / "storage", engine / "system"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    # These are the installer and the modules that it imports.
    needed = [
        "errors",
        "paths",
        "untrusted_folders",
        "part_table",
        "questions",
        "seam",
        "hooks/end_process",
        "storage/removal",
        "storage/state_file",
    ]
    needed += [
        f"system/{name}" for name in ("bug_log", "bytecode", "invocation", "programs", "text")
    ]
    for name in needed:
        shutil.copy(REPO / "src" / "resume_hooks" / f"{name}.py", engine / f"{name}.py")
    for path in _answering_modules(questions.find_reason_for_database_driver, engine):
        shutil.copy(REPO / path.relative_to(root), path)
    for path in _answering_modules(questions.push_session_after_turn, engine):
        path.write_text(FAKE_HOOK_SOURCE.replace("NAME", FAKE_PART_CALL))
    (engine / "__main__.py").write_text(FAKE_MAIN_SOURCE)
    for name, module in FAKE_MODULES_BY_RECORDED_NAME.items():
        (engine / "hooks" / f"{module}.py").write_text(FAKE_HOOK_SOURCE.replace("NAME", name))
    data.mkdir(parents=True)
    env = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "REACHED": str(folder / "reached"),
        "CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PLUGIN_DATA": str(data),
        "CLAUDE_CONFIG_DIR": str(folder / "config"), "RESUME_HOOKS_PYTHON": sys.executable,
        "CLAUDE_PROJECT_DIR": str(folder / "project"),
    }  # fmt: skip
    env |= {
        key: value for key, value in os.environ.items() if key.startswith(INDEX_VARIABLE_PREFIXES)
    }
    for name in ("bin", "project"):
        (folder / name).mkdir()
    return PluginCopy(root, data, env)


def _answering_modules(question: seam.PartQuestion[Any], engine: Path) -> list[Path]:
    """Create the packages that contain the modules that answer a question. Return the modules' paths."""
    found = [
        row
        for row in part_table.FUNCTIONS_BY_QUESTION.get(question.name, ())
        if seam.is_installed(row[0])
    ]
    for part, _ in found:
        for package in (engine / "parts", engine / "parts" / part):
            package.mkdir(exist_ok=True)
            (package / "__init__.py").touch()
    return [
        engine / "parts" / part / f"{function.partition(':')[0].replace('.', '/')}.py"
        for part, function in found
    ]

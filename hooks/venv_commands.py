"""Run the commands that create a venv.

Only these commands, and ``uv run`` in ``hooks/engine``, use a network. They are started like all
programs of ``resume_hooks.system.programs``, and do not read configuration files from the current
folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
from resume_hooks.system import programs

IMPORT_CHECK_CODE = "import orjson, pydantic, pyperclip, click, rich"
LEND_PACKAGES_CODE = """
import pathlib, sys, sysconfig
ours = sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})
theirs = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
pathlib.Path(ours, "resume-hooks.pth").write_text("".join(f"{path}\\n" for path in theirs), encoding="utf-8")
"""
STEP_LIMIT_SECONDS = 600
UV_COMMAND = ("uv", "--quiet", "--no-config")


FAILURE_REASONS = (
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("Permission denied", "a folder can't be written"),
    ("certificate verify failed", "the certificate of the package index is not trusted"),
    ("connection broken", "the package index can't be reached; check the network and the proxy"),
    (
        "error sending request",
        "the package index can't be reached; check the network and the proxy",
    ),
    ("DO NOT MATCH THE HASHES", "a downloaded package is not the one that was locked"),
    ("No matching distribution", "the package index lacks a package for this Python and system"),
)
"""Texts in the errors of pip, uv and Python, with the reason that each one means.

The first text that occurs in an error gives the reason. The reasons contain no text from the user,
because they are included in bug reports.
"""


class BuildError(Exception):
    """A step of the installation failed or took too long.

    The message names the step. The output of the step was already printed.
    """


def run_step(name: str, *command: str) -> None:
    """Run a command and wait for it.

    The command's output goes to our log. Its error output is added to the log after the command has
    ended. Raise BuildError if the command fails or takes too long.
    """
    try:
        done = programs.run_program(
            command,
            os.environ,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=STEP_LIMIT_SECONDS,
        )
    except OSError as error:
        raise BuildError(f"{name} failed: {type(error).__name__}") from error
    except subprocess.TimeoutExpired as error:
        print_and_return_errors(error.stderr)
        raise BuildError(f"{name} took more than {STEP_LIMIT_SECONDS} seconds") from error
    errors = print_and_return_errors(done.stderr)
    if done.returncode:
        reason = next((f": {reason}" for text, reason in FAILURE_REASONS if text in errors), "")
        raise BuildError(f"{name} failed with exit status {done.returncode}{reason}")


def print_and_return_errors(output: bytes | None) -> str:
    """Print the error output of a step, and return it as text."""
    errors = (output or b"").decode("utf-8", "replace")
    print(errors, end="", file=sys.stderr, flush=True)
    return errors


def venv_python(venv: Path) -> Path:
    """Return the path of the Python in a venv."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def create_venv(venv: Path, creator: str, lock_file: Path) -> None:
    """Create a venv with the packages in a lock file. `creator` is the path of a Python, or "uv"."""
    if creator == "uv":
        run_step("uv venv", *UV_COMMAND, "venv", "--no-project", "--python", ">=3.11", str(venv))
    else:
        run_step("python -m venv", creator, "-I", "-m", "venv", str(venv))
    install_locked_packages(venv, creator, lock_file, IMPORT_CHECK_CODE)


def install_locked_packages(venv: Path, creator: str, lock_file: Path, check_code: str) -> None:
    """Install the packages in a lock file into `venv`, and check with the code `check_code` that they load.

    Only wheels with the locked hashes are installed. Dependencies are not resolved, and no build
    script runs. If the folder `wheels` next to the lock file has all wheels, they come from there,
    else from an index.
    """
    venv_python_path = str(venv_python(venv))
    wheels = lock_file.parent / "wheels"
    if not (wheels.is_dir() and _is_installed_from(wheels, venv_python_path, creator, lock_file)):
        _pip_install(venv_python_path, creator, lock_file)
    run_step("the import check", venv_python_path, "-I", "-c", check_code)


def _is_installed_from(wheels: Path, venv_python_path: str, creator: str, lock_file: Path) -> bool:
    try:
        _pip_install(
            venv_python_path, creator, lock_file, "--no-index", "--find-links", str(wheels)
        )
    except BuildError as error:
        print(f"{wheels} can't be used: {error}", file=sys.stderr)
        return False
    return True


def _pip_install(venv_python_path: str, creator: str, lock_file: Path, *source: str) -> None:
    locked = (
        *source,
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "-r",
        str(lock_file),
    )
    if creator == "uv":
        run_step(
            "uv pip install", *UV_COMMAND, "pip", "install", "--python", venv_python_path, *locked
        )
    else:
        run_step(
            "pip install", venv_python_path, "-I", "-m", "pip", "install", "--no-input", *locked
        )


def create_venv_with_borrowed_packages(venv: Path, tool_python: str) -> None:
    """Create a venv without packages of its own. Its Python loads the packages of the Python `tool_python`."""
    run_step("python -m venv", tool_python, "-I", "-m", "venv", "--without-pip", str(venv))
    run_step("lending packages", tool_python, "-I", "-c", LEND_PACKAGES_CODE, str(venv))
    run_step("the import check", str(venv_python(venv)), "-I", "-c", IMPORT_CHECK_CODE)


def is_venv_damaged(venv: Path) -> bool:
    """Return whether a venv fails to load its packages. The check takes as long as loading them."""
    command = [str(venv_python(venv)), "-I", "-c", IMPORT_CHECK_CODE]
    try:
        null = subprocess.DEVNULL
        return (
            programs.run_program(
                command, os.environ, stdout=null, stderr=null, timeout=STEP_LIMIT_SECONDS
            ).returncode
            != 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return True

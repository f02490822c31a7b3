"""Collect the plugin's own files, from a checkout or an installed wheel, in a folder for the client.

The client copies or reads the whole folder of a plugin, so the folder must not contain a checkout's
``.venv`` and tests.
"""

from __future__ import annotations

import os
import shutil

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, make_private_folder

PLUGIN_NAME = "resume-hooks"
MARKETPLACE_NAME = "resume-hooks"
PLUGIN_FILES = (
    ".claude-plugin",
    ".codex-plugin",
    "hooks",
    "commands",
    "skills",
    "agents",
    "requirements.lock",
    "requirements-team.lock",
    "README.md",
    "LICENSE",
)
"""The plugin's files and folders, except the package in ``src``."""

_ASSEMBLED_PLUGIN_FILE = os.path.join("src", "resume_hooks", "__main__.py")
_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# This is the plugin's folder if this code runs from a checkout or a plugin.
CHECKOUT_FOLDER = os.path.dirname(os.path.dirname(_PACKAGE_FOLDER))

_BUNDLED_FOLDER = os.path.join(_PACKAGE_FOLDER, "_plugin")


def plugin_folder() -> str:
    """Return the folder that contains the plugin's files.

    The client reads from this folder while the plugin is installed.
    """
    return os.path.join(Where().state, "plugin")


def is_installed_package() -> bool:
    """Check whether this code runs from an installed Python package, not from a checkout or a plugin."""
    return not os.path.isfile(os.path.join(CHECKOUT_FOLDER, ".claude-plugin", "plugin.json"))


def is_assembled_plugin(folder: str) -> bool:
    """Check whether ``assemble_plugin`` created this folder."""
    return not os.path.islink(folder) and os.path.isfile(
        os.path.join(folder, _ASSEMBLED_PLUGIN_FILE)
    )


def assemble_plugin(target: str) -> None:
    """Collect the plugin's files in the folder ``target``, replacing an older version.

    Raise WriteFailed on failure. In that case the existing folder is unchanged.
    """
    if os.path.lexists(target) and not is_assembled_plugin(target):
        raise WriteFailed(
            f"{target} is not ours, so it was left alone", "Move it away, or set RESUME_HOOKS_HOME."
        )
    source = _BUNDLED_FOLDER if is_installed_package() else CHECKOUT_FOLDER
    new_folder, old_folder = f"{target}.{os.getpid()}.new", f"{target}.{os.getpid()}.old"
    ignored = shutil.ignore_patterns("__pycache__", "_plugin")
    try:
        make_private_folder(os.path.dirname(target), Where())
        for part in PLUGIN_FILES:
            path = os.path.join(source, part)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(new_folder, part), ignore=ignored)
            else:
                os.makedirs(new_folder, exist_ok=True)
                shutil.copyfile(path, os.path.join(new_folder, part))
        shutil.copytree(
            _PACKAGE_FOLDER, os.path.join(new_folder, "src", "resume_hooks"), ignore=ignored
        )
        # Only the user may read these files. Otherwise doctor reports them as readable by other users.
        for folder, _, names in os.walk(new_folder):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chmod(path, os.stat(path).st_mode & 0o700)
        if os.path.isdir(target):
            os.replace(target, old_folder)
        os.replace(new_folder, target)
    except OSError as error:
        raise WriteFailed(
            f"The plugin could not be assembled at {target}: {_find_first_reason(error)}",
            "Check free space and the permissions of the folder.",
        ) from error
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)
        shutil.rmtree(old_folder, ignore_errors=True)


def _find_first_reason(error: OSError) -> str:
    """Return the reason why an operation failed.

    An error from ``copytree`` contains a list with the source, the target and the reason for each
    file. In this case, return the first reason.
    """
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # For example: "[Errno 28] No space left on device: 'source' -> 'target'"
        message = str(error.args[0][0][2])
        return message.rpartition("] ")[2].partition(": ")[0]
    return error.strerror or str(error)

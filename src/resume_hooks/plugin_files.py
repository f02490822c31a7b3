"""Where the plugin's own files are, in a checkout or in an installed wheel, and how they become one folder."""

from __future__ import annotations

import os
import shutil

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import private_folder, state_home

NAME = "resume-hooks"
MARKETPLACE = "resume-hooks"
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_CHECKOUT = os.path.dirname(os.path.dirname(_PACKAGE))
_BUNDLED = os.path.join(_PACKAGE, "_plugin")


def plugin_folder() -> str:
    """The folder to register with the client: the checkout, or a copy put together from the wheel.

    The client copies a plugin's folder and nothing outside it, so the wheel's copy gets the package under ``src``.
    WriteFailed where it can't be put together.
    """
    if os.path.isfile(os.path.join(_CHECKOUT, ".claude-plugin", "plugin.json")):
        return _CHECKOUT
    target = assembled_folder()
    fresh = f"{target}.{os.getpid()}.new"
    try:
        private_folder(os.path.dirname(target))
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(_BUNDLED, fresh)
        ignored = shutil.ignore_patterns("__pycache__", "_plugin")
        shutil.copytree(_PACKAGE, os.path.join(fresh, "src", "resume_hooks"), ignore=ignored)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(fresh, target)
    except OSError as error:
        raise WriteFailed(f"The plugin's files could not be put into {target}: {error}", "Check the folder.") from error
    return target


def assembled_folder() -> str:
    """Where the files of an installed wheel are put together."""
    return os.path.join(state_home(), "plugin")

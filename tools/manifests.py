"""Make the plugin's manifests from its version, its settings and the data in ``publisher.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resume_hooks import settings
from resume_hooks.system.plugin_files import MARKETPLACE_NAME, PLUGIN_NAME
from resume_hooks.version import __version__

ROOT = Path(__file__).resolve().parent.parent
PLUGIN_DESCRIPTION = (
    "When a session is full: hand it off to a fresh, linked one, trim it, or find anything that was said. Checks each "
    "prompt for its own commands; keeps an index and copies of sessions, up to 20 GB (asks or tells you first; off "
    "with one setting); lets its own reading commands run without a question; downloads 80 MB of Python packages once."
)
MARKETPLACE_DESCRIPTION = (
    "resume-hooks: hand a full Claude Code session off to a fresh, linked one."
)
# The engine's packages are fetched once by pip or uv. The plugin does not use a network otherwise.
NETWORK_HOSTS = [
    "pypi.org",
    "files.pythonhosted.org",
]
KEYWORDS = ["session", "resume", "handoff", "context", "transcript", "lineage"]


def build_manifests() -> dict[Path, str]:
    """Return the text of every manifest by its path."""
    publisher = json.loads((ROOT / "tools" / "publisher.json").read_text(encoding="utf-8"))
    author = _select_filled_fields(publisher.pop("author"))
    both = {
        "name": PLUGIN_NAME,
        "version": __version__,
        "description": PLUGIN_DESCRIPTION,
        "author": author,
        **_select_filled_fields(publisher),
        "license": "MIT",
        "keywords": KEYWORDS,
    }
    ours = both | {
        "displayName": "Resume hooks",
        "network": {"hosts": NETWORK_HOSTS},
        "userConfig": list_plugin_options(),
    }
    codex = both | {"skills": "./skills/", "hooks": "./hooks/codex.json"}
    shelf = {
        "name": MARKETPLACE_NAME,
        "description": MARKETPLACE_DESCRIPTION,
        "owner": author,
        "plugins": [{"name": PLUGIN_NAME, "source": "./", "description": PLUGIN_DESCRIPTION}],
    }
    found = {
        ".claude-plugin/plugin.json": ours,
        ".claude-plugin/marketplace.json": shelf,
        ".codex-plugin/plugin.json": codex,
        "plugin.json": codex,
    }
    return {ROOT / path: json.dumps(document, indent=2) + "\n" for path, document in found.items()}


def _select_filled_fields(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields that the publisher has filled in."""
    return {key: value for key, value in fields.items() if value}


def list_plugin_options() -> dict[str, Any]:
    """Return the settings that the client can ask for and store, each with its type.

    No default is given, because the client's dialog would store it, and a stored value overrides
    the plugin's own settings file although the user did not choose the value.
    """
    return {
        name: {
            "type": _find_option_type(key),
            "title": key.title,
            "description": f"{key.description} Default: {key.default}.",
        }
        for name, key in settings.SETTING_DEFINITIONS.items()
        if key.title
    }


def _find_option_type(setting: settings.SettingDefinition) -> str:
    if setting.parse is settings.parse_switch:
        return "boolean"
    return "number" if isinstance(setting.default, int) else "string"

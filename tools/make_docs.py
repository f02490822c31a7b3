"""Writes what the code itself knows into docs/: the CLI reference and the JSON schemas. A test compares them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from resume_hooks.cli.main import VERBS, cli
from resume_hooks.cli.schema import DATA

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[Path, str]:
    """Every generated file by its path, with the text it must have."""
    docs = ROOT / "docs"
    found = {docs / "cli.md": cli_page()}
    for verb, model in DATA.items():
        schema = json.dumps(model.model_json_schema(), indent=2)
        found[docs / "schema" / f"{verb}.json"] = schema + "\n"
    return found


def cli_page() -> str:
    """The reference: the help of every verb, as a terminal of 100 columns shows it."""
    settings = cli.context_settings | {"terminal_width": 100}
    top = click.Context(cli, info_name="resume-hooks", **settings)
    parts = [
        "# Command line\n\nMade from the code by `make docs`; a test keeps it true.\n",
        f"```\n{cli.get_help(top).rstrip()}\n```\n",
    ]
    for verb in VERBS:
        command = cli.get_command(top, verb)
        if command is None:
            raise KeyError(verb)
        text = command.get_help(click.Context(command, parent=top, info_name=verb, **settings)).rstrip()
        parts.append(f"## {verb}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def main() -> int:
    """Write the pages; 0."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

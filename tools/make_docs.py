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
    parts = [
        "# Command line\n\nMade from the code by `make docs`; a test keeps it true.\n",
        f"```\n{help_of(cli, 'resume-hooks')}\n```\n",
    ]
    with click.Context(cli, info_name="resume-hooks") as context:
        for verb in VERBS:
            command = cli.get_command(context, verb)
            if command is None:
                raise KeyError(verb)
            parts.append(f"## {verb}\n\n```\n{help_of(command, f'resume-hooks {verb}')}\n```\n")
    return "\n".join(parts)


def help_of(command: click.Command, name: str) -> str:
    """The help text of one command."""
    with click.Context(command, info_name=name, terminal_width=100, max_content_width=100) as context:
        return command.get_help(context).rstrip()


def main() -> int:
    """Write the pages; 0."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

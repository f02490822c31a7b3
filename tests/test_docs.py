"""Tests that the documentation agrees with the code.

Generated pages are up to date, and all names in the documentation exist.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click

import resume_hooks
from resume_hooks import seam
from resume_hooks.cli.main import cli
from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.cli.verb_table import FORMER_VERBS, VERB_ALIASES, VERBS
from resume_hooks.errors import UsageError
from resume_hooks.hooks import triggers as triggers_table
from resume_hooks.parts import PART_NAMES
from resume_hooks.paths import STATE_FILE_NAMES
from resume_hooks.settings import SETTING_DEFINITIONS
from tests.needs import REPO

PAGE_GLOBS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "skills/*/*.md",
    "agents/*.md",
    "commands/*.md",
)
PAGE_PATHS = [page for glob in PAGE_GLOBS for page in REPO.glob(glob)]
FIRST_COMMAND_WORDS = {*VERBS, *VERB_ALIASES, *FORMER_VERBS} - {"tag"}
"""First words of commands that the pages show without ``resume-hooks`` before them.

``tag`` is left out, because the pages also use it as the name of a kind of record.
"""
SLASH_WORDS_WITHOUT_COMMANDS = (
    "autocompact",
    "clear",
    "compact",
    "goal",
    "plugin",
    "rename",
    "resume",
    "tmp",
)
"""Further words that the pages show after a slash: commands of the client itself, and a folder."""


def test_generated_pages_are_up_to_date() -> None:
    """The generated pages are up to date: ``make docs`` would not change them.

    The check runs in a separate process, because click keeps its state from earlier calls for help.
    """
    checked = [sys.executable, "-m", "tools.make_docs", "--check"]
    assert (
        subprocess.run(checked, cwd=REPO, capture_output=True, text=True, check=False).stdout == ""
    )


def test_every_verb_has_a_schema() -> None:
    """Every verb has a schema of its JSON output, and the schema has a docstring."""
    assert all(schema_of_verb(verb).__doc__ for verb in VERBS)


def test_every_verb_command_and_trigger_is_documented() -> None:
    """The pages document every verb, command and trigger.

    docs/cli.md contains every verb, the guide every command, and docs/older-clients.md every
    trigger.
    """
    verbs, commands, triggers, readme = (
        (REPO / page).read_text("utf-8")
        for page in ("docs/cli.md", "docs/guide.md", "docs/older-clients.md", "README.md")
    )
    assert not [verb for verb in VERBS if f"\n## {verb}\n" not in verbs]
    assert not [
        row.command
        for row in triggers_table.TRIGGER_TABLE.values()
        if row.command and f"`/{row.command}" not in commands
    ]
    assert not [
        name
        for name in triggers_table.TYPED_VERBS
        if f"`/resume-hooks:{name}" not in triggers or f"`>{name}" not in triggers
    ]
    assert not [
        page for page in ("cli", "guide", "older-clients") if f"(docs/{page}.md)" not in readme
    ]


def test_the_readme_and_the_manifests_say_what_the_plugin_keeps() -> None:
    """The beginning of the README and the manifests say what the plugin reads, keeps and downloads."""
    first_screen = "\n".join((REPO / "README.md").read_text("utf-8").split("\n")[:40])
    for words in (
        "every prompt",
        "config vault off",
        "without a permission prompt",
        "make demo",
        "make test",
        "plugin install",
    ):
        assert words in first_screen
    plugin, market = (
        json.loads((REPO / ".claude-plugin" / f"{name}.json").read_text())
        for name in ("plugin", "marketplace")
    )
    assert plugin["description"] == market["plugins"][0]["description"]
    for text in (first_screen, plugin["description"]):
        for words in ("prompt", "index", "20 GB", "reading commands", "80 MB"):
            assert words in text


def test_each_file_of_the_state_folder_is_documented() -> None:
    """docs/files.md lists only files that can be in the state folder, and does not omit important ones."""
    page = (REPO / "docs" / "files.md").read_text("utf-8")
    table = page.partition("## In the state folder")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    names = {path.partition("/")[0] for cell in cells for path in re.findall(r"`([^`]+)`", cell)}
    told = {name for name in names if not name.startswith(("-", ".", "errors.log."))}
    assert told <= STATE_FILE_NAMES
    assert {"links.jsonl", "settings.json", "vault", "data-rules.json"} <= told


def test_the_demo_runs(tmp_path: Path) -> None:
    """``make demo`` prints every step and the child's opening, and does not use the real home."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    demo = [sys.executable, str(REPO / "demo" / "run.py")]
    shown = subprocess.run(
        demo, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    opening = shown.stdout.split("== What the fresh session opens with", 1)[1].split("\n== ", 1)[0]
    assert "Next step, as the user put it:\nfix the flaky upload test" in opening
    assert not list(tmp_path.iterdir())


def test_relative_links_of_the_pages_lead_to_files() -> None:
    """Relative links in the README and in docs/ lead to existing files."""
    for page in (REPO / "README.md", *(REPO / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            part = re.match(r"\.\./src/resume_hooks/parts/(\w+)/", target)
            if part and not seam.is_installed(part[1]):
                continue
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_name_in_architecture_exists() -> None:
    """Each file, module and name in backticks in docs/architecture.md exists."""
    text = (REPO / "docs" / "architecture.md").read_text("utf-8")
    text = re.sub(r"<!-- made by.*?<!-- end -->", "", text, flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", text)
    assert len(spans) > 100
    nowhere = (
        "trim/rulez.py",
        "doctor.check_instalation",
        "REVISIONS",
        "hooks/guards",
        "hooks.guess",
    )
    assert not any(map(is_span_valid, nowhere))
    missing = [span for span in spans if not is_span_valid(span)]
    assert not missing or is_any_part_missing()


REPOSITORY_PATHS = [
    path
    for folder in ("agents", "commands", "hooks", "skills", "src", "tests", "tools")
    for path in (REPO / folder, *(REPO / folder).rglob("*"))
    if "__pycache__" not in path.parts
]
DEFINITION_PATTERN = re.compile(
    r"^ *(?:def|class) (\w+)|^ *(\w+)(?:: [^=\n]+)? = |^    (\w+): ", re.MULTILINE
)
"""A pattern that finds the names of functions, classes, values and fields."""


def is_span_valid(span: str) -> bool:
    """Check whether the file, module or name in backticks exists.

    An ordinary word, which names none of them, is valid too.
    """
    name = span.split(maxsplit=1)[0].rstrip("/")
    if not re.fullmatch(r"\w[\w./*-]*", name) or re.fullmatch(r"[a-z-]+", name):
        return True
    if name in STATE_FILE_NAMES or name in SETTING_DEFINITIONS:
        return True
    name = name.removeprefix("resume_hooks.")
    paths = (name, f"{name}.py", f"{name.replace('.', '/')}.py", name.replace(".", "/"))
    if any(path.match(each) for path in REPOSITORY_PATHS for each in paths):
        return True
    module, _, value = name.rpartition(".")
    files = ["*.py"]
    if module:
        place = module.replace(".", "/")
        files = [f"{place}.py", f"{place}/__init__.py"]
    for path in REPOSITORY_PATHS:
        if path.is_file() and any(path.match(each) for each in files):
            found = DEFINITION_PATTERN.findall(path.read_text("utf-8"))
            if any(value in names for names in found):
                return True
    return False


def test_the_version_is_the_same_everywhere() -> None:
    """The package, the plugins and the changelog have the same version."""
    for client in (".claude-plugin", ".codex-plugin"):
        manifest = json.loads((REPO / client / "plugin.json").read_text("utf-8"))
        assert manifest["version"] == resume_hooks.__version__
    assert f"## [{resume_hooks.__version__}]" in (REPO / "CHANGELOG.md").read_text("utf-8")


def test_the_lock_pins_every_dependency() -> None:
    """Each runtime dependency has a version and a hash in requirements.lock."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (REPO / "requirements.lock").read_text("utf-8")
    for requirement in project["dependencies"]:
        name = re.match(r"[a-z-]+", requirement)
        assert name is not None
        assert f"\n{name.group()}==" in lock
    assert "http" not in lock


def test_every_message_in_troubleshooting_is_in_the_source() -> None:
    """Every message in docs/troubleshooting.md is in the source.

    An ellipsis in a message replaces a variable part.
    """
    paths = [*(REPO / "src").rglob("*.py"), *(REPO / "hooks").glob("*")]
    source = "\n".join(path.read_text("utf-8") for path in paths if path.is_file())
    # Join a string literal with the literal that continues it on the next line.
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    quoted = re.findall(
        r'"([^"\n]+(?:\n[^"\n]+)?)"', (REPO / "docs" / "troubleshooting.md").read_text("utf-8")
    )
    assert len(quoted) > 15
    pieces = [
        piece.strip()
        for words in quoted
        for piece in " ".join(words.split()).split("…")
        if piece.strip()
    ]
    # This message comes from the client, so it is not in our source.
    ours = [piece for piece in pieces if piece != "UserPromptSubmit operation blocked by hook"]
    missing = [piece for piece in ours if piece not in source]
    assert missing == [] or not all(seam.is_installed(part) for part in PART_NAMES)


def test_every_command_in_the_pages_is_valid() -> None:
    """Every command in the pages is valid, and the settings that it names exist."""
    failed = []
    for page in PAGE_PATHS:
        for shown in code_pieces_of_page(page):
            line = re.sub(
                r"<[a-z ]+>|\[[a-z ]+\]|FILE", "5e12a303", re.split(r" +(?:#|>>?|\|) ", shown)[0]
            )
            found = re.fullmatch(r"(resume-hooks |sh [\w/]*hooks/engine )?(?!VERB)(\w.*)", line)
            if (
                found
                and (found[1] or found[2].partition(" ")[0] in FIRST_COMMAND_WORDS)
                and not is_valid_command(shlex.split(found[2]))
            ):
                failed.append(f"{page.name}: {shown}")
    assert not failed or is_any_part_missing()


def code_pieces_of_page(page: Path) -> list[str]:
    """Return the lines of a page's code blocks, and its spans in backticks without line breaks."""
    text = re.sub(r"<!-- made by.*?<!-- end -->", "", page.read_text("utf-8"), flags=re.DOTALL)
    block = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    lines = "\n".join(block.findall(text)).split("\n")
    return [
        *lines,
        *(" ".join(span.split()) for span in re.findall(r"`([^`]+)`", block.sub("", text))),
    ]


def is_valid_command(words: list[str]) -> bool:
    """Check whether the command line accepts these words. A single verb is always valid."""
    if (
        words[0] == "config"
        and words[1:]
        and words[1] not in {*SETTING_DEFINITIONS, "KEY", "--help"}
    ):
        return False
    try:
        verb = cli.get_command(click.Context(cli), words[0])
        if verb and len(words) > 1 and words[1] != "--help":
            verb.make_context(words[0], words[1:])
    except (click.ClickException, UsageError):
        return False
    return verb is not None


def is_any_part_missing() -> bool:
    """Check whether an optional part is missing. The commands of a missing part cannot be checked."""
    return not all(seam.is_installed(part) for part in PART_NAMES)


def test_every_trigger_in_the_pages_exists() -> None:
    """Every trigger in the pages exists."""
    rows = triggers_table.TRIGGER_TABLE.values()
    bare = {row.command for row in rows if row.command}
    long = {*triggers_table.TRIGGER_TABLE, *(name for row in rows for name in row.aliases)}
    failed = []
    for page in PAGE_PATHS:
        for shown in re.findall(
            r"`([/>](?:resume-hooks:)?[a-z][a-z-]*)(?:`| )", page.read_text("utf-8")
        ):
            name = shown[1:].removeprefix("resume-hooks:")
            known = {*bare, *SLASH_WORDS_WITHOUT_COMMANDS} if shown == f"/{name}" else long
            failed += [f"{page.name}: {shown}"] if name not in known else []
    assert not failed or is_any_part_missing()

"""Tests that hooks and verbs import few modules, because a user waits for every import."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from resume_hooks.cli.verb_table import VERBS
from resume_hooks.transcripts.transcript import MAX_QUICK_SCAN_BYTES
from tests.builders import SESSION, ConfigHome, conversation, user, write_session
from tests.needs import REPO

PROGRAMS_BY_NAME = {
    "prompt": "from resume_hooks.hooks.prompt import main; main()",
    "session": "from resume_hooks.hooks.session import main; main()",
    "notice": "from resume_hooks.hooks.context_notice import main; main()",
    "fallback": "from resume_hooks.hooks.fallback import main; main()",
    "chooser": "import resume_hooks.cli.picker.screen; print(1)",
    "cli": "from resume_hooks.cli.main import run; run(sys.argv[1:])",
    "search": "from resume_hooks.cli.plain_search import answer_plain_search; answer_plain_search(sys.argv[1:])",
    "helps": "from resume_hooks.cli.main import run; [run([verb, '--help']) for verb in sys.argv[1:]]",
}

INDEX_MODULES = {"sqlite3", "tantivy"}
"""The modules of the index, which only a search and a few verbs may import."""

HEAVY_MODULES = {
    "pydantic",
    "rich",
    "importlib.metadata",
    "asyncio",
    "email",
    "http",
    "urllib.request",
    "logging",
    *INDEX_MODULES,
}
"""Modules that hooks and quick verbs must not import."""

SLOW_MODULES = {
    "pathlib",
    "inspect",
    "typing_extensions",
    "argparse",
    "ctypes",
    "pyperclip",
    "shutil",
    "tempfile",
}
"""Modules that take 2 to 20 ms to import. The fastest hooks do not import them."""


def list_imported_modules(
    home: ConfigHome, program: str, event: object = None, *arguments: str
) -> set[str]:
    """Run a hook or a verb, and return the modules that it imports.

    Modules that Python has already imported at its start are left out.
    """
    script = (
        f"import sys; sys.path.insert(0, {str(REPO / 'src')!r}); before = set(sys.modules)\n"
        f"{PROGRAMS_BY_NAME[program]}\nprint(*(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, *arguments],
        input=json.dumps(event).encode(),
        env={**home.environ, "RESUME_HOOKS_CLIPBOARD": "none"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout or program in {"session", "notice"}
    return set(done.stderr.decode().split())


def add_parent_packages(modules: set[str]) -> set[str]:
    """Return the modules and all packages that contain them."""
    return {name.rsplit(".", cut)[0] for name in modules for cut in range(name.count(".") + 1)}


def list_modules_imported_by_prompt(home: ConfigHome, prompt: str) -> set[str]:
    """Return the modules that are imported to answer a trigger, and their packages."""
    write_session(home.project(), SESSION, conversation(2))
    return add_parent_packages(
        list_imported_modules(home, "prompt", {"session_id": SESSION, "prompt": prompt})
    )


@pytest.mark.parametrize("prompt", [">session", ">help", "/resume-hooks:session"])
def test_the_fastest_triggers_import_little(config_home: ConfigHome, prompt: str) -> None:
    """``>session`` and ``>help`` import no parser, no transcript code and no command line."""
    found = list_modules_imported_by_prompt(config_home, prompt)
    assert found.isdisjoint(
        HEAVY_MODULES
        | SLOW_MODULES
        | {"click", "orjson", "subprocess", "signal", "dataclasses", "uuid"}
    )
    ours = {name for name in found if name.startswith("resume_hooks")}
    assert ours <= {
        f"resume_hooks{name}"
        for name in (
            "", ".paths", ".errors", ".settings", ".system", ".system.text", ".system.clipboard", ".system.copy_result",
            ".hooks", ".system.invocation", ".hooks.prompt", ".hooks.hook_replies", ".hooks.triggers",
            ".hooks.plain_cards", ".part_table", ".untrusted_folders", ".seam", ".shared_values",
        )
    }  # fmt: skip


@pytest.mark.parametrize("prompt", [">resume", ">handoff go on", ">lineage", ">trim", ">trim yes"])
def test_triggers_that_read_a_transcript_import_little(
    config_home: ConfigHome, prompt: str
) -> None:
    """Triggers that read a transcript import no third-party package except orjson.

    Only ``>trim`` and ``>resume`` import the modules for a trim.
    """
    assert_transcript_imports(config_home, prompt)


def assert_transcript_imports(config_home: ConfigHome, prompt: str) -> None:
    """Check the imports of a trigger whose answer needs the transcript."""
    found = list_modules_imported_by_prompt(config_home, prompt)
    trims = {
        name
        for name in found
        if name.startswith(("resume_hooks.derive.trim", "resume_hooks.hooks.trim"))
    }
    assert bool(trims - {"resume_hooks.hooks.triggers"}) is prompt.startswith((">trim", ">resume"))
    assert found.isdisjoint(HEAVY_MODULES | {"click", "pathlib", "argparse", "pyperclip", "ctypes"})


def test_the_search_trigger_imports_only_the_index_and_orjson(config_home: ConfigHome) -> None:
    """``>search`` imports orjson and the index, but no other slow module such as multiprocessing."""
    found = list_modules_imported_by_prompt(config_home, ">search prompt")
    assert {"orjson", *INDEX_MODULES} <= found
    assert found.isdisjoint(
        (HEAVY_MODULES - INDEX_MODULES)
        | {"click", "argparse", "pyperclip", "ctypes", "multiprocessing"}
    )


def test_the_end_of_a_turn_loads_little(config_home: ConfigHome) -> None:
    """The hook that runs after a turn imports little, because the client waits for it.

    It imports the comparison of sizes only if the context is nearly full.
    """
    write_session(config_home.project(), SESSION, conversation(2))
    found = add_parent_packages(
        list_imported_modules(
            config_home, "notice", {"session_id": SESSION, "hook_event_name": "Stop"}
        )
    )
    assert "orjson" in found
    assert found.isdisjoint(
        HEAVY_MODULES
        | {
            "click",
            "resume_hooks.derive.compare",
            "resume_hooks.derive.trim",
            "resume_hooks.reading.digest",
        }
    )


@pytest.mark.parametrize("program", ["session", "fallback"])
def test_hooks_before_the_engine_import_only_the_standard_library(
    config_home: ConfigHome, program: str
) -> None:
    """Hooks that can run before the engine is installed import only the standard library.

    They also import no module of the plugin that needs a newer version than Python 3.9.
    """
    event = {
        "session_id": SESSION,
        "prompt": ">session",
        "hook_event_name": "SessionEnd",
        "reason": "clear",
    }
    found = list_imported_modules(config_home, program, event)
    foreign = (
        {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names) - {"resume_hooks"}
    )
    assert foreign == set()
    assert add_parent_packages(found).isdisjoint(
        {
            "resume_hooks.settings",
            "resume_hooks.sessions.locate",
            "resume_hooks.transcripts.records",
        }
    )


@pytest.mark.parametrize("verb", ["lineage", "find-original", "find-derived"])
def test_quick_verbs_do_not_load_pydantic_or_rich(config_home: ConfigHome, verb: str) -> None:
    """``lineage``, ``find-original`` and ``find-derived`` import click, but not pydantic or rich."""
    write_session(config_home.project(), SESSION, conversation(2))
    found = add_parent_packages(list_imported_modules(config_home, "cli", None, verb, SESSION))
    assert "click" in found
    assert found.isdisjoint(
        {"pydantic", "rich", "importlib.metadata", "asyncio", "pyperclip", *INDEX_MODULES}
    )
    assert found.isdisjoint(
        {
            "resume_hooks.maintenance.doctor",
            "resume_hooks.system.clipboard",
            "resume_hooks.derive.fresh_child",
        }
    )


def test_a_list_of_short_sessions_does_not_load_the_index(config_home: ConfigHome) -> None:
    """If all sessions are short, ``sessions`` does not import the index.

    ``sessions`` reads the beginning and the end of each file, and needs the index only for longer
    files.
    """
    write_session(config_home.project(), SESSION, conversation(2))
    found = add_parent_packages(
        list_imported_modules(config_home, "cli", None, "sessions", "--all")
    )
    assert found.isdisjoint(
        HEAVY_MODULES
        | {
            "pyperclip",
            "prompt_toolkit",
            "resume_hooks.search.index",
            "resume_hooks.search.run_search",
        }
    )


@pytest.mark.parametrize("output_options", [[], ["--json"]], ids=["text", "json"])
def test_a_repeated_search_imports_few_libraries(
    config_home: ConfigHome, output_options: list[str]
) -> None:
    """A search imports none of the libraries click, pydantic and multiprocessing.

    If the search is repeated and the index has not changed, the search does not import orjson
    either.
    """
    write_session(config_home.project(), SESSION, conversation(2))
    for _ in range(2):
        found = add_parent_packages(
            list_imported_modules(
                config_home, "search", None, "search", "--all", "prompt", *output_options
            )
        )
        assert found >= INDEX_MODULES
        assert found.isdisjoint(
            (HEAVY_MODULES - INDEX_MODULES) | {"pyperclip", "multiprocessing", "concurrent"}
        )
        assert found.isdisjoint({"click", "difflib", "resume_hooks.sessions.locate"})
    assert found.isdisjoint({"orjson", "dataclasses", "inspect"})


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["outline", SESSION],
        ["read", f"{SESSION}:0"],
        ["info", SESSION],
        ["handoff", SESSION],
        ["trim", SESSION],
    ],
    ids=lambda words: str(words[0]),
)
def test_other_verbs_do_not_load_the_index(config_home: ConfigHome, words: list[str]) -> None:
    """Verbs for one session do not import the index, with or without ``--json``."""
    write_session(config_home.project(), SESSION, conversation(2))
    for asked in (words, [*words, "--json"])[: len(words)]:
        assert add_parent_packages(
            list_imported_modules(config_home, "cli", None, *asked)
        ).isdisjoint(INDEX_MODULES)


def test_the_card_of_a_long_session_imports_no_planning_code(config_home: ConfigHome) -> None:
    """For a long session, ``>resume`` imports no code for a handoff or a trim.

    It estimates the numbers from file sizes.
    """
    first, *rest = conversation(2)
    filling = user("x" * (MAX_QUICK_SCAN_BYTES + 1), uuid="long", parent=rest[-1]["uuid"], ts=9)
    write_session(config_home.project(), SESSION, [first, *rest, filling])
    found = add_parent_packages(
        list_imported_modules(config_home, "prompt", {"session_id": SESSION, "prompt": ">resume"})
    )
    assert "resume_hooks.derive.compare" in found
    assert found.isdisjoint(
        {
            "resume_hooks.reading.digest",
            "resume_hooks.derive.fresh_child",
            "resume_hooks.derive.trim.plan",
            "resume_hooks.derive.trim.in_client",
        }
    )


@pytest.mark.parametrize("verb", ["resume", "continue"])
def test_a_named_session_does_not_load_the_chooser(config_home: ConfigHome, verb: str) -> None:
    """If the user gives a session's id, ``resume`` and ``continue`` do not import the chooser."""
    here = {"cwd": str(config_home.root)}
    write_session(
        config_home.project(str(config_home.root)),
        SESSION,
        [{**row, **here} for row in conversation(2)],
    )
    found = add_parent_packages(list_imported_modules(config_home, "cli", None, verb, SESSION))
    assert found.isdisjoint({"prompt_toolkit", "asyncio", "pydantic", "resume_hooks.cli.picker"})


def test_the_chooser_does_not_load_the_index_at_first(config_home: ConfigHome) -> None:
    """The chooser imports the index only after it has drawn the screen."""
    found = list_imported_modules(config_home, "chooser")
    assert "resume_hooks.cli.picker.screen" in found
    assert found.isdisjoint(
        {*INDEX_MODULES, "resume_hooks.search.run_search", "resume_hooks.search.index.connect"}
    )


def test_the_help_of_a_verb_loads_only_its_declaration(config_home: ConfigHome) -> None:
    """The help of a verb imports only the verb's options, not the code that runs it."""
    found = add_parent_packages(list_imported_modules(config_home, "helps", None, *VERBS))
    assert found.isdisjoint(
        HEAVY_MODULES | {"resume_hooks.redaction", "resume_hooks.archive", "resume_hooks.hooks"}
    )
    ours = {
        name
        for name in found
        if re.match(r"resume_hooks\.cli\.|resume_hooks\.parts\.\w+\.verbs\.", name)
    }
    assert {name for name in ours if not name.startswith("resume_hooks.cli.verbs")} == {
        "resume_hooks.cli.main", "resume_hooks.cli.options", "resume_hooks.cli.output", "resume_hooks.cli.verb_table",
    }  # fmt: skip
    engine = {
        name
        for name in found
        if re.match(
            r"resume_hooks\.(derive|reading|search|maintenance|parts\.\w+)\.(?!verbs$)", name
        )
    }
    assert {name for name in engine if name.count(".") > 1} <= {
        "resume_hooks.derive.trim", "resume_hooks.derive.trim.options", "resume_hooks.search.roles",
        "resume_hooks.reading.char_budget", "resume_hooks.parts.share.export",
    }  # fmt: skip


def test_help_loads_no_verb(config_home: ConfigHome) -> None:
    """The general help of the command line imports no verb."""
    found = list_imported_modules(config_home, "cli", None, "--help")
    assert {name for name in found if name.startswith("resume_hooks.cli.")} <= {
        "resume_hooks.cli.main",
        "resume_hooks.cli.output",
        "resume_hooks.cli.verb_table",
    }

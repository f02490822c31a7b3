"""The house: every module stands in one layer, arrows point down only, and nothing goes round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from resume_hooks.cli.main import VERBS, module_of
from tests.needs import REPO

SOURCE = REPO / "src" / "resume_hooks"

LAYERS: dict[str, set[str]] = {
    "ground": {
        "addresses", "client_settings", "clock", "errors", "paths", "plain", "processes", "settings", "signals",
        "typed", "worktrees",
    },
    "bytes": {
        "backups", "intake", "lines", "log", "moving", "project_files", "project_tree", "redaction", "redaction.*",
        "rewrite", "seeking", "splice",
    },
    "model": {
        "attachments", "chain", "fields", "glance", "graph", "home", "leaf", "linear", "liveness", "node_reader",
        "nodes", "parallel", "records", "reference", "resolvers", "session_store", "sessions", "sifting", "store",
        "subagents", "surroundings", "survey", "tails", "tokens", "traffic", "transcript", "turns", "vaulted",
        "vaulted.*",
    },
    "verbs": {
        "api", "auditing", "auditing.*", "birth", "bookkeeping", "books", "bundle", "bundle.*", "carried",
        "checkpoint", "checks", "companions", "content_blocks", "conversation_only", "cost", "cutting", "deletion",
        "digest", "digest.*", "digest_edit", "expiry", "expiry.*", "export", "export.*", "file_history",
        "file_history.*", "fitting", "fork", "fsck", "fsck.*", "handoff_document", "handoff_files", "importing",
        "index", "index.*", "ledger", "lineage", "lineage_block", "links", "listing", "metadata", "model_port",
        "numbering", "opening", "originals", "outline", "outline_text", "pages", "passages", "quick_rollover",
        "reading", "receipt", "rehoming", "rendering", "restoring", "rewind", "rewind_text", "scrubbing",
        "scrubbing.*", "searching", "searching.*", "shape", "short_opening", "standing", "stats", "stats.*",
        "succession", "summarising", "summarising.*", "tally", "titles", "trash", "trimming", "trimming.*", "untrim",
        "vault", "vault.*", "ways",
    },
    "edges": {
        "anonymous", "bug_report", "capture", "client", "clipboard", "clipboard_tools", "diagnosis", "fetching",
        "headless", "plugin_files", "privacy", "programs", "repositories", "terminal", "tmux",
    },
    "events": {"events", "events.*"},
    "cli": {"__main__", "cli", "cli.*"},
}  # fmt: skip
"""From the ground up; a module may import from its own layer and from those below."""

HEIGHT = {name: height for height, name in enumerate(LAYERS)}


def modules() -> dict[str, Path]:
    """Every module by its name below ``resume_hooks``; the package itself is ``""``."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def layers_of(module: str) -> list[str]:
    """The layers that name a module, itself or by its folder."""
    folder = f"{module.partition('.')[0]}.*" if "." in module else ""
    return [name for name, members in LAYERS.items() if {module, folder} & members]


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide who depends on whom"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def arrows(module: str) -> frozenset[str]:
    """The modules of ours that one imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        for name in _imported(node):
            package, _, rest = name.partition(".")
            if package != "resume_hooks":
                continue
            # ``from resume_hooks.store import resolve`` names a function of the module ``store``.
            owner = rest if rest in MODULES else rest.rpartition(".")[0]
            if owner and owner != module:
                found.add(owner)
    if module == "cli.main":  # it finds its verbs by name
        found |= {f"cli.{module_of(verb)}" for verb in [*VERBS, "slash"]}
    return frozenset(found)


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_every_module_stands_in_one_layer(module: str) -> None:
    """A new module is given its place here."""
    assert len(layers_of(module)) == 1


def test_no_layer_names_what_is_not_there() -> None:
    """The table is the house as it stands."""
    named = {member for members in LAYERS.values() for member in members if not member.endswith(".*")}
    assert named <= set(MODULES)


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_arrows_point_down(module: str) -> None:
    """Imports lead to the module's own layer or below, those inside functions included."""
    (own,) = layers_of(module)
    upward = {other for other in arrows(module) if HEIGHT[layers_of(other)[0]] > HEIGHT[own]}
    assert upward == set()


def test_nothing_goes_round() -> None:
    """No module leads back to itself; taking away what imports nothing left takes away all."""
    left = {name: set(arrows(name)) - {""} for name in MODULES if name}
    while free := {name for name, needs in left.items() if not needs & left.keys()}:
        for name in free:
            del left[name]
    assert left == {}


def test_the_package_opens_one_door() -> None:
    """``resume_hooks`` itself, which every module loads, imports the API alone, and only when asked for a name."""
    assert arrows("") == {"api"}
    tree = ast.parse(MODULES[""].read_text(encoding="utf-8"))
    assert {name for node in tree.body for name in _imported(node)} == {
        "__future__.annotations",
        "typing.TYPE_CHECKING",
    }


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_printing_and_leaving_are_for_the_edges(module: str) -> None:
    """Below the events nothing prints, and nothing ends the process (a forked child aside)."""
    if HEIGHT[layers_of(module)[0]] >= HEIGHT["events"]:
        return
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert called.isdisjoint({"print", "exit", "sys.exit", "quit", "input"})


def test_broad_excepts_stand_at_the_rims() -> None:
    """Two rims turn a bug into a sentence: the prompt hook and the command line."""
    broad = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    }
    assert broad == {"cli.main", "events.prompt"}

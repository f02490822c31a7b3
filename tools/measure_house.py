"""Print numbers about the quality of the code in one or several checkouts, side by side.

Usage: ``python tools/measure_house.py [FOLDER ...]``. Each FOLDER is a checkout, by default this
one.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE_NAME = "resume_hooks"
MIN_EQUAL_LINES = 6
"""Two files are duplicates if they have at least this number of successive equal lines. Blank lines
and imports are not counted."""


def parse_modules(folder: Path) -> dict[str, ast.Module]:
    """Return the syntax tree of every module below a folder, by the module's dotted name.

    The module ``__init__`` has the name of its package.
    """
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(path.read_text(encoding="utf-8"))
    return modules


def count_python_lines(folder: Path) -> int:
    """Return the number of lines of all Python files below a folder."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def find_imports(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return, for each module, the modules that it imports when it is loaded."""
    imports_by_module: dict[str, set[str]] = {}
    for name, tree in modules.items():
        imported_names = set()
        for node in tree.body:
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").split(".")[0] == PACKAGE_NAME
            ):
                base = (node.module or "")[len(PACKAGE_NAME) + 1 :]
                for alias in node.names:
                    full = f"{base}.{alias.name}".removeprefix(".")
                    imported_names.add(full if full in modules else base)
        imports_by_module[name] = imported_names - {name, ""}
    return imports_by_module


def measure_longest_chain(modules: dict[str, ast.Module]) -> int:
    """Return the number of modules on the longest chain of imports."""
    needs = find_imports(modules)

    @cache
    def measure_import_chain(name: str) -> int:
        return 1 + max((measure_import_chain(other) for other in needs.get(name, ())), default=0)

    return max(measure_import_chain(name) for name in modules)


def find_repeated_class_names(modules: dict[str, ast.Module]) -> Counter[str]:
    """Return the names of classes that several modules define, each with the number of these modules."""
    names = Counter(
        node.name
        for tree in modules.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return Counter({name: count for name, count in names.items() if count > 1})


def find_wide_functions(modules: dict[str, ast.Module]) -> list[str]:
    """Return the functions with more than five parameters. ``self`` and ``cls`` are not counted."""
    found = []
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if len([arg for arg in every if arg.arg not in {"self", "cls"}]) > 5:
                    found.append(f"{name}.{node.name}")
    return found


def count_duplicate_pairs(folder: Path) -> int:
    """Return the number of pairs of files that have ``MIN_EQUAL_LINES`` equal lines in a row."""
    paths_by_run = defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        for run in list_line_runs(path):
            paths_by_run[run].add(path)
    pairs = {
        (a, b)
        for paths in paths_by_run.values()
        if 1 < len(paths) <= 8
        for a in paths
        for b in paths
        if a < b
    }
    return len(pairs)


def list_line_runs(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield each run of ``MIN_EQUAL_LINES`` successive lines of a file, to compare it with other files.

    Import lines, comments and lines of only brackets are left out.
    """
    text = path.read_text(encoding="utf-8")
    imported = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    compared_lines = [
        line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in imported
    ]
    compared_lines = [
        line for line in compared_lines if line.strip("()[]{},:\"'") and not line.startswith("#")
    ]
    yield from (
        tuple(compared_lines[start : start + MIN_EQUAL_LINES])
        for start in range(len(compared_lines) - MIN_EQUAL_LINES + 1)
    )


COMPREHENSION_TYPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
UNCOUNTED_NODE_TYPES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
"""Types of syntax nodes that are not counted: operators, and nodes that stand for no code."""


def measure_code_density(folder: Path) -> dict[str, str]:
    """Return how many syntax nodes, conditional expressions and comprehensions lines of code contain.

    Docstrings, comments and blank lines are not counted as lines of code.
    """
    total: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        total["lines"] += len(find_code_lines(text, tree))
        total["long"] += sum(len(line) >= 100 for line in text.splitlines())
        total["all"] += text.count("\n")
        for node in ast.walk(tree):
            total["nodes"] += not isinstance(node, UNCOUNTED_NODE_TYPES)
            total["conditional"] += isinstance(node, ast.IfExp)
            if isinstance(node, COMPREHENSION_TYPES):
                total["comprehensions"] += 1
                total["nested"] += is_nested(node)
    thousands = total["lines"] / 1000
    return {
        "syntax nodes per line of code": f"{total['nodes'] / total['lines']:.2f}",
        "conditional expressions per 1,000": f"{total['conditional'] / thousands:.1f}",
        "comprehensions per 1,000": f"{total['comprehensions'] / thousands:.1f}",
        "nested comprehensions per 1,000": f"{total['nested'] / thousands:.1f}",
        "lines of 100 characters or more": f"{total['long'] / total['all']:.1%}",
    }


def find_code_lines(text: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that contain code, without docstrings and comments."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped and token.string:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def is_nested(comprehension: ast.AST) -> bool:
    """Check whether a comprehension has two loops or contains another comprehension."""
    inner = [node for node in ast.walk(comprehension) if isinstance(node, ast.comprehension)]
    return len(inner) > 1


def check_contracts(folder: Path) -> str:
    """Return the result of import-linter as one line, or ``none`` if the checkout has no contracts."""
    if "importlinter" not in (folder / "pyproject.toml").read_text(encoding="utf-8"):
        return "none"
    linter = Path(sys.executable).with_name("lint-imports")
    environ = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [linter, "--no-cache"], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return (
        done.stdout.strip().splitlines()[-1].removeprefix("Contracts: ")
        if done.stdout
        else "not to be run here"
    )


def measure_core_and_parts(source: Path, modules: dict[str, ast.Module]) -> dict[str, str]:
    """Return the numbers of lines of the core and of each part, and of imports that are not wanted.

    An import from the core to a part, or from a part to another part, is not wanted.
    """
    each = {
        part.name: count_python_lines(part) for part in sorted((source / "parts").glob("[a-z]*/"))
    }
    edges = {
        (find_part_name(name), find_part_name(other))
        for name, needed in find_imports(modules).items()
        for other in needed
    }
    return {
        "lines of the core": f"{count_python_lines(source) - sum(each.values()):,}",
        "lines of parts": f"{sum(each.values()):,}",
        **{f"  {name}": f"{count:,}" for name, count in each.items()},
        "imports from the core to a part": str(
            sum(not one and bool(other) for one, other in edges)
        ),
        "imports from one part to another": str(
            sum(bool(one and other) and one != other for one, other in edges)
        ),
    }


def find_part_name(module: str) -> str:
    """Return the name of the part to which a module belongs, or "" for a module of the core."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "parts" else ""


def measure_checkout(folder: Path) -> dict[str, str]:
    """Return all numbers about a checkout, by their description."""
    source = folder / "src" / PACKAGE_NAME
    modules = parse_modules(source)
    several = find_repeated_class_names(modules)
    return {
        "modules": f"{len(modules):,}",
        "modules at the root": str(
            sum(1 for path in source.glob("*.py") if path.name != "__init__.py")
        ),
        "packages": str(sum(1 for path in source.iterdir() if (path / "__init__.py").exists())),
        "lines of src": f"{count_python_lines(source):,}",
        **measure_core_and_parts(source, modules),
        **measure_code_density(source),
        "lines of tests": f"{count_python_lines(folder / 'tests'):,}",
        "lines of benchmarks": f"{count_python_lines(folder / 'benchmarks'):,}",
        "longest import chain": str(measure_longest_chain(modules)),
        "class names with several meanings": f"{len(several)} ({sum(several.values())} classes)",
        "functions with more than five parameters": str(len(find_wide_functions(modules))),
        "pairs of files with six equal lines in a row": str(count_duplicate_pairs(source)),
        "import contracts": check_contracts(folder),
    }


def main() -> None:
    """Print a table with one row for each number and one column for each checkout."""
    folders = [Path(word) for word in sys.argv[1:]] or [Path(__file__).resolve().parent.parent]
    columns = [measure_checkout(folder) for folder in folders]
    width = max(len(name) for name in columns[0])
    for name in columns[0]:
        print(name.ljust(width), *(column[name].rjust(26) for column in columns))


if __name__ == "__main__":
    main()

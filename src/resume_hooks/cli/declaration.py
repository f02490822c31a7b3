"""A verb's declaration: its options and its help, without the imports that only its body needs.

Help and completion wait for no more than that. What the declaration is made of is found in the module's own text, so
that a verb stays one file that says each thing once.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import click


def declared(module: str) -> click.Command:
    """The command of a verb's module as far as it is declared. Called, it loads the module and does what that does."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return loaded(module)
    with open(spec.origin, encoding="utf-8") as stream:
        tree = ast.parse(stream.read())
    needed = _needed(tree.body)
    tree.body = [part for statement in tree.body for part in _parts(statement, needed)]
    names: dict[str, Any] = {"__name__": module}
    exec(compile(tree, spec.origin, "exec"), names)  # noqa: S102 - statements of our own file, as an import runs them
    command = names["command"]
    if not isinstance(command, click.Command) or isinstance(command, click.Group):
        return loaded(module)  # the acts of a group are declared elsewhere
    # A --help may be the value of an option, and then the verb is called.
    command.callback = lambda **given: click.get_current_context().invoke(loaded(module), **given)
    return command


def loaded(module: str) -> click.Command:
    """The command of a verb's module."""
    command: click.Command = importlib.import_module(module).command
    return command


def _needed(statements: list[ast.stmt]) -> set[str]:
    """The names that the declaration of ``command`` is made of."""
    needed, seen = {"command"}, 0
    while seen != len(needed):
        seen = len(needed)
        for statement in statements:
            if needed.intersection(_bound(statement)):
                needed.update(_read(statement))
    return needed


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds in the module."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from map(_alias, aliases)
        case _:
            yield from _names(statement, ast.Store)


def _read(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement reads; not those of annotations, nor of what the verb itself does."""
    match statement:
        case ast.FunctionDef(name="command", decorator_list=decorators):
            parts: list[ast.expr] | list[ast.stmt] = decorators
        case ast.FunctionDef(body=body):
            parts = body
        case _:
            parts = [statement]
    for part in parts:
        yield from _names(part, ast.Load)


def _names(part: ast.AST, use: type[ast.expr_context]) -> Iterator[str]:
    return (node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, use))


def _parts(statement: ast.stmt, needed: set[str]) -> Iterator[ast.stmt]:
    """What the declaration needs of a statement: of an import the names, of anything else all or nothing."""
    if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
        statement.names = [alias for alias in statement.names if _alias(alias) in needed]
        if statement.names:
            yield statement
    elif isinstance(statement, ast.ImportFrom) or needed.intersection(_bound(statement)):
        yield statement


def _alias(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]

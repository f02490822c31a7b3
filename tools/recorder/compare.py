"""Print how two records differ: for each kind of difference, a count and an example."""

from __future__ import annotations

import difflib
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAX_LINE_CHARACTERS = 160
"""The maximum number of characters shown of a line in an example. A longer line is cut around its
first difference."""

MAX_EXAMPLE_LINES = 14
MAX_COMPARED_LINES = 4_000
"""The maximum number of lines of a text that are compared, from the first difference on."""

Row = dict[str, Any]


class Difference(NamedTuple):
    """A difference between two records.

    ``case`` is the step of a scenario. ``row_field`` is the field of its row that differs, such as
    stdout. ``kind`` describes the difference without ids and numbers.
    """

    case: str
    row_field: str
    kind: str
    example_lines: list[str]


def read_record(path: Path) -> dict[str, Row]:
    """Return the rows of a record, by case."""
    rows = {}
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            rows[row["case"]] = row
    return rows


def print_differences(before: Path, after: Path) -> int:
    """Print each kind of difference, the most frequent first. Return the number of all differences."""
    kinds: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    total = 0
    for difference in find_differences(before, after):
        kinds[difference.row_field, difference.kind].append(difference)
        total += 1
    for (part, kind), found in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])):
        cases = sorted({remove_session_name(each.case) for each in found})
        print(f"\n{len(found)} x {part}: {kind}")
        print(
            f"  in {len(cases)} kinds of step: {', '.join(cases[:6])}{', ...' if len(cases) > 6 else ''}"
        )
        print(f"  example: {found[0].case}")
        for line in found[0].example_lines:
            print(f"    {line}")
    print(f"\n{total} differences of {len(kinds)} kinds." if total else "No difference.")
    return total


def remove_session_name(case_name: str) -> str:
    """Return the name of a case without the name of its session."""
    return case_name.partition(" ")[2]


def find_differences(before: Path, after: Path) -> Iterator[Difference]:
    """Yield every difference between two records, in the order of the first record."""
    old, new = read_record(before), read_record(after)
    stores = before.with_suffix(""), after.with_suffix("")
    for case, row in old.items():
        if case not in new:
            yield Difference(case, "case", "it is gone", [])
        else:
            yield from _compare_case(case, row, new[case], stores)
    for case in new:
        if case not in old:
            yield Difference(case, "case", "it is new", [])


def _compare_case(case: str, old: Row, new: Row, stores: tuple[Path, Path]) -> Iterator[Difference]:
    if old["exit"] != new["exit"]:
        kind = f"{old['exit']} is {new['exit']}"
        yield Difference(case, "exit", kind, new["stderr"].splitlines()[-3:])
    for part in ("stdout", "stderr"):
        if old[part] != new[part]:
            yield Difference(case, part, *describe_text_difference(old[part], new[part]))
    old_files, new_files = ({row["path"]: row for row in rows["files"]} for rows in (old, new))
    for path in sorted({*old_files, *new_files}):
        was, now = old_files.get(path), new_files.get(path)
        name = f"file {generalize_text(path)}"
        if was is None or now is None:
            yield Difference(
                case, name, "is not written any more" if was else "is written, too", [path]
            )
            continue
        if was.get("mode") != now.get("mode"):
            yield Difference(case, name, f"mode {was.get('mode')} is {now.get('mode')}", [path])
        if was["sha256"] != now["sha256"]:
            kind, example = _describe_file_difference(
                _read_stored_content(was["sha256"], stores[0]),
                _read_stored_content(now["sha256"], stores[1]),
            )
            yield Difference(case, name, kind, [path, *example])


def _read_stored_content(name: str, store: Path) -> bytes:
    path = store / name[:2] / f"{name}.z"
    return zlib.decompress(path.read_bytes()) if path.exists() else f"({name})".encode()


def _describe_file_difference(old: bytes, new: bytes) -> tuple[str, list[str]]:
    if b"\0" in old[:4_096] or b"\0" in new[:4_096]:
        return "other bytes", [f"{len(old):,} bytes before, {len(new):,} now"]
    return describe_text_difference(
        old.decode("utf-8", "backslashreplace"), new.decode("utf-8", "backslashreplace")
    )


def generalize_text(text: str) -> str:
    """Replace all ids and numbers in a text, so that texts become equal if only these differ."""
    text = re.sub(r"\bid-\d{5}(?:-uuid)?|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"\b[0-9a-f]{8,}\b", "HEX", text)
    return re.sub(r"\d[\d,.]*", "N", text)


def describe_text_difference(old: str, new: str) -> tuple[str, list[str]]:
    """Return the kind of difference between two texts, and the lines of a short diff."""
    old_lines, new_lines = _remove_common_ends(old.split("\n"), new.split("\n"))
    kinds: dict[str, None] = {}
    example: list[str] = []
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        old_part, new_part = old_lines[start:end], new_lines[new_start:new_end]
        for number in range(max(len(old_part), len(new_part))):
            pair = [
                lines[number] if number < len(lines) else None for lines in (old_part, new_part)
            ]
            kinds[_describe_line_difference(*pair)] = None
            example += _format_lines(*pair)
    kind_list = list(kinds)
    suffix = f"; and {len(kind_list) - 3} more" if len(kind_list) > 3 else ""
    return "; ".join(kind_list[:3]) + suffix, example[:MAX_EXAMPLE_LINES]


def _remove_common_ends(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    return old[:MAX_COMPARED_LINES], new[:MAX_COMPARED_LINES]


def _describe_line_difference(old: str | None, new: str | None) -> str:
    if old is None:
        return f"+ {_summarize_line(new or '')}"
    if new is None:
        return f"- {_summarize_line(old)}"
    try:
        values = json.loads(old), json.loads(new)
    except ValueError:
        return _describe_changed_words(old, new)
    paths = sorted(set(_find_differing_paths(*values, "")))
    return f"JSON {', '.join(paths[:4])}{', ...' if len(paths) > 4 else ''}"


def _summarize_line(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return generalize_text(line.strip())[:60]
    if isinstance(record, dict):
        return f"a record of type {record.get('type')}"
    return "a line of JSON"


def _describe_changed_words(old: str, new: str) -> str:
    old_words, new_words = (re.findall(r"\s+|\w+|[^\w\s]", line[:5_000]) for line in (old, new))
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    changes = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            old_part, new_part = (
                "".join(old_words[start:end]),
                "".join(new_words[new_start:new_end]),
            )
            changes.append(
                f"{generalize_text(old_part)[:50]!r} is {generalize_text(new_part)[:50]!r}"
            )
    return ", ".join(dict.fromkeys(changes[:3])) or "the end of a long line"


def _find_differing_paths(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield the paths at which two JSON values differ. All items of a list have the same path, ``path[]``."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _find_differing_paths_of_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}[] of another length"
        for pair in zip(old, new, strict=False):
            yield from _find_differing_paths(*pair, f"{path}[]")
    elif isinstance(old, str) and isinstance(new, str) and old != new:
        yield f"{path} ({_describe_changed_words(old, new)})"
    elif old != new:
        yield path


def _find_differing_paths_of_objects(old: Row, new: Row, path: str) -> Iterator[str]:
    for key in {*old, *new}:
        place = f"{path}.{generalize_text(str(key))}"
        if key not in old or key not in new:
            yield f"{place} is {'new' if key in new else 'gone'}"
        elif old[key] != new[key]:
            yield from _find_differing_paths(old[key], new[key], place)
    if old == new and list(old) != list(new):
        yield f"{path} in another order"


def _format_lines(old: str | None, new: str | None) -> list[str]:
    start = 0
    if old is not None and new is not None:
        while start < min(len(old), len(new)) and old[start] == new[start]:
            start += 1
        start = max(0, start - MAX_LINE_CHARACTERS // 3)
    rows = []
    for sign, line in (("-", old), ("+", new)):
        if line is not None:
            start_mark, end_mark = (
                "... " if start else "",
                " ..." if len(line) > start + MAX_LINE_CHARACTERS else "",
            )
            rows.append(f"{sign} {start_mark}{line[start : start + MAX_LINE_CHARACTERS]}{end_mark}")
    return rows

"""Measure the scanner for secrets: its correct and false findings, and its speed.

``python -m benchmarks.redaction [--times] [--hostile] [--growth]`` scans copies of real sessions
with planted secrets. It prints counts and rates, but never a secret. ``--times`` measures the
speed. ``--hostile`` times texts that were written to slow down the scan. ``--growth`` makes long
texts by repeating parts of each pattern's matches, and prints the texts whose scan time grows
faster than their length. This takes an hour.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import iter_modules

from hypothesis.strategies import from_regex

from resume_hooks import redaction
from resume_hooks.parts.secrets import cleaner, literals
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.parts.secrets.file_scan import SCAN_BLOCK_BYTES
from resume_hooks.redaction.json_lines import find_secrets_in_line, redact_bytes, redact_line
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.redaction.texts import positions_of_possible_secrets
from tests.needs import corpus_folder
from tests.redaction.hostile import hostile_texts
from tests.redaction.planted import PlantedSecret, plant_secrets

MATCHES_PER_PATTERN = 2
"""The number of matches of each pattern from which long texts are made."""


def is_removed(planted_secret: PlantedSecret) -> bool:
    """Check whether redaction removed a secret completely, in plain and in escaped form."""
    clean, found = (
        redact_bytes(planted_secret.raw)
        if planted_secret.place_name == "tool-results file"
        else redact_line(planted_secret.raw)
    )
    if planted_secret.place_name != "tool-results file":
        json.loads(clean)
    return bool(found) and not any(
        piece in _resolve_escapes(clean) for piece in _choose_leftover_pieces(planted_secret.secret)
    )


def _choose_leftover_pieces(secret: str) -> list[str]:
    """Return the pieces of a secret that must not remain.

    There is one piece: the secret, or the last 12 characters of a secret that is longer than 24.
    """
    body = secret.split("\n")[1] if secret.startswith("-----BEGIN") else secret
    body = body[-12:] if len(body) > 24 else body
    return [body]


def _resolve_escapes(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    for _ in range(4):
        for number in range(0x20, 0x7F):
            text = text.replace(f"\\u{number:04x}", chr(number))
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n")
    return text


def read_corpus_lines() -> dict[Path, list[bytes]]:
    """Return, for every session of the corpus, its lines that are valid JSON."""
    found = {}
    for path in sorted(corpus_folder().rglob("*.jsonl")):
        lines = [
            line
            for line in path.read_bytes().split(b"\n")
            if line.startswith(b"{") and _is_json(line)
        ]
        found[path] = lines
    return found


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def print_shares(files: dict[Path, list[bytes]]) -> None:
    """Print how many planted secrets were removed, and the files without secrets that have findings.

    There is a line for each half of the secrets, for each way of planting, and for each planting
    place.
    """
    found: dict[str, list[bool]] = defaultdict(list)
    missed_secrets: Counter[str] = Counter()
    for one in plant_secrets([line for lines in files.values() for line in lines]):
        half = "held out" if one.form.is_held_out else "known"
        removed = is_removed(one)
        found[half].append(removed)
        found[f"way {one.writer_name}"].append(removed)
        found[f"place {one.place_name}"].append(removed)
        if not removed:
            missed_secrets[f"{half}: {one.form.name} {one.writer_name} in {one.place_name}"] += 1
    for name, results in sorted(found.items()):
        print(
            f"{name:32} {sum(results):4} of {len(results):4}  {100 * sum(results) / len(results):5.1f} %"
        )
    for name, count in missed_secrets.most_common():
        print(f"  missed {count}  {name}")
    flagged = {
        path: kinds
        for path, lines in files.items()
        if (kinds := Counter(_find_secret_kinds(lines)))
    }
    print(f"clean files flagged              {len(flagged):4} of {len(files):4}")
    for path, kinds in flagged.items():
        print(f"  {path.name}: {dict(kinds)}")


def _find_secret_kinds(lines: list[bytes]) -> Iterator[str]:
    return (secret.kind for line in lines for secret in find_secrets_in_line(line))


def print_times(files: dict[Path, list[bytes]]) -> None:
    """Print the speed of the first pass over the corpus on one core."""
    raw = b"".join(path.read_bytes() for path in files)
    blocks = [raw[at : at + SCAN_BLOCK_BYTES] for at in range(0, len(raw), SCAN_BLOCK_BYTES)]
    best = min(_measure_scan_seconds(blocks) for _ in range(3))
    print(
        f"first pass                       {len(raw) / best / 1e6:6.0f} MB/s of processor time, {len(raw):,} bytes"
    )


def _measure_scan_seconds(blocks: list[bytes]) -> float:
    started = time.process_time()
    for block in blocks:
        for _ in positions_of_possible_secrets(block):
            pass
    return time.process_time() - started


SCAN_FUNCTIONS: dict[str, Callable[[str], object]] = {
    "text": lambda text: redact_bytes(text.encode()),
    "line": lambda text: redact_line(_make_prompt_line(text)),
    "scrubbed line": lambda text: SecretCleaner().clean_record(
        _make_prompt_line(f'password: "Hx7kQ2mZp9Lr4Tw8" {text}')
    ),
    "scrubbed text": lambda text: SecretCleaner().clean_text(
        f'password: "Hx7kQ2mZp9Lr4Tw8" {text}'.encode()
    ),
    "torn line": lambda text: SecretCleaner().clean_record(
        b'{"content":"password: Hx7kQ2mZp9Lr4Tw8 ' + text.encode() + b"}"
    ),
}


def print_hostile_times(text_length: int = 60_000) -> None:
    """Print the scanning time of each hostile text in seconds per MB, the slowest text last.

    Each text is scanned in each of the SCAN_FUNCTIONS.
    """
    rows = []
    for text in hostile_texts(text_length):
        spent = [
            _time_scan(work, text) / len(text.encode()) * 1e6 for work in SCAN_FUNCTIONS.values()
        ]
        rows.append((max(spent[:2]), text[:24], spent))
    for _, text, spent in sorted(rows):
        print(
            f"{text!r:44} "
            + "  ".join(
                f"{way} {each:.2f}" for way, each in zip(SCAN_FUNCTIONS, spent, strict=True)
            )
        )


def print_growth(text_length: int = 16_000, min_seconds: float = 0.05) -> None:
    """Print the texts whose scan takes more than 2.6 times as long if they are twice as long.

    The printed times are in seconds, for one, two and four times the length. A text that takes less
    than ``min_seconds`` seconds is not printed.
    """
    for name, unit in _list_texts_to_repeat():
        for way, work in SCAN_FUNCTIONS.items():
            spent = [
                _time_scan(work, unit * (text_length * times // len(unit))) for times in (1, 2)
            ]
            if spent[0] > min_seconds and spent[1] > 2.6 * spent[0]:
                spent.append(_time_scan(work, unit * (text_length * 4 // len(unit))))
                print(f"{name:40} {way:14} {spent} {unit[:40]!r}")


def _time_scan(scan: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    scan(text)
    return time.process_time() - started


def _make_prompt_line(text: str) -> bytes:
    return json.dumps(
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": text}}
    ).encode()


def _list_texts_to_repeat() -> Iterator[tuple[str, str]]:
    """Yield pairs: the name of a pattern, and a text to repeat.

    The text is a match of the pattern, or the beginning of a match. A space, a quotation mark or
    nothing follows it.
    """
    warnings.simplefilter("ignore")
    for name, pattern in _find_redaction_patterns():
        for _ in range(MATCHES_PER_PATTERN):
            sample = from_regex(pattern).example()
            text = sample.decode("latin-1") if isinstance(sample, bytes) else sample
            for share in (0.1, 0.3, 0.5, 0.7, 0.9, 1):
                unit = text[: math.ceil(share * len(text))].encode("utf-8", "replace").decode()
                yield from ((name, unit + after) for after in ("", " ", '"') if unit)


def _find_redaction_patterns() -> Iterator[tuple[str, re.Pattern[bytes] | re.Pattern[str]]]:
    groups = (
        *token_rules().rules_by_keyword.values(),
        *token_rules().rules_by_vendor_name.values(),
    )
    for rule in {id(rule): rule for group in groups for rule in group}.values():
        yield rule.kind, rule.pattern
        if rule.exception_pattern:
            yield f"allowed: {rule.kind}", rule.exception_pattern
    redaction_modules = (
        importlib.import_module(f"{redaction.__name__}.{each.name}")
        for each in iter_modules(redaction.__path__)
    )
    for module in (cleaner, literals, *redaction_modules):
        for name, value in vars(module).items():
            for each in value if isinstance(value, list) else [[value]]:
                found = [
                    re.compile(pattern.pattern) for pattern in each if hasattr(pattern, "pattern")
                ]
                yield from ((f"{module.__name__}.{name}", pattern) for pattern in found)


if __name__ == "__main__":
    everything = read_corpus_lines()
    print_shares(everything)
    if "--times" in sys.argv:
        print_times(everything)
    if "--hostile" in sys.argv:
        print_hostile_times()
    if "--growth" in sys.argv:
        print_growth()

"""Measure how many secrets are removed completely, and how many texts without secrets are unchanged.

``python -m benchmarks.secrets.measure [--missed] FILE ...`` reads lists of secrets and of texts
without secrets. Our scanner and gitleaks' rules are measured. So is detect-secrets, which scans
line by line, if it is installed.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from resume_hooks.redaction.false_positives import entropy
from resume_hooks.redaction.load_rules import RULES_FILE
from resume_hooks.redaction.texts import redact

MIN_LEFTOVER_CHARACTERS = 3
"""The cleaned text must not contain this many consecutive characters of a secret."""


def replace_detected_secrets(text: str) -> str:
    """Return a text in which each secret that we detect is replaced with a NUL character."""
    clean, found = redact(text)
    for kind in {secret.kind for secret in found}:
        clean = clean.replace(f"[secret removed: {kind}]", "\0")
    return clean


def make_detect_secrets_cleaner() -> Callable[[str], str] | None:
    """Return a function that replaces the secrets that detect-secrets finds.

    Return None if detect-secrets is not installed.
    """
    try:
        scan, settings = (
            importlib.import_module(f"detect_secrets.{name}") for name in ("core.scan", "settings")
        )
    except ImportError:
        return None

    def replace_secrets(text: str) -> str:
        with (
            settings.default_settings(),
            NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file,
        ):
            file.write(text)
            file.flush()
            values = {found.secret_value for found in scan.scan_file(file.name)}
        for value in sorted(filter(None, values), key=len, reverse=True):
            text = text.replace(value, "\0")
        return text

    return replace_secrets


def make_gitleaks_cleaner() -> Callable[[str], str]:
    """Return a function that replaces the secrets that gitleaks' default rules find.

    Each rule is applied to the whole text as a regular expression. The generic rule is included.
    """
    data = json.loads(Path(RULES_FILE).read_text(encoding="utf-8"))
    between = r"(?:[ \t\w.-]{0,20})[\s'\"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[`'\"\s=]{0,5}"
    generic = (
        r"(?i:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)"
        + between
        + r"([\w.=-]{10,150})"
    )
    rows = [(row["regex"], row["entropy"]) for row in data["tokens"]]
    rows += [
        (f"(?i:{row['words']}){between}{row['value']}", row["entropy"]) for row in data["assigned"]
    ]
    patterns = [(_compile_rule(text), least) for text, least in [*rows, (generic, 3.5)]]

    def replace_secrets(text: str) -> str:
        raw = text.encode()
        found = {
            match[match.lastindex or 0]
            for pattern, _ in patterns
            for match in pattern.finditer(raw)
        }
        sure = {
            value for value in found if any(_is_found_by_rule(raw, value, row) for row in patterns)
        }
        for value in sorted(sure, key=len, reverse=True):
            raw = raw.replace(value, b"\0")
        return raw.decode("utf-8", "replace")

    return replace_secrets


def _compile_rule(text: str) -> re.Pattern[bytes]:
    """Compile a regular expression. A flag inside it applies to the whole expression."""
    return re.compile(text.replace("(?i)", "").encode(), re.IGNORECASE if "(?i)" in text else 0)


def _is_found_by_rule(raw: bytes, value: bytes, rule: tuple[re.Pattern[bytes], float]) -> bool:
    """Check whether a rule finds a value that has the rule's minimum entropy."""
    pattern, min_entropy = rule
    return entropy(value) >= min_entropy and any(
        match[match.lastindex or 0] == value for match in pattern.finditer(raw)
    )


def are_parts_removed(text: str, cleaned_text: str, parts: list[str]) -> bool:
    """Check whether the cleaned text contains no piece of any part of a secret.

    A piece has ``MIN_LEFTOVER_CHARACTERS`` characters. Pieces that are also elsewhere in the text may
    remain.
    """
    without = text
    for part in parts:
        without = without.replace(part, "\0")
    pieces = {
        part[at : at + MIN_LEFTOVER_CHARACTERS]
        for part in parts
        for at in range(max(1, len(part) - MIN_LEFTOVER_CHARACTERS + 1))
    }
    return not any(cleaned_text.count(piece) > without.count(piece) for piece in pieces)


def print_cleaner_results(
    path: Path, cleaner_name: str, clean: Callable[[str], str], *, print_wrong_results: bool
) -> None:
    """Print how many texts of a file had the right result.

    With ``print_wrong_results``, also print each text with a wrong result.
    """
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    results = []
    for row in rows:
        for one in row.get("contexts", [row]):
            text = clean(one["text"])
            good = (
                all(part in text for part in row["keep"])
                if "keep" in row
                else are_parts_removed(one["text"], text, one["secret"])
            )
            results.append(good)
            if print_wrong_results and not good:
                print(json.dumps({"kind": row["kind"], **one, "left": text}, ensure_ascii=False))
    percent = 100 * sum(results) / len(results)
    print(
        f"{path.name:28} {cleaner_name:16} {sum(results):4} of {len(results):4}  {percent:5.1f} %"
    )


if __name__ == "__main__":
    baseline = make_detect_secrets_cleaner()
    for file in map(Path, (each for each in sys.argv[1:] if each != "--missed")):
        print_cleaner_results(
            file,
            "resume-hooks",
            replace_detected_secrets,
            print_wrong_results="--missed" in sys.argv,
        )
        print_cleaner_results(
            file, "gitleaks' rules", make_gitleaks_cleaner(), print_wrong_results=False
        )
        if baseline:
            print_cleaner_results(file, "detect-secrets", baseline, print_wrong_results=False)

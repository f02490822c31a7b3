"""List findings in texts without labels, so that a reader can judge them. Count the false ones.

``python -m benchmarks.secrets.false_findings ROWS FOLDER ...`` scans every text file below 3 MB in
the folders. For each finding, it writes a JSON row to the file ROWS: the scanner, the file, the
kind, the value, and the text around the value. The baseline scanner consists of ten well-known
regular expressions.

A reader then adds ``"false": true`` to the row of each value that does not have the form of a
credential. (A credential of a test or a manual has the form.) ``python -m
benchmarks.secrets.false_findings --judged ROWS`` counts these rows by scanner.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from resume_hooks.redaction.texts import spans_in_bytes

MAX_FILE_BYTES = 3_000_000
"""Maximum number of bytes of a file to scan."""

CONTEXT_BYTES = 120
"""A row contains this number of bytes before and after its finding."""

BASELINE_PATTERNS = {
    "aws-access-key": rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "github-token": rb"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "slack-token": rb"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "stripe-key": rb"\b[sr]k_live_[A-Za-z0-9]{24,}",
    "google-api-key": rb"\bAIza[\w-]{35}",
    "private-key": rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "jwt": rb"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+",
    "password-in-address": rb"[a-z]{3,10}://[^/\s:@]{3,20}:([^/\s:@]{3,20})@",
    "password": rb"(?i)(?:password|passwd|pwd)[\"']?\s*[:=]\s*[\"']([^\"'\s]{6,})[\"']",
    "key": rb"(?i)(?:api_?key|secret|token)[\"']?\s*[:=]\s*[\"']?([\w/+=-]{16,})",
}
"""Ten well-known regular expressions, which most scanners contain in a similar form."""


class Finding(NamedTuple):
    """A value that was found at the bytes from ``start`` to ``end`` of a file."""

    kind: str
    start: int
    end: int


def list_own_findings(raw: bytes) -> Iterator[Finding]:
    """Yield the findings of this project's scanner."""
    for span in spans_in_bytes(raw):
        yield Finding(span.kind, span.start, span.end)


def list_baseline_findings(raw: bytes) -> Iterator[Finding]:
    """Yield the matches of the ten regular expressions."""
    for kind, expression in BASELINE_PATTERNS.items():
        for match in re.finditer(expression, raw):
            yield Finding(kind, *match.span(match.lastindex or 0))


SCANNERS = {"resume-hooks": list_own_findings, "ten expressions": list_baseline_findings}


def read_text_files(folders: list[str]) -> Iterator[tuple[Path, bytes]]:
    """Yield each UTF-8 file in the folders that is not too large, with its bytes."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
                continue
            raw = path.read_bytes()
            if b"\0" not in raw and _is_utf8(raw):
                yield path, raw


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def write_findings(rows_path: Path, folders: list[str]) -> None:
    """Write a row for each finding, and print the number of findings per MB for each scanner."""
    size = 0
    counts: Counter[str] = Counter()
    with rows_path.open("w", encoding="utf-8") as output:
        for path, raw in read_text_files(folders):
            size += len(raw)
            for scanner, find in SCANNERS.items():
                for finding in find(raw):
                    counts[scanner] += 1
                    output.write(json.dumps(_row_of_finding(scanner, path, raw, finding)) + "\n")
    print(f"{size / 1e6:.1f} MB")
    for scanner, count in counts.items():
        print(f"{scanner:16} {count:6} findings  {count / size * 1e6:6.2f} in a MB")


def _row_of_finding(scanner: str, path: Path, raw: bytes, finding: Finding) -> dict[str, str]:
    before = raw[max(0, finding.start - CONTEXT_BYTES) : finding.start]
    after = raw[finding.end : finding.end + CONTEXT_BYTES]
    return {
        "scanner": scanner,
        "file": str(path),
        "kind": finding.kind,
        "before": before.decode(errors="replace"),
        "value": raw[finding.start : finding.end].decode(errors="replace"),
        "after": after.decode(errors="replace"),
    }


def print_judged_counts(rows_path: Path) -> None:
    """Print how many findings each scanner has, and how many of them a reader judged as false."""
    judged: dict[str, list[bool]] = {}
    for line in rows_path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        judged.setdefault(row["scanner"], []).append(row.get("false", False))
    for scanner, verdicts in judged.items():
        print(f"{scanner:16} {sum(verdicts):6} false of {len(verdicts)}")


if __name__ == "__main__":
    if sys.argv[1] == "--judged":
        print_judged_counts(Path(sys.argv[2]))
    else:
        write_findings(Path(sys.argv[1]), sys.argv[2:])

"""What the scanner finds of secrets planted in copies of real sessions, what it takes for one, and how fast it is.

``python -m tests.redaction.measure [--times]``. Prints shares and rates, never a secret.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from resume_hooks.maintenance.audit.scan import BLOCK
from resume_hooks.redaction.json_lines import find_in_line, redact_bytes, redact_line
from resume_hooks.redaction.prefilter import suspects
from tests.needs import corpus_folder
from tests.redaction.planted import FORMS, WAYS, Form

PLACES = 200
PLACED = ("prompt", "input", "result", "tool use result", "attachment", "tool-results file")


class Planted(NamedTuple):
    """A secret in a line or, in a file of its own, a text."""

    form: Form
    way: str
    place: str
    secret: str
    raw: bytes


def planted(lines: list[bytes], seed: int = 7, places: int = PLACES) -> Iterator[Planted]:
    """Secrets of all forms in turn, each in a copy of a real record or in a text, every way and place in turn."""
    rng = random.Random(seed)
    records = [record for line in lines if (record := json.loads(line)).get("type") in {"user", "assistant"}]
    for number in range(places):
        form = FORMS[number % len(FORMS)]
        way = WAYS[(number // len(FORMS) + number) % len(WAYS)]
        place = PLACED[(number * 5 + number // len(FORMS)) % len(PLACED)]
        secret = form.make(rng)
        text = way(form.words.format(secret))
        raw = text.encode() if place == "tool-results file" else _line(rng.choice(records), place, text, rng)
        yield Planted(form, way.__name__, place, secret, raw)


def _line(record: dict[str, object], place: str, text: str, rng: random.Random) -> bytes:
    """A copy of a record with a text in one of its places."""
    made = json.loads(json.dumps(record))
    if place == "prompt":
        made.update(type="user", message={"role": "user", "content": text})
    elif place == "input":
        call = {"type": "tool_use", "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", "name": "Bash", "input": {"command": text}}
        made.update(type="assistant", message={"role": "assistant", "content": [call]})
    elif place == "result":
        answer = {"type": "tool_result", "tool_use_id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", "content": text}
        made.update(type="user", message={"role": "user", "content": [answer]})
    elif place == "attachment":
        made.update(type="attachment", attachment={"type": "file", "content": {"file": {"content": text}}})
    else:
        made["toolUseResult"] = {"stdout": text, "stderr": "", "interrupted": False}
    spaced = rng.random() < 0.2
    return json.dumps(made, ensure_ascii=rng.random() < 0.3, separators=None if spaced else (",", ":")).encode() + b"\n"


def is_gone(one: Planted) -> bool:
    """Whether redaction took the secret out, in every form in which it stood there."""
    clean, found = redact_bytes(one.raw) if one.place == "tool-results file" else redact_line(one.raw)
    if one.place != "tool-results file":
        json.loads(clean)
    return bool(found) and not any(piece in _resolved(clean) for piece in _pieces(one.secret))


def _pieces(secret: str) -> list[str]:
    """The secret's parts of 12 characters that must be gone: none may be left standing."""
    body = secret.split("\n")[1] if secret.startswith("-----BEGIN") else secret
    body = body[-12:] if len(body) > 24 else body
    return [body]


def _resolved(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    for _ in range(4):
        for number in range(0x20, 0x7F):
            text = text.replace(f"\\u{number:04x}", chr(number))
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n")
    return text


def corpus_lines() -> dict[Path, list[bytes]]:
    """The lines of every session that can be parsed; read only."""
    found = {}
    for path in sorted(corpus_folder().rglob("*.jsonl")):
        lines = [line for line in path.read_bytes().split(b"\n") if line.startswith(b"{") and _parses(line)]
        found[path] = lines
    return found


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def shares(files: dict[Path, list[bytes]]) -> None:
    """Print what was found of the planted, by half, form and way, and which clean files hold anything."""
    found: dict[str, list[bool]] = defaultdict(list)
    missed: Counter[str] = Counter()
    for one in planted([line for lines in files.values() for line in lines]):
        half = "held out" if one.form.held_out else "known"
        gone = is_gone(one)
        found[half].append(gone)
        found[f"way {one.way}"].append(gone)
        found[f"place {one.place}"].append(gone)
        if not gone:
            missed[f"{half}: {one.form.name} {one.way} in {one.place}"] += 1
    for name, results in sorted(found.items()):
        print(f"{name:32} {sum(results):4} of {len(results):4}  {100 * sum(results) / len(results):5.1f} %")
    for name, count in missed.most_common():
        print(f"  missed {count}  {name}")
    flagged = {path: kinds for path, lines in files.items() if (kinds := Counter(_kinds(lines)))}
    print(f"clean files flagged              {len(flagged):4} of {len(files):4}")
    for path, kinds in flagged.items():
        print(f"  {path.name}: {dict(kinds)}")


def _kinds(lines: list[bytes]) -> Iterator[str]:
    return (secret.kind for line in lines for secret in find_in_line(line))


def times(files: dict[Path, list[bytes]]) -> None:
    """Print how fast clean bytes are passed over, and whole files are looked through, on one core."""
    raw = b"".join(path.read_bytes() for path in files)
    blocks = [raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK)]
    best = min(_seconds(blocks) for _ in range(3))
    print(f"first pass                       {len(raw) / best / 1e6:6.0f} MB/s of processor time, {len(raw):,} bytes")


def _seconds(blocks: list[bytes]) -> float:
    started = time.process_time()
    for block in blocks:
        for _ in suspects(block):
            pass
    return time.process_time() - started


if __name__ == "__main__":
    everything = corpus_lines()
    shares(everything)
    if "--times" in sys.argv:
        times(everything)

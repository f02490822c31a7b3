"""The vault with 3,000 sessions: kept by links, kept again, packed, verified, opened; and its codecs, side by side."""

from __future__ import annotations

import bz2
import json
import lzma
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.library import FILES, Library, load, note, row
from resume_hooks.sessions.archived.packs import PRESET

ROUNDS = 3
SAMPLED_FILES = 60
"""The largest files of the library that the codecs are tried on."""

TENTH = 10
"""Of so many sessions one is packed."""

DAY = 24 * 60 * 60
CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "xz -1": (lambda raw: lzma.compress(raw, preset=1), lzma.decompress),
    f"xz -{PRESET}, ours": (lambda raw: lzma.compress(raw, preset=PRESET), lzma.decompress),
    "xz -6": (lambda raw: lzma.compress(raw, preset=6), lzma.decompress),
    "bz2 -9": (bz2.compress, bz2.decompress),
    "zlib -6": (zlib.compress, zlib.decompress),
}


def vaults(bench: Bench) -> None:
    """Print the rows."""
    library = Library(bench, bench.work.parent / "kept-library")
    print(f"\n{f'the vault, {FILES:,} sessions':52} {'ms':>8} {'cpu ms':>8}   {load()}")
    settled(library.config, 1)
    shell = library.bench.shell
    row("archive --all, none kept: links", library.run(shell("archive", "--all")), "")
    row("archive --all, all kept", library.median(shell("archive", "--all"), ROUNDS), "")
    row("archive --list --json", library.median(shell("archive", "--list", "--json"), ROUNDS), "")
    note(f"memory of archive --all {library.peak_megabytes(shell('archive', '--all')):,.0f} MB")
    settled(library.config, 28, every=TENTH)  # near their end: they are packed
    spent = library.run(shell("archive", "--all"))
    listed = json.loads(library.run(shell("archive", "--list", "--json")).printed)["data"]["vault"]
    kept = [each for each in listed if each["form"] == "packed"]
    whole, packed = (sum(int(each[name]) for each in kept) for name in ("size", "stored"))
    row(f"archive --all, {len(kept):,} packed now, {whole / 1e6:,.0f} MB", spent, "")
    note(f"to {packed / 1e6:,.1f} MB, {packed / whole:.1%}")
    row("archive --verify", library.run(shell("archive", "--verify")), "")
    big = max(kept, key=lambda each: int(each["size"]))
    Path(big["file"]).unlink()
    row(f"restore of {big['size'] / 1e6:,.1f} MB", library.run(shell("restore", big["session_id"])), "")
    shutil.rmtree(library.config.parent)


def codecs(folder: Path) -> None:
    """Print what each codec of the standard library makes of the largest transcripts."""
    files = sorted(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)[-SAMPLED_FILES:]
    contents = [path.read_bytes() for path in files]
    total = sum(map(len, contents))
    print(f"\n{f'codecs, {total / 1e6:,.0f} MB in {len(files)} files':52} {'share':>8} {'MB/s':>8} {'back':>8}")
    for name, (pack, unpack) in CODECS.items():
        begun = time.process_time()
        packed = [pack(raw) for raw in contents]
        middle = time.process_time()
        for raw in packed:
            unpack(raw)
        back = time.process_time() - middle
        speed = total / (middle - begun) / 1e6
        print(f"{name:52} {sum(map(len, packed)) / total:8.1%} {speed:8.0f} {total / back / 1e6:8.0f}", flush=True)


def settled(config: Path, days: int, every: int = 1) -> None:
    """Give each ``every``-th transcript an age, so that it is not live."""
    moment = time.time() - days * DAY
    for path in sorted((config / "projects").rglob("*.jsonl"))[::every]:
        os.utime(path, (moment, moment))


def main() -> int:
    """Measure the vault alone: ``python -m benchmarks.vault [FOLDER OF TRANSCRIPTS]``; 0."""
    if len(sys.argv) > 1:
        codecs(Path(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        vaults(Bench(Path(scratch)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

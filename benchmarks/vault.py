"""Measure the vault with 3,000 sessions: archive, archive again, list, verify and restore.

With a folder of transcripts, compare codecs, and compare a link, a copy and a pack.
"""

from __future__ import annotations

import bz2
import hashlib
import json
import lzma
import os
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.library import FILE_COUNT, Library, format_machine_load, print_note, print_row
from resume_hooks.archive.vault.packs import XZ_PRESET, PackWriter
from resume_hooks.sessions.archived.manifest import ArchivedFile
from resume_hooks.sessions.archived.unpack import CHUNK_BYTES

ROUNDS = 3
SAMPLED_FILE_COUNT = 60
"""The codecs are compared with this number of files, the largest ones of the folder."""

TRANSCRIPT_SIZES = (100_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 20_000_000)
"""The sizes in bytes of the transcripts that are linked, copied and packed. At the start of a
session, one transcript may take 50 ms."""

DAY_SECONDS = 24 * 60 * 60
CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "xz -1": (lambda raw: lzma.compress(raw, preset=1), lzma.decompress),
    f"xz -{XZ_PRESET}, ours": (lambda raw: lzma.compress(raw, preset=XZ_PRESET), lzma.decompress),
    "xz -6": (lambda raw: lzma.compress(raw, preset=6), lzma.decompress),
    "bz2 -9": (bz2.compress, bz2.decompress),
    "zlib -6": (zlib.compress, zlib.decompress),
}


def print_vault_rows(bench: Bench) -> None:
    """Print the rows for the vault."""
    library = Library(bench, bench.work.parent / "kept-library")
    print(
        f"\n{f'the vault, {FILE_COUNT:,} sessions':52} {'ms':>8} {'cpu ms':>8}   {format_machine_load()}"
    )
    set_transcript_ages(library.config, 1)
    shell = library.bench.shell_run
    print_row("archive --all, none kept", library.run(shell("archive", "--all")), "")
    print_row(
        "archive --all, all kept", library.measure_medians(shell("archive", "--all"), ROUNDS), ""
    )
    print_row(
        "archive --list --json",
        library.measure_medians(shell("archive", "--list", "--json"), ROUNDS),
        "",
    )
    print_note(
        f"memory of archive --all {library.measure_peak_megabytes(shell('archive', '--all')):,.0f} MB"
    )
    kept = json.loads(library.run(shell("archive", "--list", "--json")).output)["data"]["vault"]
    whole, packed = (sum(int(each[name]) for each in kept) for name in ("size", "stored"))
    print_note(f"{whole / 1e6:,.0f} MB to {packed / 1e6:,.1f} MB, {packed / whole:.1%}")
    print_row("archive --verify", library.run(shell("archive", "--verify")), "")
    big = max(kept, key=lambda each: int(each["size"]))
    Path(big["file"]).unlink()
    print_row(
        f"restore of {big['size'] / 1e6:,.1f} MB",
        library.run(shell("restore", big["session_id"])),
        "",
    )
    shutil.rmtree(library.config.parent)


def print_codecs(folder: Path) -> None:
    """Print the compression and the speed of each codec for the largest transcripts."""
    files = sorted(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)[
        -SAMPLED_FILE_COUNT:
    ]
    contents = [path.read_bytes() for path in files]
    total = sum(map(len, contents))
    print(
        f"\n{f'codecs, {total / 1e6:,.0f} MB in {len(files)} files':52} {'share':>8} {'MB/s':>8} {'back':>8}"
    )
    for name, (pack, unpack) in CODECS.items():
        begun = time.process_time()
        packed = [pack(raw) for raw in contents]
        middle = time.process_time()
        for raw in packed:
            unpack(raw)
        back = time.process_time() - middle
        speed = total / (middle - begun) / 1e6
        print(
            f"{name:52} {sum(map(len, packed)) / total:8.1%} {speed:8.0f} {total / back / 1e6:8.0f}",
            flush=True,
        )


def print_archiving_times(folder: Path) -> None:
    """Print how long it takes to link, copy and pack a transcript.

    The times include syncing, reading back and comparing a copy or pack.
    """
    whole = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.jsonl")))
    print(
        f"\n{'a transcript into the vault, ms':40} {'link':>8} {'copy':>8} {'pack':>8} {'share':>8}   "
        f"{format_machine_load()}"
    )
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        source = Path(scratch) / "source"
        for size in TRANSCRIPT_SIZES:
            source.write_bytes(whole[:size])
            linked, copied, packed = (
                measure_median_ms(method, source, Path(scratch)) for method in (link, copy, pack)
            )
            share = (Path(scratch) / f"{size}-pack-0").stat().st_size / size
            print(
                f"{f'{size / 1e6:.1f} MB':40} {linked:8.2f} {copied:8.1f} {packed:8.1f} {share:8.1%}",
                flush=True,
            )


def link(source: Path, target: Path) -> None:
    """Create a hard link to a file."""
    target.hardlink_to(source)


def copy(source: Path, target: Path) -> None:
    """Copy a file, sync the copy, and compare it with the file."""
    hashed = hashlib.sha256()
    with source.open("rb") as old, target.open("w+b", buffering=0) as new:
        while piece := old.read(CHUNK_BYTES):
            hashed.update(piece)
            new.write(piece)
        os.fsync(new.fileno())
        new.seek(0)
        if hashlib.file_digest(new, "sha256").digest() != hashed.digest():
            raise OSError(None, "The copy differs from the original", str(target))


def pack(source: Path, target: Path) -> None:
    """Pack a file as the vault does."""
    with PackWriter(str(target.parent), target.name) as writer, source.open("rb") as stream:
        draft = ArchivedFile(source.name, 0, "", 0, 0o600, "", 0, 0)
        writer.add_file(draft, iter(lambda: stream.read(CHUNK_BYTES), b""))
        writer.finish_pack()


def measure_median_ms(method: Callable[[Path, Path], None], source: Path, folder: Path) -> float:
    """Return the median time of a few rounds in milliseconds. Each round writes another file."""
    spent = []
    for number in range(ROUNDS):
        target = folder / f"{source.stat().st_size}-{method.__name__}-{number}"
        begun = time.perf_counter()
        method(source, target)
        spent.append((time.perf_counter() - begun) * 1000)
    return statistics.median(spent)


def set_transcript_ages(config: Path, days: int, step: int = 1) -> None:
    """Set the time of every ``step``-th transcript to ``days`` days ago.

    A session with an old transcript does not count as open.
    """
    moment = time.time() - days * DAY_SECONDS
    for path in sorted((config / "projects").rglob("*.jsonl"))[::step]:
        os.utime(path, (moment, moment))


def main() -> int:
    """Measure the vault alone. Return 0.

    ``python -m benchmarks.vault [FOLDER OF TRANSCRIPTS]``
    """
    if len(sys.argv) > 1:
        print_codecs(Path(sys.argv[1]))
        print_archiving_times(Path(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        print_vault_rows(Bench(Path(scratch)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Transcripts, and lines of them, that clients may choke on. Standard library, Python 3.9: a start asks, too.

Measured in 2.1.42, 2.1.112 and 2.1.330: what stands before a compaction costs next to nothing, each MB of the live part
20 ms, 8 MB of memory and a MB of every request; of an answer that is drawn 2.4 s and 500 MB. Users saw clients hang.
"""

from __future__ import annotations

import mmap

GIANT = 100_000_000  # bytes from which on clients were reported to hang over a transcript, or run out of memory
GIANT_LINE = 10_000_000  # bytes that no request can hold: 2.5 million tokens, or more images than the API takes


def longest_line(path: str) -> int:
    """Bytes of the longest line of a file. OSError where it can't be read; 0 for an empty one."""
    longest = start = 0
    with open(path, "rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # it is empty
            return 0
        with content:
            while start < len(content):
                # What ends within the length of the longest so far is none: whole lines are passed over at once.
                ended = content.rfind(b"\n", start, start + longest + 1)
                if ended < 0:
                    ended = content.find(b"\n", start + longest)
                    ended = len(content) if ended < 0 else ended
                    longest = max(longest, ended - start)
                start = ended + 1
    return longest

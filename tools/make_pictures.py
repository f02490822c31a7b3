"""Make the pictures of the README and the guide from the real client and the real command line.

Everything runs offline in a temporary home. Usage: ``python -m tools.make_pictures [NAME ...]``.
The client that docs/testing.md describes must be installed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, Tui, find_client
from tests.e2e.harness.emulator import Emulator
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import ENGINE_ENV, build_plugin, remove_module, wait_for_child
from tests.screens import Screen
from tools import pictured
from tools.svg import Cell, draw_animation, draw_picture

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COLUMN_COUNT = 100
PROJECT = "uploader"
PATH = os.pathsep.join([os.environ["PATH"], os.path.dirname(sys.executable)])
"""A PATH that contains ``resume-hooks``. Otherwise the pictures would show the path of the
launcher."""

NO_CLIPBOARD_VARIABLES = {"RESUME_HOOKS_CLIPBOARD": "none"}
XCLIP_SCRIPT = '#!/bin/sh\ncase "$*" in *-o*) cat "$0.kept" ;; *) cat > "$0.kept" ;; esac\n'
"""A script that replaces the clipboard, so that cards look as they do on a desktop."""

Rows = list[list[Cell]]


def read_rows(emulator: Emulator, home: str) -> Rows:
    """Return the screen as cells. The home folder is replaced by ``~``."""
    screen = emulator._screen  # noqa: SLF001 - the harness shows text alone
    rows = []
    for number in range(screen.lines):
        found = screen.buffer[number]
        cells = [found[column] for column in range(screen.columns)]
        rows.append(
            _replace_home([Cell(c.data, c.fg, c.bg, c.bold, c.reverse) for c in cells], home)
        )
    return rows


def _replace_home(row: list[Cell], home: str) -> list[Cell]:
    for found, shown in ((home, "~"), (re.sub(r"[^A-Za-z0-9]", "-", home), "-home-ann")):
        text = "".join(cell.character or " " for cell in row)
        while (at := text.find(found)) >= 0:
            middle = [row[at]._replace(character=character) for character in shown]
            row = [
                *row[:at],
                *middle,
                *row[at + len(found) :],
                *[Cell(" ")] * (len(found) - len(shown)),
            ]
            text = "".join(cell.character or " " for cell in row)
    return row


def cut_rows(rows: Rows, first: str, last: str) -> Rows:
    """Return the rows from the last match of ``first`` to the next match of ``last``.

    Empty rows at the end are removed.
    """
    texts = ["".join(cell.character for cell in row).rstrip() for row in rows]
    start = max(number for number, text in enumerate(texts) if re.search(first, text))
    ends = (number for number, text in enumerate(texts) if number > start and re.search(last, text))
    end = next(ends, len(rows))
    while end > start and not texts[end - 1].strip():
        end -= 1
    return rows[start:end]


class PictureHome:
    """A home with the sessions of the pictures, in which the client and the command line run."""

    def __init__(self, home: ClientHome, folder: Path) -> None:
        self.home, self.folder = home, folder
        pictured.write_sessions(home.project_folder, str(home.cwd))

    @contextmanager
    def run_client(self, rows: int, *, modules: bool = False) -> Iterator[Tui]:
        """Start the client in the session that is nearly full.

        If ``modules`` is false, the client does not load the plugin's module, and shows the
        plugin's answers as cards.
        """
        plugin = build_plugin(self.folder / "plugin")
        if not modules:
            remove_module(plugin)
        with (
            MockApi() as api,
            Tui(
                find_client(NEWEST_VERSION), self.home, api, columns=COLUMN_COUNT, rows=rows
            ) as tui,
        ):
            tui.start(
                plugin_dir=plugin,
                extra_env=ENGINE_ENV | self._install_clipboard(),
                resume=pictured.SESSION,
            )
            yield tui

    def wait_for_screen(self, tui: Tui, wait: str) -> Rows:
        """Return the client's screen after ``wait`` has appeared on it and it has stopped changing."""
        tui.wait_for(wait)
        tui.wait_until_idle()
        return read_rows(tui._child_and_emulator()[1], str(self.home.root))  # noqa: SLF001 - the harness shows text alone

    def screen_after_prompts(self, *prompts: str, rows: int = 60, wait: str) -> Rows:
        """Type the prompts, and return the client's screen when ``wait`` appears on it."""
        with self.run_client(rows) as tui:
            for prompt in prompts:
                tui.submit(prompt if prompt != "/resume" else self.find_pasted_line())
                tui.wait_until_idle()
            return self.wait_for_screen(tui, wait)

    def find_pasted_line(self) -> str:
        """Return the line that a handoff copied to the clipboard."""
        return f"/resume {self._wait_for_child().stem}"

    def _wait_for_child(self) -> Path:
        parent = self.home.project_folder / f"{pictured.SESSION}.jsonl"
        return wait_for_child(self.home, parent)

    def _install_clipboard(self) -> dict[str, str]:
        tools = self.home.root / "bin"
        tools.mkdir(exist_ok=True)
        (tools / "xclip").write_text(XCLIP_SCRIPT)
        (tools / "xclip").chmod(0o755)
        return {
            "PATH": os.pathsep.join([str(tools), PATH]),
            "DISPLAY": ":99",
            "RESUME_HOOKS_CLIPBOARD": "native",
        }

    def screen_after_verb(
        self, *words: str, rows: int = 44, wait: str, key: str = "", then: str = ""
    ) -> Rows:
        """Run a verb, and return the screen when ``wait`` appears on it, below a row with the typed words.

        If ``key`` is given, press this key, and return the screen when ``then`` appears on it.
        """
        environ = {
            "HOME": str(self.home.root),
            "CLAUDE_CONFIG_DIR": str(self.home.config),
            "PATH": PATH,
            **NO_CLIPBOARD_VARIABLES,
        }
        wide = (
            COLUMN_COUNT if key else COLUMN_COUNT + 20
        )  # If the home is shown as ~, paths are shorter.
        notes = Path(tempfile.mkdtemp(dir=self.home.tmp))
        with Screen(
            words, folder=self.home.cwd, environ=environ, notes=notes, columns=wide, rows=rows
        ) as screen:
            screen.wait_for(wait)
            if key:
                screen.key(key)
                screen.wait_for(then)
            else:
                screen.wait_for_end()
            shown = read_rows(screen._emulator, str(self.home.root))  # noqa: SLF001 - as above
        line = [
            Cell("$", "green", is_bold=True),
            *(Cell(c, is_bold=True) for c in f" {shlex.join(['resume-hooks', *words])}"),
        ]
        return [line, *shown]


SCREEN_ROW_COUNT = 30
"""The number of the client's rows in the animated picture."""

INPUT_BOX_PATTERN = r"^─{20,}|/effort$"
CARD_HEADING_PATTERN = r"operation blocked by hook"
NEVER_MATCHING_PATTERN = r"(?!)"
CLIENT_LOGO_PATTERN = "▐▛"


def make_card_picture(words: str, wait: str) -> Callable[[PictureHome], Rows]:
    """Return a function that returns the screen with the card of a trigger. ``words`` is the typed prompt."""
    return lambda home: cut_rows(
        home.screen_after_prompts(f"/resume-hooks:{words}", wait=wait),
        CARD_HEADING_PATTERN,
        INPUT_BOX_PATTERN,
    )


def draw_pasted_session(home: PictureHome) -> Rows:
    """Return the screen of the new session after the line with /resume was pasted."""
    rows = home.screen_after_prompts(
        f"/resume-hooks:handoff {pictured.NEXT_STEP}", "/resume", wait="(?i)next step"
    )
    return cut_rows(rows, CLIENT_LOGO_PATTERN, INPUT_BOX_PATTERN)


def draw_continuation(home: PictureHome) -> list[Rows]:
    """Return the four screens of the animated picture.

    They show the question of a trim, a typed handoff, the new session, and the next turn in it.
    """
    with home.run_client(SCREEN_ROW_COUNT, modules=True) as tui:
        # After a space no menu is open. A menu would use Enter to choose its first row.
        tui.type("/trim ")
        tui.key("Enter")
        frames = [home.wait_for_screen(tui, "1. Open the trimmed copy")]
        tui.wait_until_idle(2)  # A key that comes too early would be typed into the input box.
        tui.key("Escape")
        tui.wait_until_gone("1. Open the trimmed copy")
        tui.wait_until_idle()
        tui.type(f"/handoff {pictured.NEXT_STEP}")
        frames.append(home.wait_for_screen(tui, pictured.NEXT_STEP))
        tui.key("Enter")
        frames.append(home.wait_for_screen(tui, "(?i)next step: "))
        tui.api.script = [pictured.ANSWER]
        tui.key("Enter")
        return [*frames, home.wait_for_screen(tui, pictured.ANSWER[:20])]


def draw_chooser(home: PictureHome) -> Rows:
    """Return the list of sessions with the preview of the marked session."""
    rows = home.screen_after_verb(
        "resume",
        rows=22,
        wait="Add --since.*\n(.*\n)*.*turn",
        key="Down",
        then=r"newest first\n(.*\n)*1 · ",
    )
    return cut_rows(rows, r"^\$ ", NEVER_MATCHING_PATTERN)


PICTURES: dict[str, tuple[str, Callable[[PictureHome], Rows]]] = {
    "resume": ("The card of /resume-hooks:resume", make_card_picture("resume", "Table: ")),
    "handoff": ("A handoff", make_card_picture(f"handoff {pictured.NEXT_STEP}", "in a shell")),
    "pasted": ("The fresh session", draw_pasted_session),
    "trim": ("What a trim would save", make_card_picture("trim", "largest")),
    "chooser": ("resume-hooks resume", draw_chooser),
    "search": (
        "resume-hooks search",
        lambda home: cut_rows(
            home.screen_after_verb("search", *pictured.QUESTION, wait=r"read: (?s:.*)read: "),
            r"^\$ ",
            NEVER_MATCHING_PATTERN,
        ),
    ),
    "lineage": (
        "resume-hooks lineage",
        lambda home: cut_rows(
            home.screen_after_verb("lineage", pictured.SESSION[:8], wait=r"2\."),
            r"^\$ ",
            NEVER_MATCHING_PATTERN,
        ),
    ),
}
"""Maps the name of each picture to the title of its window and to the function that makes its
screen."""

ANIMATED_PICTURES = {"going-on": ("A full session goes on", draw_continuation)}
"""Maps the name of each animated picture to its title and to the function that makes its screens.
"""


@contextmanager
def open_picture_home() -> Iterator[PictureHome]:
    """Yield a new home with the pictures' sessions, in a temporary folder."""
    root = Path(tempfile.mkdtemp(prefix="p"))
    home = ClientHome(root / "ann", PROJECT)
    try:
        yield PictureHome(home, root)
    finally:
        home.end_processes()
        shutil.rmtree(root, ignore_errors=True)


def main(names: Sequence[str]) -> int:
    """Make the pictures with these names, or all pictures if there are no names.

    Return 0, or 2 for an unknown name.
    """
    known = [*ANIMATED_PICTURES, *PICTURES]
    if unknown := set(names) - set(known):
        sys.stderr.write(f"No such picture: {', '.join(unknown)}. There are: {', '.join(known)}\n")
        return 2
    FOLDER.mkdir(exist_ok=True)
    for name in names or known:
        with open_picture_home() as here:
            if name in ANIMATED_PICTURES:
                title, make_all = ANIMATED_PICTURES[name]
                source = draw_animation(make_all(here), title)
            else:
                title, make = PICTURES[name]
                source = draw_picture(make(here), title)
        (FOLDER / f"{name}.svg").write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

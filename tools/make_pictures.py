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

PICTURES_FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COLUMN_COUNT = 100
PROJECT_NAME = "uploader"
PATH_WITH_ENGINE = os.pathsep.join([os.environ["PATH"], os.path.dirname(sys.executable)])
"""The value of PATH with the folder of ``resume-hooks``. Otherwise the pictures would show the path of the
launcher."""

CLIPBOARD_OFF_ENVIRON = {"RESUME_HOOKS_CLIPBOARD": "none"}
XCLIP_SCRIPT = '#!/bin/sh\ncase "$*" in *-o*) cat "$0.kept" ;; *) cat > "$0.kept" ;; esac\n'
"""A script that replaces the clipboard, so that cards look as they do on a desktop."""

ScreenRows = list[list[Cell]]


def read_rows(emulator: Emulator, home: str) -> ScreenRows:
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


def cut_rows(rows: ScreenRows, first_pattern: str, end_pattern: str) -> ScreenRows:
    """Return the rows from the last match of ``first_pattern`` to the next match of ``end_pattern``.

    Empty rows at the end are removed.
    """
    texts = ["".join(cell.character for cell in row).rstrip() for row in rows]
    start = max(number for number, text in enumerate(texts) if re.search(first_pattern, text))
    ends = (
        number
        for number, text in enumerate(texts)
        if number > start and re.search(end_pattern, text)
    )
    end = next(ends, len(rows))
    while end > start and not texts[end - 1].strip():
        end -= 1
    return rows[start:end]


class PictureHome:
    """A home folder with the sessions that the pictures show. The client and the command line run in it."""

    def __init__(self, home: ClientHome, folder: Path) -> None:
        self.home, self.folder = home, folder
        pictured.write_sessions(home.project_folder, str(home.cwd))

    @contextmanager
    def run_client(self, row_count: int, *, with_modules: bool = False) -> Iterator[Tui]:
        """Start the client in the session that is nearly full.

        If ``with_modules`` is false, the client does not load the plugin's module, and shows the
        plugin's answers as cards.
        """
        plugin = build_plugin(self.folder / "plugin")
        if not with_modules:
            remove_module(plugin)
        with (
            MockApi() as api,
            Tui(
                find_client(NEWEST_VERSION), self.home, api, columns=COLUMN_COUNT, rows=row_count
            ) as tui,
        ):
            tui.start(
                plugin_dir=plugin,
                extra_env=ENGINE_ENV | self._install_clipboard(),
                resume=pictured.SESSION_ID,
            )
            yield tui

    def wait_for_screen(self, tui: Tui, awaited_pattern: str) -> ScreenRows:
        """Return the client's screen once ``awaited_pattern`` matches it and it no longer changes."""
        tui.wait_for(awaited_pattern)
        tui.wait_until_idle()
        return read_rows(tui._child_and_emulator()[1], str(self.home.root))  # noqa: SLF001 - the harness shows text alone

    def screen_after_prompts(
        self, *prompts: str, row_count: int = 60, awaited_pattern: str
    ) -> ScreenRows:
        """Submit the prompts to the client, and return its screen when ``awaited_pattern`` matches it."""
        with self.run_client(row_count) as tui:
            for prompt in prompts:
                tui.submit(prompt if prompt != "/resume" else self.find_pasted_line())
                tui.wait_until_idle()
            return self.wait_for_screen(tui, awaited_pattern)

    def find_pasted_line(self) -> str:
        """Return the line that a handoff copied to the clipboard."""
        return f"/resume {self._wait_for_child().stem}"

    def _wait_for_child(self) -> Path:
        parent = self.home.project_folder / f"{pictured.SESSION_ID}.jsonl"
        return wait_for_child(self.home, parent)

    def _install_clipboard(self) -> dict[str, str]:
        tools = self.home.root / "bin"
        tools.mkdir(exist_ok=True)
        (tools / "xclip").write_text(XCLIP_SCRIPT)
        (tools / "xclip").chmod(0o755)
        return {
            "PATH": os.pathsep.join([str(tools), PATH_WITH_ENGINE]),
            "DISPLAY": ":99",
            "RESUME_HOOKS_CLIPBOARD": "native",
        }

    def screen_after_verb(
        self,
        *words: str,
        row_count: int = 44,
        awaited_pattern: str,
        key_to_press: str = "",
        pattern_after_key: str = "",
    ) -> ScreenRows:
        """Run a verb, and return its screen when ``awaited_pattern`` matches the screen.

        With ``key_to_press``, then press this key, and return the screen when ``pattern_after_key``
        matches it. The first row that is returned is the command line, after a ``$``.
        """
        environ = {
            "HOME": str(self.home.root),
            "CLAUDE_CONFIG_DIR": str(self.home.config),
            "PATH": PATH_WITH_ENGINE,
            **CLIPBOARD_OFF_ENVIRON,
        }
        wide = (
            COLUMN_COUNT if key_to_press else COLUMN_COUNT + 20
        )  # If the home is shown as ~, paths are shorter.
        notes = Path(tempfile.mkdtemp(dir=self.home.tmp))
        with Screen(
            words, folder=self.home.cwd, environ=environ, notes=notes, columns=wide, rows=row_count
        ) as screen:
            screen.wait_for(awaited_pattern)
            if key_to_press:
                screen.key(key_to_press)
                screen.wait_for(pattern_after_key)
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


def make_card_picture(prompt: str, awaited_pattern: str) -> Callable[[PictureHome], ScreenRows]:
    """Return a function that draws the card that answers a prompt. ``prompt`` is without ``/resume-hooks:``."""
    return lambda home: cut_rows(
        home.screen_after_prompts(f"/resume-hooks:{prompt}", awaited_pattern=awaited_pattern),
        CARD_HEADING_PATTERN,
        INPUT_BOX_PATTERN,
    )


def draw_pasted_session(home: PictureHome) -> ScreenRows:
    """Return the screen of the new session after the line with /resume was pasted."""
    rows = home.screen_after_prompts(
        f"/resume-hooks:handoff {pictured.NEXT_STEP}", "/resume", awaited_pattern="(?i)next step"
    )
    return cut_rows(rows, CLIENT_LOGO_PATTERN, INPUT_BOX_PATTERN)


def draw_continuation(home: PictureHome) -> list[ScreenRows]:
    """Return the four screens of the animated picture.

    They show the question of a trim, a typed handoff, the new session, and the next turn in it.
    """
    with home.run_client(SCREEN_ROW_COUNT, with_modules=True) as tui:
        # After the space the menu of commands is closed. Otherwise, Enter would choose the menu's
        # first row.
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
        tui.api.script = [pictured.ANSWER_TEXT]
        tui.key("Enter")
        return [*frames, home.wait_for_screen(tui, pictured.ANSWER_TEXT[:20])]


def draw_chooser(home: PictureHome) -> ScreenRows:
    """Return the list of sessions with the preview of the marked session."""
    rows = home.screen_after_verb(
        "resume",
        row_count=22,
        awaited_pattern="Add --since.*\n(.*\n)*.*turn",
        key_to_press="Down",
        pattern_after_key=r"newest first\n(.*\n)*1 · ",
    )
    return cut_rows(rows, r"^\$ ", NEVER_MATCHING_PATTERN)


PICTURES: dict[str, tuple[str, Callable[[PictureHome], ScreenRows]]] = {
    "resume": ("The card of /resume-hooks:resume", make_card_picture("resume", "Table: ")),
    "handoff": ("A handoff", make_card_picture(f"handoff {pictured.NEXT_STEP}", "in a shell")),
    "pasted": ("The fresh session", draw_pasted_session),
    "trim": ("What a trim would save", make_card_picture("trim", "largest")),
    "chooser": ("resume-hooks resume", draw_chooser),
    "search": (
        "resume-hooks search",
        lambda home: cut_rows(
            home.screen_after_verb(
                "search", *pictured.SEARCH_ARGUMENTS, awaited_pattern=r"read: (?s:.*)read: "
            ),
            r"^\$ ",
            NEVER_MATCHING_PATTERN,
        ),
    ),
    "lineage": (
        "resume-hooks lineage",
        lambda home: cut_rows(
            home.screen_after_verb("lineage", pictured.SESSION_ID[:8], awaited_pattern=r"2\."),
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
    home = ClientHome(root / "ann", PROJECT_NAME)
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
    PICTURES_FOLDER.mkdir(exist_ok=True)
    for name in names or known:
        with open_picture_home() as here:
            if name in ANIMATED_PICTURES:
                title, make_all = ANIMATED_PICTURES[name]
                source = draw_animation(make_all(here), title)
            else:
                title, make = PICTURES[name]
                source = draw_picture(make(here), title)
        (PICTURES_FOLDER / f"{name}.svg").write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Draw the picker as a full screen. The terminal is restored at the end, even after a signal.

The layout fits any terminal. From top to bottom it has a heading, the search field, the list, a
preview, and a line with the keys. A wide terminal has the preview next to the list. On a small
terminal the list keeps as many lines as possible, and the lines around it are left out first.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    ConditionalContainer,
    Container,
    Dimension,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from resume_hooks.cli.output import find_colour_preference
from resume_hooks.cli.picker.chooser_threads import (
    ContentSearch,
    PreviewReader,
    SearchAnswer,
    SearchRequest,
    SessionLoader,
)
from resume_hooks.cli.picker.sequences import filter_keys
from resume_hooks.hooks.session_list.preview import KINDS, describe_session
from resume_hooks.hooks.session_list.rows import (
    cut_to_columns,
    hit_line,
    session_line,
    shorten_home,
    wrap_to_columns,
)
from resume_hooks.hooks.session_list.state import Choices, ListEntry
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession
from resume_hooks.system.text import format_count

# the number of seconds to wait for the rest of a sequence after Esc, long enough for a slow
# connection
ESCAPE_WAIT_SECONDS = 0.1
# signals that end the picker; they are raised again when the terminal is restored
ENDING_SIGNALS = signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)
LINES_PER_PAGE_KEY = 10  # the number of lines by which a page key moves the selection
LINES_TO_LIST_END = 10**9
LINES_MOVED_BY_KEY = {
    "up": -1, "c-p": -1, "down": 1, "c-n": 1,
    "pageup": -LINES_PER_PAGE_KEY, "pagedown": LINES_PER_PAGE_KEY, "home": -LINES_TO_LIST_END, "end": LINES_TO_LIST_END,
}  # fmt: skip

ListSessions = Callable[[bool], Iterator[ListEntry]]
ShowSearchAnswer = Callable[[SearchAnswer | None], None]
MakeContentSearch = Callable[[ShowSearchAnswer], ContentSearch]
KeyAction = Callable[[ListedSession, str], str | ListedSession]
"""A key's function: it takes a session and the message on the screen, and returns a message or a
session."""

BRIEF_KEY_HELP = "Enter opens · Tab preview · Ctrl+A all projects · Esc closes"
ALL_KEYS_HINT = " · F1 or ? all keys"
ALL_KEYS_HELP = (
    (
        "type words      find sessions by words in title, tag, branch, folder, id or first prompt, then in turns"
    ),
    "Up Down PgUp PgDn Home End    move          Enter    opens          Esc, Ctrl+C    closes",
    "Tab             change the preview: outline, lineage, table of all ways to continue",
    "Ctrl+A          list all projects, or only this project    Ctrl+U    delete the words",
    "Ctrl+B          undo the last compaction: open a fork that ends before it",
    (
        "Ctrl+Y          copy the command that starts the client    F1, or ? before you type    show or hide help"
    ),
)
# the minimum number of terminal columns for a preview next to the list; the preview has 79 columns
MIN_COLUMNS_FOR_PREVIEW_NEXT_TO_LIST = 140
MIN_ROWS_FOR_PREVIEW_BELOW = 18  # the minimum number of terminal rows for a preview below the list
# the minimum number of terminal columns for a preview below the list
MIN_COLUMNS_FOR_PREVIEW_BELOW = 44
# the minimum number of terminal rows for the list of all keys
MIN_ROWS_FOR_HELP = 14
PREVIEW_COLUMNS = 79
MAX_HIT_LINES = 5  # the maximum number of lines of a search hit in the preview
SCREEN_STYLE = Style.from_dict(
    {
        "head": "bold",
        "chosen": "reverse",
        "aside": "ansibrightblack",
        "kind": "underline",
        "message": "bold",
    }
)


class OfferedSessions(NamedTuple):
    """The sessions to choose from, and what the user can do with them.

    ``list_sessions`` returns the sessions of the project of ``folder``, or of all projects if its
    argument is True. ``key_actions`` maps additional keys to functions. ``make_content_search``
    creates the object that searches the turns, or is None if turns are not searched.
    """

    list_sessions: ListSessions
    folder: str
    key_actions: Mapping[str, KeyAction]
    make_content_search: MakeContentSearch | None = None


class Chooser:
    """The screen on which the user chooses a session."""

    def __init__(
        self,
        offered_sessions: OfferedSessions,
        where: Where,
        *,
        typed_text: str = "",
        shows_all_projects: bool = False,
    ) -> None:
        self.choices = Choices(typed_text)
        self.preview_kind = KINDS[0]
        self.message = ""
        self.shows_help = False
        self.shows_all_projects = shows_all_projects
        self._offered_sessions = offered_sessions
        self._ending_signal: signal.Signals | None = None
        make_content_search = offered_sessions.make_content_search
        self._content_search = (
            make_content_search(
                lambda answer: self._call_in_event_loop(lambda: self._show_search_answer(answer))
            )
            if make_content_search
            else None
        )
        self._current_search: SearchRequest | None = None
        """The search request that has not been answered yet."""
        self._unindexed_file_count = 0
        """Number of session files that the index does not contain yet."""
        self._input_buffer = Buffer(multiline=False, on_text_changed=self._filter_sessions)
        self._input_buffer.text = typed_text
        self._input_buffer.cursor_position = len(typed_text)
        self._loader: SessionLoader | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.app: Application[ListedSession | None] = Application(
            layout=make_screen_layout(self, self._input_buffer),
            key_bindings=self._make_key_bindings(offered_sessions.key_actions),
            style=SCREEN_STYLE,
            full_screen=True,
            color_depth=ColorDepth.DEPTH_1_BIT
            if find_colour_preference(where.environ) is False
            else None,
        )
        self.app.ttimeoutlen = ESCAPE_WAIT_SECONDS
        filter_keys(self.app.input)
        # While the screen closes, prompt_toolkit's invalidate fails in other threads.
        self._previews = PreviewReader(where, lambda: self._call_in_event_loop(self.app.invalidate))
        self.app.after_render += self._handle_first_paint

    def run_until_closed(self) -> ListedSession | None:
        """Show the screen. Return the session that the user chose, or None if the user left.

        If a signal closed the screen, end the process with that signal.
        """
        former_hook = threading.excepthook
        threading.excepthook = self._handle_thread_error
        try:
            chosen_session = self.app.run(pre_run=self._start_loading, set_exception_handler=False)
        except (EOFError, OSError) as error:
            if _is_terminal_open():
                if isinstance(error, OSError):
                    raise
                return None
            chosen_session, self._ending_signal = None, self._ending_signal or ENDING_SIGNALS[-1]
        finally:
            threading.excepthook = former_hook
            if self._loader is not None:
                self._loader.stop_loading()
            if self._content_search is not None:
                self._content_search.end_thread()
        if self._ending_signal is not None:
            # The terminal is restored now. End the process as if this module had not caught the
            # signal.
            os.kill(os.getpid(), self._ending_signal)
        return chosen_session

    @property
    def typed_text(self) -> str:
        """The words in the search field."""
        return self._input_buffer.text

    def describe_list(self) -> str:
        """Return the screen's heading, with the project and the number of listed sessions."""
        if self.shows_all_projects:
            scope = "all projects"
        else:
            scope = shorten_home(self._offered_sessions.folder)
        match_count, count = len(self.choices.matches), self.choices.session_count
        if match_count != count:
            count_text = f"{match_count:,} of {count:,}"
        else:
            count_text = f"{count:,}"
        if self._loader is not None and self._loader.is_done:
            loading_text = ""
        else:
            loading_text = " ..."
        if self._unindexed_file_count and self._input_buffer.text:
            unindexed_text = (
                f" · {format_count(self._unindexed_file_count, 'file')} not indexed yet"
            )
        else:
            unindexed_text = ""
        return f"Resume a session · {scope} · {count_text}{loading_text}{unindexed_text}"

    def describe_empty_list(self) -> str:
        """Return the reason why the list is empty."""
        if self._loader is None or not self._loader.is_done:
            return "  listing sessions ..."
        if self.choices.session_count:
            if self._current_search:
                return "  Searching the turns ..."
            return "  No session contains these words."
        if self.shows_all_projects:
            return "  No session here."
        return "  No session of this project: Ctrl+A lists all projects."

    def find_preview_lines(self, row: ListedSession) -> Sequence[str]:
        """Return the lines of a session's preview, of the kind that the user selected with Tab."""
        return self._previews.find_preview_lines(self.preview_kind, row)

    def terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows of the terminal."""
        size = self.app.output.get_size()
        return size.columns, size.rows

    def _make_key_bindings(self, key_actions: Mapping[str, KeyAction]) -> KeyBindings:
        keys = KeyBindings()
        for name, lines in LINES_MOVED_BY_KEY.items():
            keys.add(name)(lambda _event, lines=lines: self._move_selection(lines))
        # An eager binding acts on Esc without waiting for a longer sequence. The module
        # ``sequences`` has already dropped the sequences that begin with Esc.
        keys.add("escape", eager=True)(lambda _event: self._close(None))
        nothing_typed = Condition(lambda: not self._input_buffer.text)
        keys.add("c-d", filter=nothing_typed)(lambda _event: self._close(None))
        keys.add("?", filter=nothing_typed)(lambda _event: self._toggle_help())
        actions = {
            "c-c": lambda: self._close(None),
            "<sigint>": lambda: self._close(None),
            "enter": self._choose_marked_session,
            "tab": self._show_next_preview,
            "c-a": self._toggle_project_scope,
            "f1": self._toggle_help,
        }
        for name, action in actions.items():
            keys.add(name)(lambda _event, action=action: action())
        for name, key_action in key_actions.items():
            keys.add(name)(lambda _event, key_action=key_action: self._run_action(key_action))
        return keys

    def _move_selection(self, lines: int) -> None:
        self.message = ""  # The message was about the previously chosen session.
        self.choices.move_choice(lines)

    def _choose_marked_session(self) -> None:
        if self.choices.chosen_session is not None:
            self._close(self.choices.chosen_session)

    def _show_next_preview(self) -> None:
        self.preview_kind = KINDS[(KINDS.index(self.preview_kind) + 1) % len(KINDS)]

    def _toggle_project_scope(self) -> None:
        self.shows_all_projects = not self.shows_all_projects
        self._load_sessions()

    def _run_action(self, action: KeyAction) -> None:
        """Run the function of an additional key on the chosen session.

        If it returns a message, show the message. If it returns a session, close the screen with
        that session.
        """
        if self.choices.chosen_session is not None:
            outcome = action(self.choices.chosen_session, self.message)
        else:
            outcome = ""
        if isinstance(outcome, str):
            self.message = outcome
        else:
            self._close(outcome)

    def _toggle_help(self) -> None:
        self.shows_help = not self.shows_help

    def _close(self, chosen_session: ListedSession | None) -> None:
        if not self.app.is_done:  # Two keys that close the screen may arrive together.
            self.app.exit(result=chosen_session)

    def _close_after_bug(self, error: BaseException | None) -> None:
        """Close the screen after a bug, and let ``run_until_closed`` raise ``error``."""
        if not self.app.is_done:
            self.app.exit(exception=error or RuntimeError("the chooser failed"))

    def _start_loading(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(
            lambda _, context: self._close_after_bug(context.get("exception"))
        )
        for number in ENDING_SIGNALS:
            self._loop.add_signal_handler(number, self._end_by_signal, number)
        self._load_sessions()

    def _end_by_signal(self, signal_number: signal.Signals) -> None:
        self._ending_signal = signal_number
        self._close(None)

    def _load_sessions(self) -> None:
        if self._loader is not None:
            self._loader.stop_loading()
        self.choices = Choices(self._input_buffer.text)
        self._start_search()
        listing = self._offered_sessions.list_sessions(self.shows_all_projects)
        self._loader = SessionLoader(
            listing,
            lambda loader, entries: self._call_in_event_loop(
                lambda: self._add_sessions(loader, entries)
            ),
        )

    def _add_sessions(self, loader: SessionLoader, entries: list[ListEntry]) -> None:
        if loader is self._loader:
            self.choices.add_entries(entries)
            self.app.invalidate()

    def _filter_sessions(self, _buffer: Buffer) -> None:
        self.message = ""
        self.choices.filter_by_words(self._input_buffer.text)
        self._start_search()

    def _start_search(self) -> None:
        """Request a search of the turns for the typed words."""
        self._current_search = None
        if self._content_search is not None and not self._content_search.has_ended:
            self._current_search = SearchRequest(self._input_buffer.text, self.shows_all_projects)
            self._content_search.request_search(self._current_search)

    def _show_search_answer(self, answer: SearchAnswer | None) -> None:
        if answer is not None and answer.request == self._current_search:
            self._unindexed_file_count = answer.unindexed_file_count
            self.choices.set_hits(answer.hits)
        if answer is None or answer.request == self._current_search:
            self._current_search = None
            self.app.invalidate()

    def _handle_first_paint(self, _app: object) -> None:
        if self._content_search is not None:
            self._content_search.start_thread()

    def _handle_thread_error(self, failure: threading.ExceptHookArgs) -> None:
        """Handle an exception in one of the picker's threads.

        If the thread was loading the list, close the screen. Previews and searches are not
        essential, so their exceptions are only shown.
        """
        if failure.thread is self._previews.thread:
            self._previews.record_thread_failure(failure.exc_value)
        elif self._content_search is not None and failure.thread is self._content_search.thread:
            self.message = f"The turns can't be searched: {failure.exc_type.__name__}"
        else:
            self._call_in_event_loop(lambda: self._close_after_bug(failure.exc_value))

    def _call_in_event_loop(self, call: Callable[[], object]) -> None:
        if self._loop is not None:
            # The event loop may already be closed, because the user has left.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call)


def _is_terminal_open() -> bool:
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return True
    try:
        import termios
    except ImportError:  # Windows
        return True
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        return bool(error.args[0] != errno.EIO)
    return True


class PreviewPosition(NamedTuple):
    """Where a terminal shows the preview: next to the list or below it.

    Both fields are False if there is no preview.
    """

    is_next_to_list: bool
    is_below_list: bool


def find_preview_position(columns: int, rows: int) -> PreviewPosition:
    """Return where a terminal of this size has space for a preview."""
    is_next_to_list = columns >= MIN_COLUMNS_FOR_PREVIEW_NEXT_TO_LIST and rows >= 8
    return PreviewPosition(
        is_next_to_list,
        not is_next_to_list
        and rows >= MIN_ROWS_FOR_PREVIEW_BELOW
        and columns >= MIN_COLUMNS_FOR_PREVIEW_BELOW,
    )


class _LinesControl(UIControl):
    def __init__(self, make_lines: Callable[[int, int], list[tuple[str, str]]]) -> None:
        self._make_lines = make_lines

    def create_content(self, width: int, height: int) -> UIContent:
        lines = self._make_lines(width, height)

        def get_line(line_index: int) -> StyleAndTextTuples:
            return [lines[line_index]]

        return UIContent(get_line, len(lines), show_cursor=False)


def make_screen_layout(chooser: Chooser, input_buffer: Buffer) -> Layout:
    """Return the layout of the screen, with ``input_buffer`` as the search field."""
    input_window = Window(
        BufferControl(
            input_buffer, input_processors=[BeforeInput("search: ", style="class:aside")]
        ),
        height=1,
        dont_extend_height=True,
    )
    preview_beside = _show_container_if(
        lambda: find_preview_position(*chooser.terminal_size()).is_next_to_list,
        _make_preview_window(chooser, width=Dimension.exact(PREVIEW_COLUMNS)),
    )
    preview_below = _show_container_if(
        lambda: find_preview_position(*chooser.terminal_size()).is_below_list,
        _make_preview_window(
            chooser, height=lambda: Dimension.exact(chooser.terminal_size()[1] // 2)
        ),
    )
    divider = _show_container_if(
        lambda: find_preview_position(*chooser.terminal_size()).is_next_to_list,
        Window(width=1, char="│", style="class:aside"),
    )
    message = FormattedTextControl(lambda: [("class:message", chooser.message)])
    message_window = Window(
        message, wrap_lines=True, height=Dimension(min=1, max=4), dont_extend_height=True
    )
    list_window = Window(
        _LinesControl(lambda width, height: _draw_rows(chooser, width, height)),
        height=Dimension(min=1, weight=1),
    )

    # The hint about the list of all keys is left out if the terminal has too few rows for that
    # list.
    def format_key_line() -> str:
        if chooser.terminal_size()[1] >= MIN_ROWS_FOR_HELP:
            return BRIEF_KEY_HELP + ALL_KEYS_HINT
        return BRIEF_KEY_HELP

    return Layout(
        HSplit(
            [
                _show_container_if(
                    lambda: chooser.terminal_size()[1] >= 4,
                    _make_line_window(chooser.describe_list, "class:head"),
                ),
                input_window,
                VSplit([list_window, divider, preview_beside]),
                preview_below,
                _show_container_if(lambda: bool(chooser.message), message_window),
                _show_container_if(
                    lambda: chooser.shows_help and chooser.terminal_size()[1] >= MIN_ROWS_FOR_HELP,
                    _make_help_window(chooser),
                ),
                _show_container_if(
                    lambda: chooser.terminal_size()[1] >= 6,
                    _make_line_window(format_key_line, "class:aside"),
                ),
            ]
        ),
        focused_element=input_window,
    )


def _show_container_if(is_shown: Callable[[], bool], container: Container) -> Container:
    return ConditionalContainer(container, Condition(is_shown))


def _make_line_window(text: Callable[[], str], style: str) -> Window:
    return Window(
        _LinesControl(lambda width, _: [(style, cut_to_columns(text(), width))]),
        height=1,
        dont_extend_height=True,
    )


def _make_help_window(chooser: Chooser) -> Window:
    def wrap_help_lines(width: int, _height: int) -> list[tuple[str, str]]:
        lines = []
        for line in ALL_KEYS_HELP:
            for part in wrap_to_columns(line, width, 3):
                lines.append(("class:aside", part))
        return lines

    def choose_help_height() -> Dimension:
        return Dimension(
            min=len(ALL_KEYS_HELP), preferred=len(wrap_help_lines(chooser.terminal_size()[0], 0))
        )

    return Window(
        _LinesControl(wrap_help_lines), height=choose_help_height, dont_extend_height=True
    )


def _draw_rows(chooser: Chooser, width: int, height: int) -> list[tuple[str, str]]:
    now = time.time()
    visible_rows = chooser.choices.visible_rows(height)
    if not visible_rows:
        return [("class:aside", cut_to_columns(chooser.describe_empty_list(), width))]
    lines = []
    for row, is_chosen in visible_rows:
        hit = chooser.choices.find_turn_hit(row)
        if hit:
            line = hit_line(row, hit, width, is_chosen=is_chosen)
        else:
            line = session_line(row, width, now, is_chosen=is_chosen)
        lines.append(("class:chosen" if is_chosen else "", line))
    return lines


def _describe_turn_hit(chooser: Chooser, row: ListedSession, width: int) -> list[str]:
    """Return the lines that show a turn's matching text, if the session matches only because of this turn.

    Return no lines for a session whose title, tag or another field contains the words.
    """
    hit = chooser.choices.find_turn_hit(row)
    if hit:
        return [
            "",
            f"{hit.strength} · {hit.description}",
            *wrap_to_columns(hit.snippet, width, MAX_HIT_LINES),
        ]
    return []


def _make_preview_window(chooser: Chooser, **size: object) -> Window:
    def draw_preview_lines(width: int, height: int) -> list[tuple[str, str]]:
        row = chooser.choices.chosen_session
        if row is None:
            return [("", "")]
        kinds = "  ".join(f"[{kind}]" if kind == chooser.preview_kind else kind for kind in KINDS)
        text = [
            kinds,
            *describe_session(row),
            *_describe_turn_hit(chooser, row, width),
            "",
            *chooser.find_preview_lines(row),
        ]
        styles = ["class:kind", "class:head"]
        lines = []
        for index, line in enumerate(text[:height]):
            lines.append(
                (styles[index] if index < len(styles) else "", cut_to_columns(line, width))
            )
        return lines

    return Window(_LinesControl(draw_preview_lines), **size)  # type: ignore[arg-type]

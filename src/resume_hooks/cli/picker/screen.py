"""The picker on a terminal: a full screen that is left as it was found, whatever ends it.

The list is loaded, previews are made, and what was said is looked through, in threads of their own; only this one
touches the screen. Neither the first paint, a key nor leaving waits for them.
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
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import ColorDepth

from resume_hooks.cli.output import colour_wanted
from resume_hooks.cli.picker import view
from resume_hooks.cli.picker.sequences import keep_keys
from resume_hooks.errors import IndexDamaged, ResumeHooksError
from resume_hooks.hooks.session_list.preview import KINDS, preview
from resume_hooks.hooks.session_list.rows import home_short
from resume_hooks.hooks.session_list.said import Said, said_of
from resume_hooks.hooks.session_list.state import Choices, Listed
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession
from resume_hooks.system.text import counted

if TYPE_CHECKING:
    from resume_hooks.search.engine import Searcher
    from resume_hooks.search.index.connect import OpenIndex

ESCAPE = 0.1  # seconds that a lone Esc is waited for the rest of a key's sequence; enough for a slow line
EVERY = 0.05  # seconds between two pieces of a listing
ENDINGS = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))  # after the screen was given back
PAGE = 10  # lines that a page key moves by
FAR = 10**9
MOVES = {
    "up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -PAGE, "pagedown": PAGE, "home": -FAR, "end": FAR
}  # fmt: skip

Listing = Callable[[bool], Iterator[Listed]]
Deed = Callable[[ListedSession, str], str | ListedSession]
"""What a key does with a session of which something is said already: what is to be said of it, or the session that is
chosen in its place."""


BETWEEN_KEYS = 0.03  # seconds without a key after which words are looked for
LIMIT = 2.0  # seconds that the index is brought up to date for
LEAVING = 0.3  # seconds that leaving waits for the index to be closed


class Asked(NamedTuple):
    """Words that are looked for, and whether in all projects."""

    text: str
    everywhere: bool


class Answer(NamedTuple):
    """The best turns for some words; ``behind`` files are not in the index yet."""

    asked: Asked
    said: list[Said]
    behind: int


class _Stopped(Exception):
    """The chooser is left while the index is brought up to date."""


class ContentSearch:
    """Looks for words in what was said; ``told`` is called, from another thread, with what was found, at its end None.

    ``folder`` is where the project is that is meant where not all are. The index is opened once, and stays open.
    """

    def __init__(self, folder: str, where: Where, told: Callable[[Answer | None], None]) -> None:
        self._folder = folder
        self._where = where
        self._told = told
        self._changed = threading.Condition()
        self._wanted: Asked | None = None
        self._stopped = False
        self.ended = False
        """Whether nothing is looked for any more: the chooser was left, or there is no index to be used."""
        self.thread = threading.Thread(target=self._run, name="resume-hooks-contents", daemon=True)

    def start(self) -> None:
        """Open the index, once the screen is there."""
        if self.thread.ident is None:
            self.thread.start()

    def ask(self, asked: Asked) -> None:
        """Look for words, and no more for those before them."""
        with self._changed:
            self._wanted = asked
            self._changed.notify()

    def stop(self) -> None:
        """End it, and wait a little until the index is closed."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self.thread.is_alive():
            self.thread.join(LEAVING)

    def _run(self) -> None:
        try:
            self._look()
        finally:
            self.ended = True
            self._told(None)

    def _look(self) -> None:
        # 60 ms, for which the first paint does not wait.
        from resume_hooks.search.index.connect import opened_index

        for _ in range(2):
            try:
                with opened_index(self._where, limit=LIMIT, progress=self._go_on) as index:
                    self._serve(index)
            except IndexDamaged:  # it is removed by now, and is made anew
                continue
            except (ResumeHooksError, _Stopped):
                pass
            return

    def _go_on(self, _done: int, _total: int) -> None:
        if self._stopped:
            raise _Stopped

    def _serve(self, index: OpenIndex) -> None:
        from resume_hooks.search.engine import Searcher
        from resume_hooks.search.scope import Scope, project_at

        searchers: dict[bool, Searcher] = {}
        while (asked := self._next()) is not None:
            if asked.everywhere not in searchers:
                scope = Scope() if asked.everywhere else project_at(self._folder, self._where)
                searchers[asked.everywhere] = Searcher(index, scope, self._where)
            self._told(Answer(asked, said_of(searchers[asked.everywhere], asked.text), index.outcome.behind))

    def _next(self) -> Asked | None:
        """What to look for, once no key has come for a moment; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._wanted is not None)
            asked = None
            while not self._stopped and asked != self._wanted:
                asked = self._wanted
                self._changed.wait(BETWEEN_KEYS)
            self._wanted = None
            return None if self._stopped else asked


class Loading:
    """A listing under way; ``take`` is called from its thread with every piece, and once more, empty, at its end."""

    def __init__(self, found: Iterator[Listed], take: Callable[[Loading, list[Listed]], None]) -> None:
        self.done = False
        self._found = found
        self._take = take
        self._stopped = False
        # Nobody waits for it: a chooser that is left ends at once.
        threading.Thread(target=self._run, name="resume-hooks-listing", daemon=True).start()

    def stop(self) -> None:
        """Hand nothing over any more."""
        self._stopped = True

    def _run(self) -> None:
        piece: list[Listed] = []
        since = time.monotonic()
        for one in self._found:
            piece.append(one)
            if self._stopped:
                return
            if time.monotonic() - since >= EVERY:
                self._take(self, piece)
                piece, since = [], time.monotonic()
        self.done = True
        self._take(self, piece)


class Offered(NamedTuple):
    """What there is to choose from: the sessions of a listing, which is given whether all projects are meant.

    ``deeds`` are what further keys do with the session that is marked, ``contents`` looks into what was said.
    """

    sessions: Listing
    folder: str
    deeds: Mapping[str, Deed]
    contents: Callable[[Callable[[Answer | None], None]], ContentSearch] | None = None


class Chooser:
    """The screen on which somebody makes a choice."""

    def __init__(self, offered: Offered, where: Where, *, typed: str = "", everywhere: bool = False) -> None:
        self.choices = Choices(typed)
        self.kind = KINDS[0]
        self.message = ""
        self.helps = False
        self.everywhere = everywhere
        self._offered = offered
        self._ending: signal.Signals | None = None
        look = offered.contents
        self._contents = look(lambda answer: self._soon(lambda: self._tell(answer))) if look else None
        self._asked: Asked | None = None
        """What is being looked for in what was said."""
        self._behind = 0
        """Files that could not be looked through."""
        self._typed = Buffer(multiline=False, on_text_changed=self._search)
        self._typed.text = typed
        self._typed.cursor_position = len(typed)
        self._loading: Loading | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.app: Application[ListedSession | None] = Application(
            layout=view.layout(self, self._typed),
            key_bindings=self._keys(offered.deeds),
            style=view.STYLE,
            full_screen=True,
            color_depth=ColorDepth.DEPTH_1_BIT if colour_wanted(where.environ) is False else None,
        )
        self.app.ttimeoutlen = ESCAPE
        keep_keys(self.app.input)
        self._previews = Previews(where, self.app.invalidate)
        self.app.after_render += self._painted

    def run(self) -> ListedSession | None:
        """Return the session that was chosen, None if the user left. Ends the process after a signal."""
        before = threading.excepthook
        threading.excepthook = self._fell
        try:
            chosen = self.app.run(pre_run=self._begin, set_exception_handler=False)
        except (EOFError, OSError) as error:
            if _is_there():
                if isinstance(error, OSError):
                    raise
                return None
            chosen, self._ending = None, self._ending or ENDINGS[-1]
        finally:
            threading.excepthook = before
            if self._loading is not None:
                self._loading.stop()
            if self._contents is not None:
                self._contents.stop()
        if self._ending is not None:
            os.kill(os.getpid(), self._ending)  # now that the screen is given back, as if nobody had caught it
        return chosen

    def head(self) -> str:
        """What is listed, and how much of it."""
        what = "all projects" if self.everywhere else home_short(self._offered.folder)
        shown, count = len(self.choices.fitting), self.choices.count
        said = f"{shown:,} of {count:,}" if shown != count else f"{count:,}"
        more = "" if self._loading is not None and self._loading.done else " ..."
        behind = f" · {counted(self._behind, 'file')} not indexed yet" if self._behind and self._typed.text else ""
        return f"Resume a session · {what} · {said}{more}{behind}"

    def nothing(self) -> str:
        """Why the list is empty."""
        if self._loading is None or not self._loading.done:
            return "  looking for sessions ..."
        if self.choices.count:
            return "  Looking in what was said ..." if self._asked else "  No session holds these words."
        return "  No session here." if self.everywhere else "  No session of this project: Ctrl+A lists all projects."

    def preview(self, row: ListedSession) -> Sequence[str]:
        """The lines of the preview of a session."""
        return self._previews.of(self.kind, row)

    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""
        size = self.app.output.get_size()
        return size.columns, size.rows

    def _keys(self, deeds: Mapping[str, Deed]) -> KeyBindings:
        keys = KeyBindings()
        for name, by in MOVES.items():
            keys.add(name)(lambda _event, by=by: self._move(by))
        # Eager: alone it would wait for what could follow. Sequences that begin with it are swallowed (sequences).
        keys.add("escape", eager=True)(lambda _event: self._leave(None))
        nothing_typed = Condition(lambda: not self._typed.text)
        keys.add("c-d", filter=nothing_typed)(lambda _event: self._leave(None))
        keys.add("?", filter=nothing_typed)(lambda _event: self._explain())
        actions = {
            "c-c": lambda: self._leave(None),
            "<sigint>": lambda: self._leave(None),
            "enter": self._choose,
            "tab": self._next_preview,
            "c-a": self._widen,
            "f1": self._explain,
        }
        for name, action in actions.items():
            keys.add(name)(lambda _event, action=action: action())
        for name, deed in deeds.items():
            keys.add(name)(lambda _event, deed=deed: self._do(deed))
        return keys

    def _move(self, by: int) -> None:
        self.message = ""  # it is of the session that was marked
        self.choices.move(by)

    def _choose(self) -> None:
        if self.choices.chosen is not None:
            self._leave(self.choices.chosen)

    def _next_preview(self) -> None:
        self.kind = KINDS[(KINDS.index(self.kind) + 1) % len(KINDS)]

    def _widen(self) -> None:
        self.everywhere = not self.everywhere
        self._load()

    def _do(self, deed: Deed) -> None:
        """Show what a deed says of the session that is chosen, or leave with the one that it made."""
        done = deed(self.choices.chosen, self.message) if self.choices.chosen is not None else ""
        if isinstance(done, str):
            self.message = done
        else:
            self._leave(done)

    def _explain(self) -> None:
        self.helps = not self.helps

    def _leave(self, chosen: ListedSession | None) -> None:
        if not self.app.is_done:  # two keys may come at once
            self.app.exit(result=chosen)

    def _fail(self, error: BaseException | None) -> None:
        """End with a bug, which ``main`` reports like any other."""
        if not self.app.is_done:
            self.app.exit(exception=error or RuntimeError("the chooser failed"))

    def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self._fail(context.get("exception")))
        for number in ENDINGS:
            self._loop.add_signal_handler(number, self._end, number)
        self._load()

    def _end(self, number: signal.Signals) -> None:
        self._ending = number
        self._leave(None)

    def _load(self) -> None:
        if self._loading is not None:
            self._loading.stop()
        self.choices = Choices(self._typed.text)
        self._ask()
        listing = self._offered.sessions(self.everywhere)
        self._loading = Loading(listing, lambda source, piece: self._soon(lambda: self._add(source, piece)))

    def _add(self, source: Loading, found: list[Listed]) -> None:
        if source is self._loading:
            self.choices.add(found)
            self.app.invalidate()

    def _search(self, _buffer: Buffer) -> None:
        self.message = ""
        self.choices.search(self._typed.text)
        self._ask()

    def _ask(self) -> None:
        """Have what was typed looked for in what was said."""
        self._asked = None
        if self._contents is not None and not self._contents.ended:
            self._asked = Asked(self._typed.text, self.everywhere)
            self._contents.ask(self._asked)

    def _tell(self, answer: Answer | None) -> None:
        if answer is not None and answer.asked == self._asked:
            self._behind = answer.behind
            self.choices.tell(answer.said)
        if answer is None or answer.asked == self._asked:
            self._asked = None
            self.app.invalidate()

    def _painted(self, _app: object) -> None:
        if self._contents is not None:
            self._contents.start()

    def _fell(self, told: threading.ExceptHookArgs) -> None:
        """A bug in a thread: one of a preview costs it, so does one of what was said, one of the listing all."""
        if told.thread is self._previews.thread:
            self._previews.fail(told.exc_value)
        elif self._contents is not None and told.thread is self._contents.thread:
            self.message = f"What was said can't be looked through: {told.exc_type.__name__}"
        else:
            self._soon(lambda: self._fail(told.exc_value))

    def _soon(self, work: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # left meanwhile
                self._loop.call_soon_threadsafe(work)


def _is_there() -> bool:
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


READING = "reading ..."
PAUSE = 0.06  # seconds that somebody who runs through the list stays on a session at most
KEPT = 200  # previews that are kept


class Previews:
    """Previews by kind and session; ``changed`` is called, from another thread, when one that was wanted is there."""

    def __init__(self, where: Where, changed: Callable[[], None]) -> None:
        self._where = where
        self._changed = changed
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], list[str]] = {}
        self._wanted: tuple[str, ListedSession] | None = None
        self.thread: threading.Thread | None = None

    def of(self, kind: str, row: ListedSession) -> list[str]:
        """The lines of a preview, or that it is being read."""
        with self._lock:
            if (made := self._made.get((kind, row.path))) is not None:
                return made
            self._wanted = (kind, row)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="resume-hooks-preview", daemon=True)
                self.thread.start()
        return [READING]

    def fail(self, error: BaseException | None) -> None:
        """Take the end of the thread by a bug: it costs a preview, never the choice."""
        with self._lock:
            self.thread = None
            if self._wanted is not None:
                kind, row = self._wanted
                self._made[kind, row.path] = [f"This can't be shown: {type(error).__name__}"]
        self._changed()

    def _run(self) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                wanted = self._wanted
                if wanted is None or (wanted[0], wanted[1].path) in self._made:
                    self.thread = None
                    return
            lines = preview(*wanted, self._where)
            with self._lock:
                if len(self._made) >= KEPT:
                    self._made.clear()
                self._made[wanted[0], wanted[1].path] = lines
            self._changed()

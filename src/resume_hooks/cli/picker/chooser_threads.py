"""The picker's threads: load the list of sessions, create previews, and search the turns.

A thread never draws on the screen. It passes its results to a callback. The first display and key
presses never wait for a thread, and the picker waits only briefly for the threads when it exits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.errors import IndexDamaged, ResumeHooksError
from resume_hooks.hooks.session_list.preview import make_preview
from resume_hooks.hooks.session_list.state import ListEntry, TurnHit, find_turns_with_words
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession

if TYPE_CHECKING:
    from resume_hooks.search.index.connect import OpenIndex
    from resume_hooks.search.run_search import Searcher

BATCH_INTERVAL_SECONDS = 0.05  # the number of seconds between two batches of sessions


class SessionLoader:
    """Load a list of sessions in a thread, and call ``on_batch`` with this loader and every batch.

    The attribute ``is_done`` is True when ``on_batch`` is called with the last batch, which may be
    empty.
    """

    def __init__(
        self,
        entries: Iterator[ListEntry],
        on_batch: Callable[[SessionLoader, list[ListEntry]], None],
    ) -> None:
        self.is_done = False
        self._entries = entries
        self._on_batch = on_batch
        self._is_stopped = False
        # The thread is a daemon, so the picker can exit while the list is still loading.
        threading.Thread(
            target=self._load_sessions, name="resume-hooks-listing", daemon=True
        ).start()

    def stop_loading(self) -> None:
        """Stop calling ``on_batch``."""
        self._is_stopped = True

    def _load_sessions(self) -> None:
        batch: list[ListEntry] = []
        batch_start = time.monotonic()
        for entry in self._entries:
            batch.append(entry)
            if self._is_stopped:
                return
            if time.monotonic() - batch_start >= BATCH_INTERVAL_SECONDS:
                self._on_batch(self, batch)
                batch, batch_start = [], time.monotonic()
        self.is_done = True
        self._on_batch(self, batch)


KEY_PAUSE_SECONDS = (
    0.03  # how many seconds must pass after the last key press before a search starts
)
# the maximum number of seconds for updating the index before the first search
MAX_INDEX_UPDATE_SECONDS = 2.0
# the maximum number of seconds to wait on exit for the index to be closed
MAX_INDEX_CLOSING_SECONDS = 0.3


class SearchRequest(NamedTuple):
    """The words to search for, and whether to search the sessions of all projects."""

    text: str
    covers_all_projects: bool


class SearchAnswer(NamedTuple):
    """The turns that match the requested words best.

    ``unindexed_file_count`` is the number of files that the index does not contain yet.
    """

    request: SearchRequest
    hits: list[TurnHit]
    unindexed_file_count: int


class _SearchStopped(Exception):
    """The user left the picker while the index was being updated."""


class ContentSearch:
    """Search the turns of sessions in a thread, and call ``on_answer`` with the answer to each request.

    A request covers the project of ``folder`` unless it asks for all projects. The thread opens the
    index once. When the thread ends, it calls ``on_answer`` with None.
    """

    def __init__(
        self, folder: str, where: Where, on_answer: Callable[[SearchAnswer | None], None]
    ) -> None:
        self._folder = folder
        self._where = where
        self._on_answer = on_answer
        self._changed = threading.Condition()
        self._next_search: SearchRequest | None = None
        self._is_stopped = False
        self.has_ended = False
        """Whether the thread has ended, because the user left the picker or the index can't be
        used."""
        self.thread = threading.Thread(
            target=self._serve_requests_until_stopped, name="resume-hooks-contents", daemon=True
        )

    def start_thread(self) -> None:
        """Start the thread that opens the index. Call this method after the screen is first drawn."""
        if self.thread.ident is None:
            self.thread.start()

    def request_search(self, request: SearchRequest) -> None:
        """Search for the words in ``request``, and forget a request that is still waiting."""
        with self._changed:
            self._next_search = request
            self._changed.notify()

    def end_thread(self) -> None:
        """Tell the thread to end, and wait at most ``MAX_INDEX_CLOSING_SECONDS`` until it has closed the index."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self.thread.is_alive():
            self.thread.join(MAX_INDEX_CLOSING_SECONDS)

    def _serve_requests_until_stopped(self) -> None:
        try:
            self._open_index_and_answer()
        finally:
            self.has_ended = True
            self._on_answer(None)

    def _open_index_and_answer(self) -> None:
        # Imported in this thread: the import takes 60 ms, and the first display must not wait for
        # it.
        from resume_hooks.search.index.connect import open_index

        for _ in range(2):
            try:
                with open_index(
                    self._where,
                    max_seconds=MAX_INDEX_UPDATE_SECONDS,
                    progress=self._raise_if_stopped,
                ) as index:
                    self._answer_requests(index)
            except IndexDamaged:  # The damaged index was deleted. The second attempt rebuilds it.
                continue
            except (ResumeHooksError, _SearchStopped):
                pass
            return

    def _raise_if_stopped(self, _done: int, _total: int) -> None:
        if self._is_stopped:
            raise _SearchStopped

    def _answer_requests(self, index: OpenIndex) -> None:
        # Imported in this thread, so that the first display does not wait for the import.
        from resume_hooks.search.run_search import Searcher
        from resume_hooks.search.scope import Scope, project_scope_of_folder

        searchers: dict[bool, Searcher] = {}
        while (request := self._wait_for_next_request()) is not None:
            if request.covers_all_projects not in searchers:
                if request.covers_all_projects:
                    scope = Scope()
                else:
                    scope = project_scope_of_folder(self._folder, self._where)
                searchers[request.covers_all_projects] = Searcher(index, scope, self._where)
            self._on_answer(
                SearchAnswer(
                    request,
                    find_turns_with_words(searchers[request.covers_all_projects], request.text),
                    index.update_outcome.remaining_file_count,
                )
            )

    def _wait_for_next_request(self) -> SearchRequest | None:
        """Wait until no key has been pressed for a moment, then return the latest request.

        Return None if the search is stopped.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._next_search is not None)
            request = None
            while not self._is_stopped and request != self._next_search:
                request = self._next_search
                self._changed.wait(KEY_PAUSE_SECONDS)
            self._next_search = None
            if self._is_stopped:
                return None
            return request


PREVIEW_LOADING_NOTICE = "reading ..."
# the number of seconds to wait before a preview is read, so that no preview is read for sessions
# that the user only scrolls past
PREVIEW_DELAY_SECONDS = 0.06
MAX_CACHED_PREVIEWS = 200  # the maximum number of previews in the cache


class PreviewReader:
    """Read previews of sessions in a thread and cache them.

    The thread calls ``on_change`` when it has read the preview that was requested last.
    """

    def __init__(self, where: Where, on_change: Callable[[], None]) -> None:
        self._where = where
        self._on_change = on_change
        self._lock = threading.Lock()
        self._cache: dict[tuple[str, str], list[str]] = {}
        self._requested: tuple[str, ListedSession] | None = None
        self.thread: threading.Thread | None = None

    def find_preview_lines(self, kind: str, row: ListedSession) -> list[str]:
        """Return the lines of a session's preview, or a notice that the session is still being read."""
        with self._lock:
            if (cached_lines := self._cache.get((kind, row.path))) is not None:
                return cached_lines
            self._requested = (kind, row)
            if self.thread is None:
                self.thread = threading.Thread(
                    target=self._read_requested_previews, name="resume-hooks-preview", daemon=True
                )
                self.thread.start()
        return [PREVIEW_LOADING_NOTICE]

    def record_thread_failure(self, error: BaseException | None) -> None:
        """Record that a bug ended the thread. The preview shows the error, and the user can still choose."""
        with self._lock:
            self.thread = None
            if self._requested is not None:
                kind, row = self._requested
                self._cache[kind, row.path] = [f"This can't be shown: {type(error).__name__}"]
        self._on_change()

    def _read_requested_previews(self) -> None:
        while True:
            time.sleep(PREVIEW_DELAY_SECONDS)
            with self._lock:
                request = self._requested
                if request is None or (request[0], request[1].path) in self._cache:
                    self.thread = None
                    return
            lines = make_preview(*request, self._where)
            with self._lock:
                if len(self._cache) >= MAX_CACHED_PREVIEWS:
                    self._cache.clear()
                self._cache[request[0], request[1].path] = lines
            self._on_change()

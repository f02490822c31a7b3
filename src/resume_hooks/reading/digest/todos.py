"""List the unfinished todos of a session.

A todo list is outdated if the work went on without an update of the list. Its todos may already be
done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest import prose
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry
from resume_hooks.reading.digest.facts import Quote, RecordPosition, Todo
from resume_hooks.reading.digest.next_steps import ends_with_announcement
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.pull_requests import PullRequests
from resume_hooks.reading.digest.statements import find_start_order_of_last_turns
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

# If a todo list was last changed more than this number of prompts ago, it may be abandoned.
MAX_PROMPTS_AFTER_LIST_CHANGE = 2
# This many characters at the start of an answer are searched for words such as "all done".
MAX_DONE_REPORT_CHARACTERS = 200
# At most this many todos of an outdated list are quoted, each with at most this many characters.
MAX_OVERTAKEN_TODOS, MAX_OVERTAKEN_CHARACTERS = 4, 100
_ALL_DONE_STATEMENT_PATTERN = compile_lazily(
    r"\b(?:the (?:implementation|work) is|everything is|all (?:tasks|steps|items|changes) are) "
    r"(?:now |all )?(?:complete|completed|done|finished)(?=[.!:]|\s*(?:\n|\Z))",
    re.IGNORECASE,
)
_DONE_REPORT_PATTERN = compile_lazily(
    r"\W*(?:(?:perfect|great|excellent|all set)\b\W*)?(?:all |now |i(?:'ve| have)? )?(?:successfully )?"
    r"(?:done|implemented|completed?|finished|fixed|added|updated|"
    r"opened|addressed|pushed|shipped|created|merged|released|published|replaced|removed|refactored|migrated)\b",
    re.IGNORECASE,
)
"""The first words in an answer that reports finished work."""


class TodoEntries(NamedTuple):
    """The entries for the open todos.

    If the todo list is outdated, ``overtaken_list`` contains a single entry that quotes the list.
    """

    open_todos: tuple[DigestEntry, ...] = ()
    overtaken_list: tuple[DigestEntry, ...] = ()


def collect_todos(
    facts: LineageFacts,
    pull_requests: PullRequests,
    last_commit_order: int,
    last_check: RecordPosition | None,
) -> TodoEntries:
    """Return the entries for the unfinished todos.

    If the list is outdated, its todos may already be done, and a single entry quotes them. A list
    is ignored if it was abandoned before the last commit. ``last_commit_order`` is the sequence
    number of this commit. ``last_check`` is the last check that passed.
    """
    list_order = facts.todo_list.last_update_order
    todos = list(_list_unfinished_todos(facts, pull_requests))
    is_abandoned = last_commit_order > list_order and list_order < find_start_order_of_last_turns(
        facts, MAX_PROMPTS_AFTER_LIST_CHANGE
    )
    if not todos or is_abandoned:
        return TodoEntries()
    later_events = []
    edit_count = sum(change.position.order > list_order for change in facts.changes)
    if edit_count:
        later_events.append(format_count(edit_count, "edit"))
    if last_check is not None and last_check.order > list_order:
        later_events.append(f"the checks that passed at :{last_check.record_number}")
    if last_commit_order > list_order:
        later_events.append("the last commit")
    answer = _find_overtaking_answer(facts, last_commit_order, last_check)
    later_reports: list[Quote] = []
    for report, _ in facts.reports_of_writers:
        if report.position.order > list_order:
            later_reports.append(report)
    if answer is not None:
        later_events.append(f"the answer at :{answer.position.record_number}")
    elif edit_count and later_reports:
        later_events.append(f"a sub-agent's report at :{later_reports[-1].position.record_number}")
    if answer is not None or (edit_count and later_reports):
        return TodoEntries(overtaken_list=(_make_outdated_list_entry(todos, later_events),))
    return TodoEntries(tuple(_list_open_todos(facts, todos, later_events)))


def _list_open_todos(
    facts: LineageFacts, todos: Sequence[Todo], later_events: Sequence[str]
) -> Iterator[DigestEntry]:
    """Yield an entry for each todo, with its status and the number of prompts since it was noted.

    Each entry also lists the events after the last change to the list, such as a commit.
    """
    for text, status, position, _ in todos:
        later_prompts = sum(quote.position.order > position.order for quote in facts.prompts.quotes)
        notes = [status]
        if later_prompts:
            notes.append(f"noted {format_count(later_prompts, 'prompt')} before the end")
        if later_events:
            notes.append(f"list last changed before {_join_events(later_events)}")
        yield make_entry(text, position, ", ".join(filter(None, notes)))


def _join_events(events: Sequence[str]) -> str:
    """Join events with commas, and the last two with "and"."""
    *earlier_events, last_event = events
    return " and ".join(filter(None, (", ".join(earlier_events), last_event)))


def _make_outdated_list_entry(todos: Sequence[Todo], later_events: Sequence[str]) -> DigestEntry:
    """Return a single entry that quotes the todos of an outdated list.

    It is unknown which of these todos are still open.
    """
    quotes = []
    for todo in todos[:MAX_OVERTAKEN_TODOS]:
        quotes.append(f'"{cut_line(todo.text, MAX_OVERTAKEN_CHARACTERS)}"')
    if len(todos) > MAX_OVERTAKEN_TODOS:
        quotes.append(f"{len(todos) - MAX_OVERTAKEN_TODOS} more")
    return make_entry(
        f"the task list is out of date, last changed before {_join_events(later_events)}; unfinished then: "
        f"{', '.join(quotes)}",
        max(todos, key=lambda todo: todo.last_update_order).position,
    )


def _list_unfinished_todos(facts: LineageFacts, pull_requests: PullRequests) -> Iterator[Todo]:
    """Yield the unfinished todos.

    A todo is left out if it waits for a pull request that was merged or closed. A todo in progress
    is also left out if a later answer says that everything is done.
    """
    done_order = 0
    for quote in _list_final_answers(facts):
        if _ALL_DONE_STATEMENT_PATTERN.search(quote.text[:MAX_DONE_REPORT_CHARACTERS]):
            done_order = max(done_order, quote.position.order)
    for todo in facts.todo_list.list_open_todos():
        is_over = todo.status == "in_progress" and todo.last_update_order < done_order
        if not is_over and not pull_requests.has_wait_ended(todo.text, todo.position):
            yield todo


def _find_overtaking_answer(
    facts: LineageFacts, last_commit_order: int, last_check: RecordPosition | None
) -> Quote | None:
    """Return the last answer that shows that the todo list is outdated, or None if there is none.

    The list is outdated in three cases:

    1. A commit was made after the list's last change, and the answer came after this commit.
    2. Files were edited for a later prompt, and the answer neither asks nor offers anything.
    3. The answer reports finished work after later edits or after checks that passed.
    """
    list_order = facts.todo_list.last_update_order
    edit_order = max((change.position.order for change in facts.changes), default=0)
    work_order = max(edit_order, last_check.order if last_check is not None else 0)
    has_later_prompt = any(
        list_order < prompt.position.order < edit_order for prompt in facts.prompts.quotes
    )
    for answer in reversed(_list_final_answers(facts)):
        if last_commit_order > list_order:
            is_overtaken = answer.position.order > last_commit_order
        elif has_later_prompt and edit_order < answer.position.order:
            is_overtaken = not _asks_or_offers(answer)
        else:
            is_later = list_order < work_order < answer.position.order
            is_overtaken = is_later and _reports_finished_work(answer)
        if is_overtaken:
            return answer
    return None


def _reports_finished_work(answer: Quote) -> bool:
    """Check whether an answer starts with a report of finished work and neither asks nor offers anything."""
    text = prose.straighten_apostrophes(answer.text)
    return _DONE_REPORT_PATTERN.match(text) is not None and not _asks_or_offers(answer)


def _asks_or_offers(answer: Quote) -> bool:
    """Check whether an answer ends with a question or an offer."""
    return prose.ends_with_question_or_offer(prose.straighten_apostrophes(answer.text))


def _list_final_answers(facts: LineageFacts) -> list[Quote]:
    """Return the assistant's last words of each finished turn, oldest first."""
    quotes = [
        quote for quote in facts.closing_quotes if quote is not facts.words_before_interruption
    ]
    last_words = facts.words_since_prompt
    if last_words is not None and facts.last_call_order < last_words.position.order:
        quotes.append(last_words)
    return [quote for quote in quotes if not ends_with_announcement(quote)]

"""Tests of the text that lists the hits of a search.

The text fits its limit, contains no control characters, and mentions omitted hits.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.search.hits import MAX_SNIPPET_CHARACTERS, Hit
from resume_hooks.search.query import parse_query
from resume_hooks.search.ranking import Lookup
from resume_hooks.search.record_text import MAX_SENTENCES_CHARACTERS, Marker, make_snippet
from resume_hooks.search.record_text import make_display_text as bare_text
from resume_hooks.search.result import SearchResult
from resume_hooks.search.result_text import (
    ADVICE_IF_NO_CLOSE_MATCH,
    EVIDENCE_WARNING,
    MAX_WORDS_TO_LIST_MISSING,
    result_text,
)
from tests.builders import SESSION, ConfigHome, custom_title, session_id, tool_result
from tests.search.asking import search_home, write_talk
from tests.search.index.probe import uuid_of_text

HIT = Hit(
    reference=f"{SESSION}:4",
    short_reference="11111111:4",
    agent="claude",
    session_id=SESSION,
    session_file=f"/p/{SESSION}.jsonl",
    file=f"/p/{SESSION}.jsonl",
    folder="/home/user/proj",
    resume_command=f"cd /home/user/proj && claude --resume {SESSION}",
    title="Tune it",
    turn_number=2,
    role="reply",
    tool="",
    time="2026-01-31T09:30:00.000Z",
    snippet="the linter is tuned",
    marks=((4, 10),),
    words=("linter",),
    missing_words=(),
    session_ids=(SESSION,),
    repetition_count=0,
    score=1.0,
    confidence=0.7,
    strength="strong",
    wording_numbers=(),
)


def result_with_hits(
    *hits: Hit,
    matching_turn_count: int = 0,
    query: str = "linter",
    other_wordings: Sequence[str] = (),
    omitted_run_count: int = 0,
    interpretation: str = "",
    has_more: bool = False,
) -> SearchResult:
    """Return a result with these hits."""
    queries = tuple(parse_query([words]) for words in (query, *other_wordings))
    return SearchResult(
        queries,
        list(hits),
        matching_turn_count or len(hits),
        has_more,
        interpretation,
        [],
        omitted_run_count,
        [],
        0,
    )


def test_each_hit_has_commands_to_resume_and_to_read_it() -> None:
    """The text has a command to resume each session and a command to read each hit.

    The first line says that the text comes from a search.
    """
    hit = HIT._replace(
        missing_words=("typo",),
        session_ids=(SESSION, *map(session_id, range(1, 6))),
        repetition_count=2,
        tool="Bash",
        role="result",
    )
    assert result_text(
        result_with_hits(
            hit, HIT, matching_turn_count=12, interpretation="without tests", omitted_run_count=2
        )
    ) == (
        f"resume-hooks search: linter · 12 turns · without tests · {EVIDENCE_WARNING}\n"
        "\n"
        f"Tune it · {SESSION}\n"
        f"  resume: cd /home/user/proj && claude --resume {SESSION}\n"
        f"  hand off: resume-hooks handoff {SESSION}\n"
        "  strong · 11111111:4 · result (Bash) · turn 2 · 2026-01-31 09:30 · lacks typo"
        " · also in 00000001, 00000002, 00000003 and 2 more · said 3 times\n"
        "    the linter is tuned\n"
        "    read: resume-hooks read 11111111:4\n"
        "  strong · 11111111:4 · reply · turn 2 · 2026-01-31 09:30\n"
        "    the linter is tuned\n"
        "    read: resume-hooks read 11111111:4\n"
        "\n"
        "10 more turns: --limit 12 --max-chars 0\n"
        "2 headless runs with a single question omitted; --helpers includes them"
    )


def test_missing_words_of_a_long_question_are_not_listed() -> None:
    """The text of a hit lists the missing words, unless there are many of them."""
    few, many = (
        tuple(f"w{number}" for number in range(count))
        for count in (MAX_WORDS_TO_LIST_MISSING - 1, MAX_WORDS_TO_LIST_MISSING)
    )
    assert " · lacks w0, w1, w2, w3\n" in result_text(
        result_with_hits(HIT._replace(missing_words=few))
    )
    assert "lacks" not in result_text(result_with_hits(HIT._replace(missing_words=many)))


def test_several_wordings_are_numbered() -> None:
    """The first line numbers the wordings, and a hit names those that found it."""
    both = HIT._replace(wording_numbers=(1, 3))
    text = result_text(
        result_with_hits(both, query="tune linter", other_wordings=["why no\ntypes", "w " * 90])
    )
    assert text.startswith(
        f"resume-hooks search: (1) tune linter (2) why no types (3) {'w ' * 29}w… · 1 turn · "
    )
    assert "2026-01-31 09:30 · found by (1) (3)\n" in text


def test_the_first_line_says_that_nothing_is_close() -> None:
    """If all hits are weak, the first line says that nothing is close.

    The line does not say so if a hit is fair or if the search has no words.
    """
    weak, fair = (HIT._replace(strength=strength) for strength in ("weak", "fair"))
    assert result_text(result_with_hits(weak)).startswith(
        f"resume-hooks search: {ADVICE_IF_NO_CLOSE_MATCH} · linter · 1 turn · "
    )
    assert "nothing close" not in result_text(result_with_hits(weak, fair))
    assert "nothing close" not in result_text(result_with_hits(weak, query=""))
    unread = result_with_hits(weak)._replace(unindexed_file_count=1)
    assert result_text(unread).startswith("resume-hooks search: nothing close so far · linter · ")


def test_a_search_without_hits_gives_advice() -> None:
    """The text of a search without hits names the words without a match and gives advice."""
    text = result_text(result_with_hits(interpretation="no match for linter", omitted_run_count=1))
    assert text.split("\n") == [
        (
            f"resume-hooks search: {ADVICE_IF_NO_CLOSE_MATCH} · linter · nothing found · "
            f"no match for linter · {EVIDENCE_WARNING}"
        ),
        "",
        "Nothing found (no match for linter).",
        "1 headless run with a single question omitted; --helpers includes them",
        "Try other words. --all searches every project.",
    ]


def test_a_search_without_words_suggests_other_options() -> None:
    """The result of a search without words suggests other options instead of other words."""
    text = result_text(result_with_hits(query=""))
    assert text.endswith("\nTry other options. --all searches every project.")


def test_the_suggested_limit_is_valid() -> None:
    """The text never suggests a limit above 1000, the maximum of ``--limit``."""
    assert "49,999 more turns: --limit 1000 " in result_text(
        result_with_hits(HIT, matching_turn_count=50_000)
    )


def test_the_character_limit_ignores_styles() -> None:
    """The limit applies to the text's characters, excluding the styles of titles and marked words."""
    plain = result_text(result_with_hits(HIT))
    styled = result_text(
        result_with_hits(HIT),
        len(plain),
        mark_style=lambda word: f"<{word}>",
        title_style=lambda line: f"[{line}]",
    )
    assert "the <linter> is tuned" in styled
    assert f"[Tune it · {SESSION}]" in styled
    assert styled.translate(str.maketrans("", "", "<>[]")) == plain


ANY_TEXT_STRATEGY = st.text(st.characters(codec=None), max_size=300)
HIT_LIST_STRATEGY = st.lists(
    st.builds(
        lambda number, title, words, many: HIT._replace(
            session_id=session_id(number), title=title, snippet=bare_text(words).displayed_text, marks=(), tool=title,
            repetition_count=many, wording_numbers=tuple(range(1, many)),
            session_ids=tuple(map(session_id, range(many))), missing_words=(bare_text(words).displayed_text[:60],),
        ),
        st.integers(1, 3), ANY_TEXT_STRATEGY, ANY_TEXT_STRATEGY, st.integers(0, 9),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=200)
@given(
    hits=HIT_LIST_STRATEGY,
    max_characters=st.integers(1, 6_000),
    hostile_text=ANY_TEXT_STRATEGY,
    more_turn_count=st.integers(0, 5_000),
    omitted_run_count=st.integers(0, 3),
)
def test_the_text_fits_its_limit(
    hits: list[Hit],
    max_characters: int,
    hostile_text: str,
    more_turn_count: int,
    omitted_run_count: int,
) -> None:
    """The text fits any limit, and contains no control characters.

    If all hits fit, the text is complete.
    """
    answer = result_with_hits(
        *hits,
        matching_turn_count=len(hits) + more_turn_count,
        query=f"linter {hostile_text}",
        omitted_run_count=omitted_run_count,
        interpretation=hostile_text,
    )
    text = result_text(answer, max_characters)
    assert len(text) <= max_characters
    assert text.startswith("resume-hooks search: "[: max(0, max_characters - 1)])
    whole = result_text(answer)
    assert len(whole) > max_characters or text == whole
    assert not {letter for letter in text if unicodedata.category(letter) == "Cc"} - {"\n"}


@pytest.mark.parametrize("max_characters", [400, 700, 1_100, 2_500])
def test_omitted_hits_are_mentioned(max_characters: int) -> None:
    """Even a short text shows the best hit, the number of omitted hits, and the command to list them."""
    hit = HIT._replace(snippet="the linter " * 20)
    text = result_text(result_with_hits(*[hit] * 9), max_characters)
    assert "11111111:4" in text
    assert "the linter" in text
    shown = text.count("read: ") or 1
    assert f"{9 - shown} more turns: --limit 9 --max-chars 0" in text


HOSTILE_TEXT = (
    "\x1b[2J\x1b]0;owned\x07 the linter\u202e\u2066 \x9b31m\x00\x08 \r\n11111111:99 · prompt"
)


def test_hostile_texts_do_not_change_the_answer(config_home: ConfigHome) -> None:
    """The result's text has no control characters or line breaks from titles, folders and messages.

    A message therefore cannot look like a hit or change the terminal.
    """
    folder = "/home/user/x\n  read: resume-hooks read evil\x1b[31m"
    write_talk(config_home, 1, HOSTILE_TEXT, custom_title(HOSTILE_TEXT, session_id(1)), cwd=folder)
    said = tool_result(
        "c", HOSTILE_TEXT, uuid=uuid_of_text("r"), parent=None, session_id=session_id(2)
    )
    write_talk(
        config_home, 2, "go", {**said, "message": {**said["message"], "tool_name": "Ba\x1b[1msh\n"}}
    )
    text = result_text(search_home(config_home, "linter"))
    assert not {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf"}} - {"\n"}
    assert not [line for line in text.split("\n") if line.startswith(("11111111:99", "  read: "))]


TEXTS_IN_OTHER_SCRIPTS = [
    "日本語のテスト", "\u0645\u0631\u062d\u0628\u0627", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "e\u0301a\u0300",
    "\ufb01 \ufdfd \u00df \u0130 \u0131",
]  # fmt: skip


@given(
    st.lists(
        st.sampled_from(
            [*TEXTS_IN_OTHER_SCRIPTS, "linter", "getLinterName", "LINTER", "x" * 400, " ", "\ud800"]
        ),
        max_size=60,
    ),
    st.integers(10, 300),
)
def test_snippets_of_any_script_fit_their_width(words: list[str], width: int) -> None:
    """A snippet in any script fits its width, and its marks are on the words that were found."""
    lookup = Lookup(parse_query(["linter"]).terms[0], "word", (), ("linter",), 1, 1.0)
    text = bare_text(" ".join(words))
    assert len(text.displayed_text) == len(text.folded_text)
    snippet = make_snippet(text, Marker([lookup]), width)
    assert len(snippet.text) <= max(width, MAX_SENTENCES_CHARACTERS) + 4
    for start, end in snippet.marks:
        assert "linter" in snippet.text[start:end].lower()
    assert (
        bool(snippet.marks)
        or "linter" not in text.displayed_text.lower()
        or "getLinterName" in words
        or width < 20
    )


SENTENCES = (
    "We began in May, e.g. with a spike.",
    "The old parser read version 2.0 files alone!",
    "It was the linter that rejected src/parser.py, since its rules were written for another dialect.",
    'So we asked: "Must it run at all?"',
    "Nobody answered that for a week.",
    "And so on it went.",
)


@pytest.mark.parametrize(
    ("query", "first_index", "last_index"),
    [("linter", 1, 3), ("spike", 0, 1), ("week", 3, 5), ("linter must", 1, 4), ("dialect", 1, 3)],
)
def test_a_hit_shows_whole_sentences(
    config_home: ConfigHome, query: str, first_index: int, last_index: int
) -> None:
    """A hit shows the matching sentence, with the sentences before and after it."""
    write_talk(config_home, 1, f"{' '.join(SENTENCES)}\n{'And so on it went. ' * 60}")
    found = search_home(config_home, query)
    shown = f"{'… ' * (first_index > 0)}{' '.join(SENTENCES[first_index : last_index + 1])} …"
    assert found.hits[0].snippet == shown
    assert f"    {shown}\n" in result_text(found)


def test_a_text_without_sentences_is_shortened(config_home: ConfigHome) -> None:
    """If a text has no sentences, a hit shows some text around the word.

    If a neighboring sentence is too long, only the matching sentence is shown.
    """
    write_talk(config_home, 1, f"{'word ' * 300}needle {'word ' * 300}")
    write_talk(config_home, 2, f"{'word ' * 300}end. The thread is here. {'word ' * 300}")
    assert len(search_home(config_home, "needle").hits[0].snippet) < MAX_SNIPPET_CHARACTERS + 5
    assert search_home(config_home, "thread").hits[0].snippet == "… The thread is here. …"


def test_incomplete_counts_are_marked() -> None:
    """A number of turns that may be too small has the words "at least" before it."""
    assert "at least 200 turns" in result_text(
        result_with_hits(HIT, matching_turn_count=200, has_more=True)
    )

"""Tests of fitting texts into a limit: no text exceeds its limit, and omissions are stated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.reading.char_budget import (
    CUT_HINT,
    CUT_SIGN,
    TextPiece,
    cut_lines,
    cut_piece,
    divide_characters,
    find_page_end,
    fit_both_ends,
    fit_pieces,
    indent_text,
)
from resume_hooks.system.text import format_count

TEXT_PIECES = st.lists(
    st.builds(
        TextPiece,
        heading=st.text("abc ·", min_size=1, max_size=60),
        body=st.one_of(
            st.just(""), st.integers(1, 3_000).map(lambda size: indent_text("word " * size))
        ),
        read_command=st.just("read 1a2b3c4d:1"),
        is_spoken=st.booleans(),
    ),
    max_size=30,
)


def omission_line(first_index: int, last_index: int) -> str:
    """Return the line that replaces omitted pieces in these tests."""
    return f"… {first_index} to {last_index} left out"


@given(TEXT_PIECES, st.integers(1, 5_000))
def test_the_text_always_fits_its_limit(pieces: list[TextPiece], limit: int) -> None:
    """A text is shorter than its limit. If all pieces fit, the text contains all of them."""
    text = fit_pieces("opening", pieces, limit, omission_line)
    assert len(text) < limit
    whole = fit_pieces("opening", pieces, 0, omission_line)
    if len(whole) < limit:
        assert text == whole


@given(st.lists(st.text("xyz", min_size=1, max_size=80), max_size=60), st.integers(1, 3_000))
def test_lines_in_the_middle_are_omitted_first(blocks: list[str], limit: int) -> None:
    """If lines don't fit, one line replaces those in the middle and names the first and last of them."""
    text = fit_both_ends("opening", blocks, limit, omission_line)
    assert len(text) < limit
    lines = text.split("\n")[1:]
    told = [line for line in lines if line.startswith("…") and line.endswith("out")]
    if told and limit > 400:
        first, last = int(told[0].split()[1]), int(told[0].split()[3])
        assert lines == [*blocks[:first], told[0], *blocks[last + 1 :]]


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 5)), max_size=20), st.integers(0, 3_000)
)
def test_space_is_shared_fairly(rows: list[tuple[int, int]], total_characters: int) -> None:
    """No piece gets more characters than it needs, and the pieces together use up the limit.

    Rounding may waste one character for each piece.
    """
    sizes, weights = [size for size, _ in rows], [weight for _, weight in rows]
    given_ = divide_characters(sizes, weights, total_characters)
    assert all(got <= size for got, size in zip(given_, sizes, strict=True))
    assert sum(given_) <= total_characters
    assert sum(given_) >= min(sum(sizes), total_characters) - len(rows)


def test_a_huge_result_displaces_no_message() -> None:
    """A huge tool result is shortened in its middle so that the messages around it stay complete."""
    result = TextPiece(
        "r:2", indent_text("begin\n" + "filler\n" * 20_000 + "the end"), "read r:2", is_spoken=False
    )
    voices = [
        TextPiece(f"r:{number}", indent_text("said " * 40), f"read r:{number}", is_spoken=True)
        for number in (1, 3)
    ]
    text = fit_pieces("opening", [voices[0], result, voices[1]], 2_000, omission_line)
    assert text.count("said") == 80
    assert "more characters: read r:2\n" in text
    assert "begin" in text
    assert text.index("the end") < text.index("r:3")
    assert 1_500 < len(text) < 2_000


def test_tool_outputs_are_omitted_before_messages() -> None:
    """If not all pieces fit, tool outputs are omitted before messages. A line marks each omission."""
    pieces = [
        TextPiece(f"r:{place}", indent_text("x" * 300), "read", is_spoken=place in {0, 99})
        for place in range(100)
    ]
    lines = fit_pieces("opening", pieces, 1_500, omission_line).split("\n")
    heads = [line for line in lines if line.startswith("r:")]
    assert heads[0] == "r:0"
    assert heads[-1] == "r:99"
    assert any(line.startswith("… ") for line in lines)


def test_a_message_keeps_its_start_and_a_result_keeps_both_ends() -> None:
    """A message is cut at its end, and a tool result in its middle.

    If there is too little space, only a notice is left.
    """
    body = indent_text("\n".join(f"line {number}" for number in range(500)))
    voice, result = (TextPiece("h", body, "read r:1", is_spoken=voice) for voice in (True, False))
    assert cut_piece(voice, 300).endswith(": read r:1")
    assert cut_piece(result, 300).endswith("line 499")
    assert cut_piece(result, 10) == f"  … {len(body):,} characters: read r:1"
    assert cut_piece(result, len(body)) == body
    called = TextPiece(
        "h", f"{body} (… 500 more characters of input: read r:1)", "read r:1", is_spoken=False
    )
    assert cut_piece(called, 300).count("read r:1") == 1


@given(st.text("ab \n", max_size=300), st.integers(0, 400))
def test_a_cut_line_is_marked(text: str, limit: int) -> None:
    """A text that is cut ends with an ellipsis and, if there is space, names ``--max-chars 0``."""
    shown = cut_lines(text, limit)
    assert len(shown) < max(1, limit) or not shown
    if len(text) < limit:
        assert shown == text
    elif limit > 50:
        assert shown.endswith(CUT_HINT)
    elif limit > 1:
        assert CUT_SIGN in shown


def test_a_very_small_limit_cuts_the_opening() -> None:
    """If even the first line is too long, it is cut with an ellipsis."""
    opening = "resume-hooks read: Title · 11111111 · turn 12 of 40 · evidence"
    piece = TextPiece("h", indent_text("body"), "resume-hooks read r:1", is_spoken=True)
    assert (
        fit_pieces(opening, [piece], 50, omission_line)
        == "resume-hooks read: Title · 1111111… --max-chars 0"
    )
    assert fit_both_ends(opening, ["block"], 20, omission_line) == "resume-hooks read:…"


def test_a_command_that_lists_omitted_pieces_is_never_cut() -> None:
    """The command in a line about omitted pieces is never cut, even if it contains a long path."""
    command = "resume-hooks outline " + "/long" * 100
    text = fit_both_ends(
        "opening",
        ["block"] * 400,
        1_000,
        lambda first, last: f"… {last - first + 1} left out: {command}",
    )
    assert any(line.endswith(f"left out: {command}") for line in text.split("\n"))
    assert text.endswith("\nblock")


def test_only_a_count_of_one_has_a_singular_noun() -> None:
    """A count of one has a singular noun; zero and larger counts have a plural."""
    assert [format_count(count, "turn") for count in (0, 1, 1_000)] == [
        "0 turns",
        "1 turn",
        "1,000 turns",
    ]


def test_lines_of_a_quoted_text_are_indented() -> None:
    """Each line of a quoted text is indented, even a line that looks like one of the engine's own lines."""
    assert all(
        line.startswith("  ") for line in indent_text("a\nr:1 · user\n… 9 left out").split("\n")
    )
    assert indent_text(" \n\n") == ""


MULTILINE_TEXTS = st.lists(st.text("ab \n", max_size=30), max_size=40).map("\n".join)


@given(MULTILINE_TEXTS, st.integers(1, 60))
def test_pages_contain_all_of_a_text(text: str, limit: int) -> None:
    """The pages of a text contain each of its characters once, and each page is within its limit.

    Without a limit, there is one page.
    """
    pages, start = [], 0
    while start < len(text):
        end = find_page_end(text, start, limit)
        pages.append(text[start:end])
        assert 0 < end - start <= limit
        start = end
    assert "".join(pages) == text
    assert find_page_end(text, 0, 0) == len(text)


def test_a_page_ends_before_an_unindented_line_if_possible() -> None:
    """A page ends before an unindented line if possible, and otherwise at the end of a line.

    If the page would then be less than half full, it ends inside a line.
    """
    text = "USER :1\n  a\n  b\nUSER :2\n  c\n  d\n  e\n"
    assert text[: find_page_end(text, 0, 30)] == "USER :1\n  a\n  b\n"
    assert text[: find_page_end(text, 0, 15)] == "USER :1\n  a\n"
    assert find_page_end("x" * 50 + "\n" + "y" * 50, 0, 20) == 20

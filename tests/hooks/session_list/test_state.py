"""Tests of the state of the session list: the matching sessions, the chosen one and the visible page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.hooks.session_list.state import Choices, ListEntry, TurnHit
from tests.builders import session_id
from tests.hooks.session_list.rows import make_listed_session


def entries_with_titles(*titles: str) -> list[ListEntry]:
    """Return one list entry for each title, in the given order."""
    return [
        ListEntry(make_listed_session(number, title=title))
        for number, title in enumerate(titles, 1)
    ]


def matching_titles(choices: Choices) -> list[str]:
    """Return the titles of the matching sessions in the order in which the list shows them."""
    return [one.title for one in choices.matches]


def test_a_match_must_contain_all_words() -> None:
    """A session matches only if it contains all words. Their order, field and case make no difference."""
    choices = Choices("PARSER fix")
    choices.add_entries(entries_with_titles("Fix the parser", "Fix the lexer", "the parser"))
    assert matching_titles(choices) == ["Fix the parser"]


def test_every_field_is_searched() -> None:
    """The search looks at the title, tag, agent name, branch, id, folder and first prompt of a session."""
    one = make_listed_session(
        7, tag="urgent", agent_name="Smith", branch="feature/x", folder="/home/me/deep"
    )
    for words in (
        "title 7",
        "urgent",
        "smith",
        "feature/x",
        one.session_id[:8],
        "me/deep",
        "please fix",
    ):
        choices = Choices(words)
        choices.add_entries([ListEntry(one, "Please FIX it"), *entries_with_titles("other")])
        assert choices.matches == [one]


def test_the_chosen_session_stays_chosen_while_it_matches() -> None:
    """The chosen session stays chosen while it matches the typed words.

    If it no longer matches, the first match is chosen.
    """
    choices = Choices()
    choices.add_entries(entries_with_titles("aa", "ab", "abc"))
    choices.move_choice(2)
    choices.filter_by_words("ab")
    assert choices.chosen_session is not None
    assert choices.chosen_session.title == "abc"
    choices.filter_by_words("aa")
    assert choices.chosen_session.title == "aa"
    choices.filter_by_words("nothing")
    assert choices.chosen_session is None


def test_loaded_sessions_are_added_at_the_end() -> None:
    """Sessions that are loaded later are added to the end of the list if they match."""
    choices = Choices("q")
    choices.add_entries(entries_with_titles("q1", "b", "q2"))
    choices.move_choice(1)
    choices.add_entries(entries_with_titles("q3", "c"))
    assert matching_titles(choices) == ["q1", "q2", "q3"]
    assert choices.chosen_session is choices.matches[1]
    assert choices.session_count == 5


def test_title_matches_are_listed_first() -> None:
    """Sessions whose title matches are listed before sessions that match in another field.

    The first title match is chosen, unless the user has chosen a different row.
    """
    other = ListEntry(make_listed_session(9, title="Many 4", branch="55"))
    choices = Choices("many 55")
    choices.add_entries([other])
    choices.add_entries(entries_with_titles("Many 55", "Many 3"))
    assert matching_titles(choices) == ["Many 55", "Many 4"]
    assert choices.chosen_session is choices.matches[0]
    choices.filter_by_words("many")
    choices.move_choice(-9)
    choices.filter_by_words("many 5")
    assert choices.chosen_session is not None
    assert choices.chosen_session.title == "Many 55"
    choices.move_choice(1)
    choices.add_entries(entries_with_titles("Many 555"))
    assert matching_titles(choices) == ["Many 55", "Many 555", "Many 4"]
    assert choices.chosen_session is other.row


def turn_hits(*numbers: int) -> list[TurnHit]:
    """Return one matching turn for each of the session numbers, in the given order."""
    return [
        TurnHit((session_id(number),), "fair", "prompt · turn 1", f"said in {number}", 0)
        for number in numbers
    ]


def test_message_matches_are_listed_last_in_search_order() -> None:
    """Sessions that match only in a message follow those that match in their title or another field.

    They are listed in the order of the search results. A session that matches both in a message and
    in a field is listed once, among the matches in fields.
    """
    choices = Choices("parser")
    choices.add_entries(
        [
            *entries_with_titles("b", "Fix the parser", "c"),
            ListEntry(make_listed_session(4, title="d"), "the parser fails"),
        ]
    )
    choices.set_hits(turn_hits(3, 2, 9, 1, 4, 3))
    assert matching_titles(choices) == ["Fix the parser", "d", "c", "b"]
    assert [one.snippet for entry in choices.matches if (one := choices.find_turn_hit(entry))] == [
        "said in 3",
        "said in 1",
    ]


def test_a_copied_turn_is_shown_in_the_first_listed_session() -> None:
    """If several sessions contain the same turn, it is shown only in the one that the list shows first.

    If a session that comes earlier in ``TurnHit.sessions`` is loaded later, the turn moves to it.
    """
    turn = turn_hits(1)[0]._replace(session_ids=(session_id(9), session_id(2), session_id(1)))
    choices = Choices("parser")
    choices.set_hits([turn])
    choices.add_entries(entries_with_titles("a"))
    assert matching_titles(choices) == ["a"]
    choices.add_entries([ListEntry(make_listed_session(2, title="b"))])
    assert matching_titles(choices) == ["b"]


def test_a_message_match_is_chosen_if_no_title_or_field_matches() -> None:
    """If no title or field matches, the first session with a matching message is chosen.

    If the user chose a different session, it stays chosen as long as it matches.
    """
    choices = Choices("parser")
    choices.add_entries(entries_with_titles("a", "b", "c"))
    assert not choices.matches
    choices.set_hits(turn_hits(2))
    choices.set_hits(turn_hits(3, 2))
    assert choices.chosen_session is choices.matches[0]
    choices.move_choice(1)
    choices.set_hits(turn_hits(1, 3, 2))
    assert choices.chosen_session is choices.matches[2]
    choices.set_hits(turn_hits(1))
    assert choices.chosen_session is choices.matches[0]
    choices.filter_by_words("parsers")
    choices.add_entries([ListEntry(make_listed_session(4, title="parsers"))])
    assert matching_titles(choices) == ["parsers", "a"]
    assert choices.chosen_session is choices.matches[0]
    choices.filter_by_words("")
    choices.filter_by_words("nothing")
    assert matching_titles(choices) == []


LIST_OPERATION_STRATEGY = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.text("ab", max_size=3), max_size=5)),
        st.tuples(st.just("filter_by_words"), st.text("ab ", max_size=3)),
        st.tuples(st.just("tell"), st.lists(st.integers(1, 6), max_size=4)),
        st.tuples(st.just("move_choice"), st.integers(-12, 12)),
        st.tuples(st.just("page"), st.integers(1, 5)),
    ),
    max_size=30,
)


@given(LIST_OPERATION_STRATEGY)
def test_the_chosen_match_is_always_on_the_page(
    operations: list[tuple[str, object]],
) -> None:
    """The visible page contains the chosen match, after any order of typing, moving and loading."""
    choices = Choices()
    for operation, value in operations:
        if operation == "add":
            choices.add_entries(entries_with_titles(*value))  # type: ignore[misc]
        elif operation == "tell":
            choices.set_hits(turn_hits(*value))  # type: ignore[misc]
        elif operation == "page":
            page = choices.visible_rows(int(str(value)))
            assert [one for one, chosen in page if chosen] == (
                [choices.chosen_session] if choices.matches else []
            )
            assert len(page) == min(int(str(value)), len(choices.matches))
        else:
            getattr(choices, operation)(value)
        assert (choices.chosen_session is None) == (not choices.matches)
        assert choices.chosen_session is None or choices.chosen_session in choices.matches


def test_an_excluded_word_hides_a_session() -> None:
    """A word like ``-pin`` hides sessions with the word "pin" in their title or in the matching message.

    A session with "spinning" stays, because "pin" is only a part of that word.
    """
    choices = Choices("deb -pin")
    choices.add_entries(entries_with_titles("deb pin", "deb spinning", "pin", "other"))
    choices.set_hits(turn_hits(3, 4))
    assert matching_titles(choices) == ["deb spinning", "other"]

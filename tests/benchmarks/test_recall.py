"""The recall set is sound, its figures count what they say, and searches answer it at all.

Figures come from ``python -m benchmarks.recall.measure``; here only the half ``tune`` is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from benchmarks.recall.judge import Asked, Sureness, judged, score, spread, sureness
from benchmarks.recall.measure import DEPTH, ask
from benchmarks.recall.naive import CHUNK, FusedNaive, Naive, words_of
from benchmarks.recall.questions import (
    HALVES,
    KINDS,
    Home,
    Place,
    Question,
    by_id,
    corpus_file,
    corpus_names,
    questions,
    right_places,
    session_of,
)
from benchmarks.recall.ripgrep import content_words
from benchmarks.recall.searcher import Answer, Ours
from resume_hooks.search.index.tokenize import forms_of_word
from tests.builders import assistant, tool_result, tool_use, user, write_session
from tests.needs import corpus

FLOOR = 0.9  # natural questions whose answer is among the first five hits; it is about 1.0
REWORDED = 0.6  # paraphrased ones in four wordings; it is about 0.75
MOST_SURE = 0.2  # questions without an answer whose best hit may be called strong; it is about 0.0
WORDINGS = 4

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
ONE, TWO = f"{FIRST}.jsonl", f"{SECOND}.jsonl"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    """Our search over the whole corpus."""
    corpus()
    return Ours(Home(tmp_path_factory.mktemp("recall") / ".claude"))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A corpus of two sessions: two turns about kettles and teapots, one about kettles alone."""
    monkeypatch.setenv("RESUME_HOOKS_CORPUS", str(tmp_path))
    _forget()
    command = {"command": "descale --kettle"}
    write_session(
        tmp_path,
        FIRST,
        [
            user("my kettle leaks", uuid="a"),
            tool_use("t1", uuid="b", parent="a", name="Bash", tool_input=command),
            tool_result("t1", "limescale everywhere", uuid="c", parent="b"),
            user("and the teapots?", uuid="d"),
            assistant("Teapots never leak.", uuid="e"),
        ],
    )
    write_session(
        tmp_path, SECOND, [user("kettle kettle kettle", uuid="f"), assistant("Boiling.", uuid="g")]
    )
    yield tmp_path
    _forget()


def _forget() -> None:
    for known in (session_of, corpus_file, by_id):
        known.cache_clear()


def test_the_questions_are_distinguished_and_enough() -> None:
    """150 natural ones, 102 paraphrased, 48 without an answer; both halves have as many a kind."""
    asked = questions()
    assert len({question.id for question in asked}) == len(asked)
    assert len({question.text.casefold() for question in asked}) == len(asked)
    assert Counter(question.kind for question in asked) == dict(
        zip(KINDS, (150, 102, 48), strict=True)
    )
    assert all(bool(question.answers) != (question.kind == "unanswerable") for question in asked)
    tune, kept = (Counter(question.kind for question in questions(half)) for half in HALVES)
    assert tune == kept
    assert all(any(map(forms_of_word, content_words(question.text))) for question in asked), (
        "each can be looked up"
    )


def test_paraphrased_questions_have_other_wordings() -> None:
    """Three further ones each, all different; no other question has any."""
    for question in questions():
        count = WORDINGS if question.kind == "paraphrased" else 1
        assert len({wording.casefold() for wording in question.wordings}) == count, question.id


def test_every_answer_is_a_record_of_the_corpus() -> None:
    """Answers are in files that are there, on lines that contain a record.

    Their copies are answers, too.
    """
    corpus()
    names = set(corpus_names())
    for question in questions():
        for name, line in question.answers:
            assert name in names, question.id
            assert corpus_file(name).ids[line] or session_of(name), question.id
            assert line < len(corpus_file(name).turns), question.id
            assert (name, corpus_file(name).turns[line]) in right_places(question), question.id


def test_natural_questions_are_answered(ours: Ours) -> None:
    """A ranking that is not broken has nearly all natural questions answered among its first five hits."""
    asked = [question for question in questions("tune") if question.kind == "natural"]
    assert score(ask(ours, asked, lambda question: [question.text])).five >= FLOOR


@pytest.mark.wide
def test_several_wordings_find_more_than_one(ours: Ours) -> None:
    """Most paraphrased questions are answered with four wordings."""
    asked = [question for question in questions("tune") if question.also]
    assert score(ask(ours, asked, lambda question: question.wordings)).five >= REWORDED


def test_hits_for_unknown_topics_are_not_strong(ours: Ours) -> None:
    """They are shown, but hardly ever called strong."""
    asked = [question for question in questions("tune") if question.kind == "unanswerable"]
    assert score(ask(ours, asked, lambda question: [question.text])).strong <= MOST_SURE


def test_the_home_contains_the_whole_corpus(tmp_path: Path) -> None:
    """Every file of the corpus is searched, under the name that the questions know it by."""
    corpus()
    home = Home(tmp_path / ".claude")
    files = [str(path) for path in home.config.rglob("*.jsonl")]
    assert sorted(home.name(file) for file in files) == corpus_names()


@pytest.mark.usefixtures("small")
def test_ranks_are_of_the_first_right_turn_and_of_the_first_right_session() -> None:
    """Sessions count once each; hits in another turn of the right session are right by session only."""
    question = Question("q", "natural", "?", ((ONE, 4),), "tune")
    found = judged(
        question, Answer([Place(TWO, 1), Place(TWO, 2), Place(ONE, 1), Place(ONE, 2)], 1.0)
    )
    assert (found.session, found.turn) == (2, 4)
    assert found.right == (False, False, False, True)
    assert judged(question, Answer([], 1.0))[2:4] == (0, 0)


def test_a_copy_of_the_answer_is_an_answer(small: Path) -> None:
    """A record that another session holds under the same id is right there too."""
    with open(small / TWO, "ab") as stream:
        stream.write(orjson.dumps(assistant("Teapots never leak.", uuid="e")) + b"\n")
    assert right_places(Question("q", "natural", "?", ((ONE, 4),), "tune")) == {
        Place(ONE, 2),
        Place(TWO, 1),
    }


def test_shares_of_the_questions() -> None:
    """First, among five, the mean of the reciprocal ranks of sessions, no hit at all, a best hit that is sure."""
    asked = [
        _asked(1, 6, "strong"),
        _asked(2, 1, "weak"),
        _asked(0, 0),
        _asked(5, 5, "fair", "strong"),
    ]
    found = score(asked)
    assert found == pytest.approx((0.25, 0.75, (1 + 1 / 2 + 1 / 5) / 4, 0.25, 0.5, 0.25, 0.25))
    assert score([]).first == 0


def test_sure_hits_are_counted_among_the_first_five() -> None:
    """Their number by strength, and the fraction that is right."""
    found = sureness([_asked(1, 1, *["strong"] * 2, "fair", *["weak"] * 3), _asked(0, 0, "strong")])
    assert found == {"strong": Sureness(3, 1 / 3), "fair": Sureness(1, 0), "weak": Sureness(2, 0)}


def test_a_single_time_is_its_own_spread() -> None:
    """One question is enough for a row."""
    assert spread([7.0]) == (7.0, 7.0)


@pytest.mark.usefixtures("small")
def test_the_naive_baseline_reads_messages_itself() -> None:
    """It reads messages, tool calls and results, in chunks that end with their turn."""
    naive = Naive()
    assert naive.search(["limescale"], DEPTH).hits == [Place(ONE, 1)]
    assert naive.search(["the descaling?"], DEPTH).hits == []
    assert naive.search(["descale"], DEPTH).hits == [Place(ONE, 1)]
    assert naive.search(["leaking teapot"], DEPTH).hits == [Place(ONE, 2), Place(ONE, 1)]
    assert naive.search(["kettle"], 1).hits == [Place(TWO, 1)]
    assert list(words_of("The Cats were jumping, as it is")) == ["cat", "jump"]


def test_a_long_turn_is_several_chunks_and_one_hit(small: Path) -> None:
    """Each turn is a hit once, however many of its chunks fit."""
    write_session(small, SECOND, [user(f"{'kettle ' * CHUNK * 2}", uuid="f")])
    assert Naive().search(["kettle"], DEPTH).hits == [Place(TWO, 1), Place(ONE, 1)]


@pytest.mark.usefixtures("small")
def test_wordings_of_the_naive_baseline_are_joined_or_fused() -> None:
    """Joined, the words count together; fused, a high rank in most rankings wins."""
    naive = Naive()
    wordings = ["kettle", "leaks", "limescale"]
    assert naive.search(wordings, DEPTH).hits[0] == Place(ONE, 1)
    assert FusedNaive(naive).search(wordings, 2).hits == [Place(ONE, 1), Place(TWO, 1)]


def _asked(session: int, turn: int, *strengths: str) -> Asked:
    """An answer by its ranks; its hits are right where the turn is."""
    hits = [Place(ONE, number) for number in range(1, len(strengths) + 1)]
    question = Question("q", "natural", "?", (), "tune")
    return Asked(
        question,
        Answer(hits, 1.0, strengths),
        session,
        turn,
        tuple(hit.turn == turn for hit in hits),
    )

"""Tests of the benchmark for search: its questions are valid, and search answers most of them.

``python -m benchmarks.recall.measure`` prints the results for all questions. These tests use only
the questions of the half ``tune``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from benchmarks.recall.judge import (
    JudgedAnswer,
    StrengthPrecision,
    compute_median_and_p95,
    compute_score,
    compute_strength_precision,
    judge_answer,
)
from benchmarks.recall.measure import MAX_HITS, ask_questions
from benchmarks.recall.naive import MAX_CHUNK_WORDS, FusedNaiveSearcher, NaiveSearcher, find_words
from benchmarks.recall.questions import (
    QUESTION_HALVES,
    QUESTION_KINDS,
    CorpusHome,
    Place,
    Question,
    find_right_places,
    find_session_of_file,
    list_corpus_files,
    map_ids_to_places,
    read_corpus_file,
    read_questions,
)
from benchmarks.recall.ripgrep import find_content_words
from benchmarks.recall.searcher import Answer, OwnSearcher
from resume_hooks.search.index.tokenize import forms_of_word
from tests.builders import assistant, tool_result, tool_use, user, write_session
from tests.needs import corpus

MIN_NATURAL_SHARE = 0.9  # Minimum share of natural questions with an answer in the first five hits. It is about 1.0.
# Minimum share of paraphrased questions, asked in four wordings, with an answer in the first five
# hits. It is about 0.75.
MIN_PARAPHRASED_SHARE = 0.6
# The maximum share of questions without an answer whose best hit may be called strong. The measured
# share is about 0.0.
MAX_STRONG_SHARE = 0.2
WORDING_COUNT = 4

FIRST_ID, SECOND_ID = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
FIRST_FILE, SECOND_FILE = f"{FIRST_ID}.jsonl", f"{SECOND_ID}.jsonl"


@pytest.fixture(scope="module")
def corpus_search(tmp_path_factory: pytest.TempPathFactory) -> OwnSearcher:
    """Return our search over the whole corpus."""
    corpus()
    return OwnSearcher(CorpusHome(tmp_path_factory.mktemp("recall") / ".claude"))


@pytest.fixture
def small_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a corpus of two sessions, one about kettles and teapots and one about kettles."""
    monkeypatch.setenv("RESUME_HOOKS_CORPUS", str(tmp_path))
    clear_corpus_caches()
    command = {"command": "descale --kettle"}
    write_session(
        tmp_path,
        FIRST_ID,
        [
            user("my kettle leaks", uuid="a"),
            tool_use("t1", uuid="b", parent="a", name="Bash", tool_input=command),
            tool_result("t1", "limescale everywhere", uuid="c", parent="b"),
            user("and the teapots?", uuid="d"),
            assistant("Teapots never leak.", uuid="e"),
        ],
    )
    write_session(
        tmp_path,
        SECOND_ID,
        [user("kettle kettle kettle", uuid="f"), assistant("Boiling.", uuid="g")],
    )
    yield tmp_path
    clear_corpus_caches()


def clear_corpus_caches() -> None:
    """Clear the caches of the corpus's files."""
    for known in (find_session_of_file, read_corpus_file, map_ids_to_places):
        known.cache_clear()


def test_questions_are_distinct_and_of_three_kinds() -> None:
    """There are 150 natural, 102 paraphrased and 48 unanswerable questions, and no two are the same.

    Each half of the questions has the same number of each kind.
    """
    asked = read_questions()
    assert len({question.id for question in asked}) == len(asked)
    assert len({question.text.casefold() for question in asked}) == len(asked)
    assert Counter(question.kind for question in asked) == dict(
        zip(QUESTION_KINDS, (150, 102, 48), strict=True)
    )
    assert all(
        bool(question.answer_lines) != (question.kind == "unanswerable") for question in asked
    )
    tune, kept = (
        Counter(question.kind for question in read_questions(half)) for half in QUESTION_HALVES
    )
    assert tune == kept
    assert all(any(map(forms_of_word, find_content_words(question.text))) for question in asked), (
        "each can be looked up"
    )


def test_paraphrased_questions_have_three_more_wordings() -> None:
    """Each paraphrased question has three more wordings, which differ. Other questions have none."""
    for question in read_questions():
        count = WORDING_COUNT if question.kind == "paraphrased" else 1
        assert len({wording.casefold() for wording in question.wordings}) == count, question.id


def test_every_answer_is_a_record_of_the_corpus() -> None:
    """Every labelled answer names an existing line of a corpus file, and its turn counts as a right place."""
    corpus()
    names = set(list_corpus_files())
    for question in read_questions():
        for name, line in question.answer_lines:
            assert name in names, question.id
            assert read_corpus_file(name).record_ids[line] or find_session_of_file(name), (
                question.id
            )
            assert line < len(read_corpus_file(name).turn_numbers), question.id
            assert (name, read_corpus_file(name).turn_numbers[line]) in find_right_places(
                question
            ), question.id


def test_natural_questions_are_answered(corpus_search: OwnSearcher) -> None:
    """Search finds an answer to nearly all natural questions in its first five hits."""
    asked = [question for question in read_questions("tune") if question.kind == "natural"]
    assert (
        compute_score(
            ask_questions(corpus_search, asked, lambda question: [question.text])
        ).turn_top_five_fraction
        >= MIN_NATURAL_SHARE
    )


@pytest.mark.wide
def test_several_wordings_answer_most_paraphrased_questions(corpus_search: OwnSearcher) -> None:
    """With four wordings, search finds an answer to most paraphrased questions in its first five hits."""
    asked = [question for question in read_questions("tune") if question.other_wordings]
    assert (
        compute_score(
            ask_questions(corpus_search, asked, lambda question: question.wordings)
        ).turn_top_five_fraction
        >= MIN_PARAPHRASED_SHARE
    )


def test_hits_for_unknown_topics_are_not_strong(corpus_search: OwnSearcher) -> None:
    """Search hardly ever calls a hit strong for a question without an answer."""
    asked = [question for question in read_questions("tune") if question.kind == "unanswerable"]
    assert (
        compute_score(
            ask_questions(corpus_search, asked, lambda question: [question.text])
        ).strong_fraction
        <= MAX_STRONG_SHARE
    )


def test_the_home_contains_the_whole_corpus(tmp_path: Path) -> None:
    """The home for the benchmark contains each file of the corpus under the name that the questions use."""
    corpus()
    home = CorpusHome(tmp_path / ".claude")
    files = [str(path) for path in home.config.rglob("*.jsonl")]
    assert sorted(home.find_path_in_corpus(file) for file in files) == list_corpus_files()


@pytest.mark.usefixtures("small_corpus")
def test_an_answer_is_ranked_by_turn_and_by_session() -> None:
    """An answer has a rank among the turns and one among the sessions.

    Each turn and each session counts once. A hit in another turn of the right session counts for
    the session.
    """
    question = Question("q", "natural", "?", ((FIRST_FILE, 4),), "tune")
    found = judge_answer(
        question,
        Answer(
            [
                Place(SECOND_FILE, 1),
                Place(SECOND_FILE, 2),
                Place(FIRST_FILE, 1),
                Place(FIRST_FILE, 2),
            ],
            1.0,
        ),
    )
    assert (found.session_rank, found.turn_rank) == (2, 4)
    assert found.are_hits_right == (False, False, False, True)
    assert judge_answer(question, Answer([], 1.0))[2:4] == (0, 0)


def test_a_copy_of_an_answer_counts_as_right(small_corpus: Path) -> None:
    """A record with the same id as the expected answer counts as right in another session, too."""
    with open(small_corpus / SECOND_FILE, "ab") as stream:
        stream.write(orjson.dumps(assistant("Teapots never leak.", uuid="e")) + b"\n")
    assert find_right_places(Question("q", "natural", "?", ((FIRST_FILE, 4),), "tune")) == {
        Place(FIRST_FILE, 2),
        Place(SECOND_FILE, 1),
    }


def test_the_score_has_the_shares_of_right_answers() -> None:
    """The score has the shares of right answers, of questions without hits, and of strong hits.

    The score also has the mean reciprocal rank of the right session.
    """
    asked = [
        make_answer_with_ranks(1, 6, "strong"),
        make_answer_with_ranks(2, 1, "weak"),
        make_answer_with_ranks(0, 0),
        make_answer_with_ranks(5, 5, "fair", "strong"),
    ]
    found = compute_score(asked)
    assert found == pytest.approx((0.25, 0.75, (1 + 1 / 2 + 1 / 5) / 4, 0.25, 0.5, 0.25, 0.25))
    assert compute_score([]).turn_first_fraction == 0


def test_the_first_five_hits_are_counted_by_strength() -> None:
    """The first five hits of each answer are counted by strength, with the share of right hits."""
    found = compute_strength_precision(
        [
            make_answer_with_ranks(1, 1, *["strong"] * 2, "fair", *["weak"] * 3),
            make_answer_with_ranks(0, 0, "strong"),
        ]
    )
    assert found == {
        "strong": StrengthPrecision(3, 1 / 3),
        "fair": StrengthPrecision(1, 0),
        "weak": StrengthPrecision(2, 0),
    }


def test_a_single_time_is_the_median_and_the_95th_percentile() -> None:
    """A single time is both the median and the 95th percentile."""
    assert compute_median_and_p95([7.0]) == (7.0, 7.0)


@pytest.mark.usefixtures("small_corpus")
def test_the_naive_baseline_searches_messages_and_tool_calls() -> None:
    """The baseline searches messages, calls and results, in chunks that end at the end of a turn."""
    naive = NaiveSearcher()
    assert naive.search(["limescale"], MAX_HITS).hits == [Place(FIRST_FILE, 1)]
    assert naive.search(["the descaling?"], MAX_HITS).hits == []
    assert naive.search(["descale"], MAX_HITS).hits == [Place(FIRST_FILE, 1)]
    assert naive.search(["leaking teapot"], MAX_HITS).hits == [
        Place(FIRST_FILE, 2),
        Place(FIRST_FILE, 1),
    ]
    assert naive.search(["kettle"], 1).hits == [Place(SECOND_FILE, 1)]
    assert list(find_words("The Cats were jumping, as it is")) == ["cat", "jump"]


def test_a_long_turn_is_one_hit_of_the_naive_baseline(small_corpus: Path) -> None:
    """A turn is one hit of the baseline, even if several of its chunks match."""
    write_session(small_corpus, SECOND_ID, [user(f"{'kettle ' * MAX_CHUNK_WORDS * 2}", uuid="f")])
    assert NaiveSearcher().search(["kettle"], MAX_HITS).hits == [
        Place(SECOND_FILE, 1),
        Place(FIRST_FILE, 1),
    ]


@pytest.mark.usefixtures("small_corpus")
def test_one_baseline_joins_wordings_and_another_fuses_rankings() -> None:
    """One baseline joins several wordings into one query. Another baseline fuses their rankings."""
    naive = NaiveSearcher()
    wordings = ["kettle", "leaks", "limescale"]
    assert naive.search(wordings, MAX_HITS).hits[0] == Place(FIRST_FILE, 1)
    assert FusedNaiveSearcher(naive).search(wordings, 2).hits == [
        Place(FIRST_FILE, 1),
        Place(SECOND_FILE, 1),
    ]


def make_answer_with_ranks(session_rank: int, turn_rank: int, *strengths: str) -> JudgedAnswer:
    """Return an answer in which the first right session and the first right turn have these ranks.

    The answer has one hit for each of ``strengths``.
    """
    hits = [Place(FIRST_FILE, number) for number in range(1, len(strengths) + 1)]
    question = Question("q", "natural", "?", (), "tune")
    return JudgedAnswer(
        question,
        Answer(hits, 1.0, strengths),
        session_rank,
        turn_rank,
        tuple(hit.turn_number == turn_rank for hit in hits),
    )

"""The recall set is sound, and searches answer it at all; figures come from ``python -m benchmarks.recall.measure``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.recall.measure import Ours, false_hits, score
from benchmarks.recall.questions import (
    HALVES,
    KINDS,
    Home,
    Question,
    corpus_file,
    corpus_names,
    questions,
    right_places,
    session_of,
)
from benchmarks.recall.ripgrep import content_words
from resume_hooks.search.index.tokenize import forms_of
from tests.needs import corpus

FLOOR = 0.8  # plain questions of the half ``tune`` whose answer is among the first five hits; it is about 1.0
MOST_FALSE = 0.75  # questions without an answer that may get one; it is about 0.5


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    """Our search over the whole corpus."""
    corpus()
    return Ours(Home(tmp_path_factory.mktemp("recall") / ".claude"))


def test_the_questions_are_told_apart_and_enough() -> None:
    """60 or more have an answer, a third of them paraphrased; 20 or more have none; both halves have as many a kind."""
    asked = questions()
    assert len({question.id for question in asked}) == len(asked)
    assert len({question.text.casefold() for question in asked}) == len(asked)
    assert {question.kind for question in asked} == set(KINDS)
    assert {question.half for question in asked} == set(HALVES)
    assert all(bool(question.answers) != (question.kind == "unanswerable") for question in asked)
    answerable = [question for question in asked if question.answers]
    assert len(answerable) >= 60
    assert 3 * sum(question.kind == "paraphrased" for question in answerable) >= len(answerable)
    assert len(asked) - len(answerable) >= 20
    tune, final = (Counter(question.kind for question in questions(half)) for half in HALVES)
    assert all(abs(tune[kind] - final[kind]) <= 1 for kind in KINDS)
    assert all(any(map(forms_of, content_words(question.text))) for question in asked), "each can be looked up"


def test_every_answer_is_a_record_of_the_corpus() -> None:
    """Answers lie in files that are there, on lines that hold a record; their copies are answers, too."""
    corpus()
    names = set(corpus_names())
    for question in questions():
        for name, line in question.answers:
            assert name in names, question.id
            assert corpus_file(name).ids[line] or session_of(name), question.id
            assert line < len(corpus_file(name).turns), question.id
            assert (name, corpus_file(name).turns[line]) in right_places(question), question.id


def test_paraphrases_share_few_words_with_plain_questions() -> None:
    """A question that is only the other's words again would measure nothing new."""
    asked = questions()
    plain = [question for question in asked if question.kind == "plain"]
    for question in asked:
        if question.kind == "paraphrased":
            assert all(not _same_words(question, other) for other in plain), question.id


def test_plain_questions_are_answered(ours: Ours) -> None:
    """A ranking that is not broken has most plain questions answered among its first five hits."""
    asked = [question for question in questions("tune") if question.kind == "plain"]
    assert score(ours, asked).five >= FLOOR


def test_not_everything_is_answered(ours: Ours) -> None:
    """A search that answers every question would say nothing of what was never talked about."""
    asked = [question for question in questions("tune") if question.kind == "unanswerable"]
    assert false_hits(ours, asked) <= MOST_FALSE


def test_the_home_holds_the_whole_corpus(tmp_path: Path) -> None:
    """Every file of the corpus is searched, under the name that the questions know it by."""
    corpus()
    home = Home(tmp_path / ".claude")
    files = [str(path) for path in home.config.rglob("*.jsonl")]
    assert sorted(home.name(file) for file in files) == corpus_names()


def _same_words(one: Question, other: Question) -> bool:
    return set(content_words(one.text)) == set(content_words(other.text))

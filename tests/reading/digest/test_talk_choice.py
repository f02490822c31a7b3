"""Tests of the choice of messages for an opening."""

from __future__ import annotations

from resume_hooks.reading.digest.entries import MessageKind, TalkMessage
from resume_hooks.reading.digest.talk_choice import choose_talk


def test_older_answers_are_shown_in_full_if_they_fit() -> None:
    """With enough space, all answers are shown in full. Otherwise only the latest answers are."""
    answer = "\n".join(
        f"Finding {number}: it is as it is, and stays so for now." for number in range(100)
    )
    talk = []
    for number in range(12):
        talk.append(TalkMessage(MessageKind.REQUEST, f"s:{2 * number}", f"question {number}"))
        talk.append(TalkMessage(MessageKind.CLOSING, f"s:{2 * number + 1}", f"{number}\n{answer}"))

    def indexes_of_complete_answers(max_characters: int) -> list[int]:
        texts = choose_talk(talk, max_characters, lambda _, text: len(text), len(talk))
        return [at // 2 for at, text in texts.items() if at % 2 and text == talk[at].text]

    assert sorted(indexes_of_complete_answers(13 * len(answer))) == list(range(12))
    small = indexes_of_complete_answers(6 * len(answer))
    assert 11 in small
    assert 0 not in small


def test_messages_after_the_last_request_are_preferred() -> None:
    """The latest message after the last request is preferred to older messages of the user."""
    talk = [
        TalkMessage(MessageKind.REQUEST, f"s:{number}", "old words " * 20) for number in range(20)
    ]
    talk += [
        TalkMessage(MessageKind.NARRATION, f"s:{number}", "what was found " * 5)
        for number in range(20, 24)
    ]
    texts = choose_talk(talk, 1_000, lambda _, text: len(text), 20)
    assert 23 in texts
    assert len([at for at in texts if at < 20]) < 20


def test_a_report_is_shown_in_full_only_if_calls_fit_too() -> None:
    """A report is shown in full only if enough space is left for calls. Otherwise its middle is omitted."""
    report = "\n".join(f"Row {number} of the report." for number in range(400))
    talk = [
        TalkMessage(MessageKind.REQUEST, "s:0", "look"),
        TalkMessage(MessageKind.REPORT, "s:1", report),
        TalkMessage(MessageKind.CLOSING, "s:2", "Looked."),
    ]

    def choose_report_text(max_characters: int) -> str:
        return choose_talk(talk, max_characters, lambda _, text: len(text), len(talk))[1]

    assert choose_report_text(2 * len(report)) == report
    shortened = choose_report_text(len(report) * 5 // 4)
    assert len(shortened) < 4_100
    assert shortened.startswith("Row 0 of")
    assert shortened.endswith("Row 399 of the report.")


def test_texts_between_calls_leave_space_for_calls() -> None:
    """In a small opening, texts between calls take at most 70 % of the space.

    The last text of each turn is shown. A large opening shows all texts.
    """
    words = "what was found, and why it is so " * 5
    talk = []
    for turn in range(3):
        talk.append(TalkMessage(MessageKind.REQUEST, f"s:{100 * turn}", "go on"))
        for number in range(1, 50):
            message = TalkMessage(MessageKind.NARRATION, f"s:{100 * turn + number}", words)
            talk.append(message)

    def choose_texts(max_characters: int) -> dict[int, str]:
        return choose_talk(talk, max_characters, lambda _, text: len(text), len(talk))

    shown = choose_texts(21_000)
    assert sum(map(len, shown.values())) <= 21_000 * 0.7
    assert {1 + 48, 51 + 48, 101 + 48} <= shown.keys()
    assert not {1, 51} & shown.keys()
    assert len(choose_texts(60_000)) == len(talk)

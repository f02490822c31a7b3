"""Tests of the module's questions, in node with a fake client.

The tests check which keys count as an answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hook_scripts.run_node import NEEDS_NODE_MARK, run_node
from tests.needs import REPO

pytestmark = NEEDS_NODE_MARK

CHOICES = [["Open", "yes"], ["Not now", "no"]]
QUESTION_SCRIPT = """
import { settle } from %(asking)s
const { answers, called, typed } = %(given)s, told = [], first = []
let now = 0, shown = 0, filled
Date.now = () => now
const $ = {
  plugin: { root: '' },
  session: {
    id: async () => '', info: async () => ({}), surfaces: async () => ['terminal'],
    usage: async () => ({ context: {} }),
  },
  process: {
    hookEnv: async () => ({}),
    run: async (_, { stdin }) => {
      const { args } = JSON.parse(stdin)
      told.push(args)
      const reply = args ? { text: 'done' } : { ask: 'Open it?', choices: %(choices)s }
      return { exitCode: 0, stdout: JSON.stringify(reply) }
    },
  },
  clock: { sleep: async ms => { now += ms } },
  prompt: {
    read: async () => ({ text: 'x'.repeat(Math.min(typed, 1 + Math.floor(now / 150))) }),
    fill: async ({ text }) => { filled = text },
  },
  ui: {
    status: () => {},
    ask: async (_, labels) => {
      shown += 1
      first.push(labels[0])
      const [answer, after] = answers.shift()
      now += after
      if (!answer) throw new Error('no answer')
      return answer
    },
  },
}
await settle($, 'trim', '', undefined, called)
console.log(JSON.stringify({ told, shown, now, first, filled }))
"""
"""A script in which a user gives several answers, each after a number of milliseconds.

The user also types ``typed`` letters into the input box, one every 150 ms.
"""


def run_question(
    *answers: tuple[str, int], is_requested: bool, typed_count: int = 0
) -> dict[str, Any]:
    """Show a question to a user who gives these answers.

    Return the engine's inputs, the number of times the question was shown, and the time in ms.
    """
    fields = {
        "asking": json.dumps((REPO / "hooks" / "asking.mjs").as_uri()),
        "given": json.dumps({"answers": answers, "called": is_requested, "typed": typed_count}),
        "choices": json.dumps(CHOICES),
    }
    found = run_node(QUESTION_SCRIPT % fields)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("is_requested", [True, False])
@pytest.mark.parametrize(
    "early_answer", ["Open", "Not now", ""], ids=["first choice", "last choice", "Esc"]
)
def test_a_key_pressed_as_a_question_opens_is_ignored(
    is_requested: bool, early_answer: str
) -> None:
    """A key that is pressed just when a question opens is ignored, and the question is shown again."""
    done = run_question((early_answer, 300), ("Open", 4000), is_requested=is_requested)
    assert (done["told"], done["shown"]) == (["", "yes"], 2)


@pytest.mark.parametrize("is_requested", [True, False])
def test_an_answer_after_four_seconds_counts_immediately(is_requested: bool) -> None:
    """Esc four seconds after a question appears counts as the last choice; the question does not return."""
    done = run_question(("", 4000), is_requested=is_requested)
    assert (done["told"], done["shown"]) == (["", "no"], 1)


@pytest.mark.parametrize("is_requested", [True, False])
def test_a_question_that_the_client_refuses_to_show_ends(is_requested: bool) -> None:
    """If the client refuses to show a question three times, the question ends with the last choice."""
    done = run_question(*[("", 0)] * 3, is_requested=is_requested)
    assert (done["told"], done["shown"]) == (["", "no"], 3)


@pytest.mark.parametrize(("is_requested", "first_choice"), [(True, "Open"), (False, "Not now")])
def test_an_unrequested_question_has_a_harmless_default(
    is_requested: bool, first_choice: str
) -> None:
    """If the user did not request a question, its first choice changes nothing."""
    assert run_question(("Not now", 4000), is_requested=is_requested)["first"] == [first_choice]


def test_words_typed_into_a_question_return_to_the_box() -> None:
    """If a question appears that the user did not ask for, words typed into it return to the input box."""
    done = run_question(("tests now", 4000), is_requested=False)
    assert (done["told"], done["filled"]) == (["", "no"], "tests now")


def test_a_question_after_a_command_waits_for_typing() -> None:
    """A question after a command opens immediately, but not while the user is typing."""
    assert run_question(("Open", 4000), is_requested=True)["now"] == 4000
    typing = run_question(("Open", 4000), is_requested=True, typed_count=20)
    assert typing["told"] == ["", "yes"]
    assert typing["now"] > 20 * 150 + 4000

"""Tests of the optional parts.

Every part is in the table, and a part that follows the documented recipe works.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks import part_table, parts, questions, seam
from resume_hooks.cli.main import run
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from tests import conftest
from tests.needs import REPO

PART_SOURCE = '''
"""An example."""

from resume_hooks import questions
from resume_hooks.part import Answer, Part, Verb

PART = Part(
    verbs=(Verb("greet", "Say hello.", insert_before="untrim"),),
    answers=(Answer(questions.note_on_session, "notes:note"),),
)
'''

VERBS_SOURCE = '''
"""The verb of this part."""

from resume_hooks.cli.options import VerbOptions, flag


class GreetOptions(VerbOptions, function="resume_hooks.parts.example.verbs.greet:greet"):
    """Say hello."""

    loud: bool = flag("--loud", help="Say it in capitals.")
'''

VERB_SOURCE = '''
"""``greet``: an example."""

from resume_hooks.parts.example.verbs import GreetOptions


def greet(options: GreetOptions) -> None:
    """Say hello, as loud as asked."""
    said = "HELLO" if options.loud else "hello"
    options.print_answer({"said": said}, lambda: said)
'''

FORMS_SOURCE = '''
"""The form of greet."""

from resume_hooks.cli.schema.base import StrictModel


class GreetSchema(StrictModel):
    """What was said."""

    said: str
'''


@pytest.fixture
def example_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a part that follows the recipe in docs/architecture.md, and add it to the table of parts."""
    part = tmp_path / "example"
    (part / "verbs").mkdir(parents=True)
    for name, text in {
        "__init__": PART_SOURCE, "verbs/__init__": VERBS_SOURCE, "verbs/greet": VERB_SOURCE, "forms": FORMS_SOURCE,
        "notes": "def note(session_id, where):\n    return f'a note on {session_id}'\n",
    }.items():  # fmt: skip
        (part / f"{name}.py").write_text(text)
    monkeypatch.setattr(parts, "__path__", [*parts.__path__, str(tmp_path)])
    monkeypatch.setattr(seam, "PARTS_FOLDER", str(tmp_path))
    monkeypatch.setitem(part_table.VERBS, "greet", ("example", "Say hello.", "untrim"))
    name = questions.note_on_session.name
    monkeypatch.setitem(part_table.FUNCTIONS_BY_QUESTION, name, [("example", "notes:note")])
    yield part
    for name in [name for name in sys.modules if name.startswith("resume_hooks.parts.example")]:
        del sys.modules[name]


def test_each_folder_of_a_part_is_listed() -> None:
    """Every part's folder is listed in ``parts.PART_NAMES``. The folder of a listed part may be missing."""
    folders = {path.parent.name for path in Path(seam.PARTS_FOLDER).glob("*/__init__.py")}
    assert folders <= set(parts.PART_NAMES)


def test_each_listed_test_file_exists() -> None:
    """Every test file that conftest.py lists exists, unless it belongs to a missing part.

    If a name in the list were wrong, the tests in the file would never run.
    """
    named = (Path(name) for name in conftest.TESTS_OF_CONNECTIONS | conftest.TESTS_WITHOUT_PARTS)
    here = (
        name
        for name in named
        if name.parts[0] != "parts" or Path(seam.PARTS_FOLDER, name.parts[1]).is_dir()
    )
    assert [str(name) for name in here if not (REPO / "tests" / name).exists()] == []


def test_a_part_that_follows_the_recipe_works(
    example_part: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb of a new part runs, its output fits its schema, and the core uses the part's answer."""
    assert example_part.is_dir()
    assert run(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert run(["greet", "--loud", "--json"]) == 0
    assert '"said":"HELLO"' in capsys.readouterr().out.replace(" ", "")
    assert [note("x", Where()) for note in seam.find_answers(questions.note_on_session)] == [
        "a note on x"
    ]


def test_the_verb_of_a_missing_part_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a part is missing, its verb raises an error that names the part.

    The part's answers and the names of its verbs are not listed.
    """
    monkeypatch.setattr(seam, "PARTS_FOLDER", str(tmp_path))
    verb, (part, _, _) = next(iter(part_table.VERBS.items()))
    with pytest.raises(
        UsageError, match=f"{verb} belongs to the part {part}, which is not installed"
    ):
        seam.verb_module(verb)
    assert not list(seam.find_answers(questions.note_on_session))
    assert list(seam.insert_part_names(["untrim"], part_table.VERBS)) == ["untrim"]


def test_a_part_that_does_not_load_raises_an_error(example_part: Path) -> None:
    """If a part's module cannot be imported, the core raises the error."""
    (example_part / "notes.py").write_text("import nowhere\n")
    with pytest.raises(ModuleNotFoundError):
        list(seam.find_answers(questions.note_on_session))

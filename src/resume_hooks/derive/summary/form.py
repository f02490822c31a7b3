"""The form of a summary: what a model is asked to fill in, for a part of a session and for the whole.

Loose on purpose: clients ask a model again, at the price of reading all of it anew, where an answer breaks a bound.
"""

from __future__ import annotations

from pydantic import BaseModel, Field


class Point(BaseModel):
    """One thing worth knowing, on one line."""

    text: str = Field(description="one concrete sentence, with the names, paths and values that it needs")
    records: list[int | str] = Field(default=[], description="numbers of the records that show it, as they stand there")


class Summary(BaseModel):
    """What somebody needs to go on with the work without having read the session."""

    goal: str = Field(description="what the user wants in the end, in one or two sentences")
    state: str = Field(description="where the work stands at the end of the material, in one to three sentences")
    constraints: list[Point] = Field(default=[], description="what the user demanded or ruled out, in their own words")
    decisions: list[Point] = Field(default=[], description="what was decided, each with its reason")
    done: list[Point] = Field(default=[], description="what was finished, with the files that it changed")
    facts: list[Point] = Field(default=[], description="how things are here: commands that work, places, versions")
    failed: list[Point] = Field(default=[], description="what was tried in vain, and why it did not work")
    open: list[Point] = Field(default=[], description="errors that are not solved, questions that nobody answered")
    next: list[Point] = Field(default=[], description="what remains to be done, the first thing first")

"""Tests of searches in imported sessions."""

from __future__ import annotations

import hashlib

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.imports import plan_import as importing
from resume_hooks.derive.imports.plan_import import ImportSource
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome, assistant, session_bytes, user


def test_answers_of_an_imported_session_are_found(config_home: ConfigHome) -> None:
    """The answers in an imported session are found, although they name no model.

    This plugin's own cards name no model either, but are not indexed.
    """
    content = session_bytes(
        [user("how", uuid="a"), assistant("the answer is walrus", uuid="b", parent="a")]
    )
    source, here = config_home.root / "in", config_home.root / "here"
    source.write_bytes(content)
    here.mkdir()
    came = ImportSource(str(source), "x", hashlib.sha256(content).hexdigest(), len(content))
    receipt = write_child(
        importing.plan_import(came, str(here), config_home.where), config_home.where
    )
    (hit,) = search_index(["walrus"], Scope(), config_home.where).hits
    assert (hit.session_id, hit.role) == (receipt.session_id, "reply")

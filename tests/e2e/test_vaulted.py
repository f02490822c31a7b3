"""Children of vaulted sessions in the real client: what is sent of one is what is sent of a child of the original."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import write
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from tests.e2e.harness.client import NEWEST, ClientHome, ClientVersion, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_fork import PROMPT, environ_of, installed, said
from tests.needs import one_in
from tests.sessions.archived.away import away

SAMPLE = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
)
"""One with large outputs and sub-agents, one with a call that got no answer."""


def messages(client: ClientVersion, home: ClientHome, api: MockApi, made: Receipt) -> str:
    """What the client sends when it resumes a child, without what names that child."""
    api.clear()
    done = run_print(client, home, api, PROMPT, resume=made.session_id)
    assert done.returncode == 0, done.stderr
    request: dict[str, Any] = api.main_requests()[0]
    assert said(request)
    return json.dumps(request["messages"]).replace(made.session_id, "<child>")


@pytest.mark.parametrize("name", one_in(2, SAMPLE))
def test_forks_send_the_same(name: str, home: ClientHome, api: MockApi) -> None:
    """Byte for byte, of the session as it was there and of the copy that is left."""
    client = find_client(NEWEST)
    parent = installed(home, name)
    environ = environ_of(home)
    before = write(fork.plan(locate.session_file(str(parent)), Where(environ)), Where(environ))
    wanted = messages(client, home, api, before)
    away(parent, environ)
    kept = locate.resolve(parent.stem, "/", Where(environ))
    after = write(fork.plan(kept, Where(environ)), Where(environ))
    assert not parent.exists()
    assert messages(client, home, api, after) == wanted


def test_a_handoff_of_it_resumes(home: ClientHome, api: MockApi) -> None:
    """Its opening tells the lineage, with the copy that is left."""
    client = find_client(NEWEST)
    parent = installed(home, SAMPLE[0])
    environ = environ_of(home)
    away(parent, environ)
    kept = locate.resolve(parent.stem, "/", Where(environ))
    made = write(agents.fresh(kept, Where(environ)), Where(environ))
    sent = messages(client, home, api, made)
    assert parent.stem in sent
    assert "(kept copy)" in sent

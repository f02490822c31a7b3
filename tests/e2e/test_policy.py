"""Tests that a trim in place is refused under an organization's policy.

If the trim were started anyway, the client would compact the conversation in its own way.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.client import ClientHome, Tui
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.versions import ClientVersion
from tests.e2e.test_inside import open_real_session

SECURITY_PLUGIN_ID = "cc-plugin-sec-default@builtin"
POLICIES_BY_NAME: dict[str, dict[str, Any]] = {
    "retention": {"cleanupPeriodDays": 60},
    "modules": {"pluginConfigs": {SECURITY_PLUGIN_ID: {"options": {"allowManagedModsOnly": True}}}},
    "marketplaces": {"strictKnownMarketplaces": [{"source": "github", "repo": "example/plugins"}]},
}


def client_under_policy(
    client: ClientVersion, policy: dict[str, Any], scratch: Path
) -> ClientVersion:
    """Return a client that runs as on a machine with this policy.

    The policy is in an overlay of ``/etc``, which disappears when the client ends.
    """
    upper, work, file = scratch / "upper", scratch / "work", scratch / "policy.json"
    upper.mkdir()
    work.mkdir()
    file.write_text(json.dumps(policy))
    layer = f"lowerdir=/etc,upperdir={upper},workdir={work}"
    script = (
        f"mount -t overlay overlay -o {shlex.quote(layer)} /etc && mkdir -p /etc/claude-code && "
        f"cp {shlex.quote(str(file))} /etc/claude-code/managed-settings.json"
    )
    if subprocess.run(
        ["unshare", "-m", "sh", "-c", script], check=False, capture_output=True
    ).returncode:
        pytest.skip(
            "needs a layer over /etc in a namespace of its own (unshare, overlay): as root on Linux"
        )
    return replace(
        client,
        command=("unshare", "-m", "sh", "-c", f'{script} && exec "$@"', "sh", *client.command),
    )


@pytest.mark.parametrize(
    "policy_name",
    [
        "retention",
        *(pytest.param(name, marks=pytest.mark.wide) for name in ("modules", "marketplaces")),
    ],
)
def test_a_policy_forbids_a_trim_in_place(
    client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    parent: Path,
    tmp_path_factory: Any,
    policy_name: str,
) -> None:
    """Under a policy, ``/trim here`` says why it is refused and suggests a trimmed copy.

    If the policy forbids modules, the command is unknown. No request is sent, and the session is
    not compacted.
    """
    scratch = Path(tmp_path_factory.mktemp("policy"))
    with Tui(client_under_policy(client, POLICIES_BY_NAME[policy_name], scratch), home, api) as tui:
        open_real_session(tui, plugin)
        before = parent.read_bytes()
        tui.submit("/trim here")
        if policy_name == "modules":
            tui.wait_for("Unknown command")
        else:
            tui.wait_for(r"Nothing was trimmed here: under your organization's policy")
            tui.wait_for("To create a trimmed copy")
        tui.wait_until_idle()
        assert not api.main_requests()
        assert b"compact_boundary" not in parent.read_bytes()[len(before) :]

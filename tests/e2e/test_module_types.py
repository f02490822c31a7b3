"""Tests that the module's calls to the client match the type declarations of the newest client."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from tests.e2e.harness.client import Tui
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.versions import clients_folder
from tests.e2e.plugin import ENGINE_ENV
from tests.needs import require_for_test

CLIENT_PARAMETER_PATTERN = re.compile(r"(function \w+\(|= (?:async )?\(|= async )\$(?=[,)]| =>)")
"""Matches the beginning of functions that have a parameter for the client's interface.

The test adds the parameter's type, because the module itself has no types.
"""

TYPED_CLIENT_PARAMETER = "/** @type {import('claude-code').EngineInterface} */ $"
TSCONFIG = {
    "extends": "./.claude-plugin/types/tsconfig.json",
    "compilerOptions": {"allowJs": True, "checkJs": True, "strict": False},
    "include": ["hooks"],
}


def test_every_call_of_the_client_fits_its_declaration(tui: Tui, plugin: Path) -> None:
    """Every client function that the module calls exists and accepts the module's arguments."""
    compiler = clients_folder() / "typescript" / "node_modules" / "typescript" / "bin" / "tsc"
    require_for_test("TypeScript", compiler.is_file(), "sh tools/clients (it needs npm)")
    require_for_test("node", shutil.which("node"), "install Node.js")
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
    types = plugin / ".claude-plugin" / "types"
    assert wait_until(lambda: len(list(types.glob("*/index.d.ts"))) == 3)
    tui.close()
    for path in (plugin / "hooks").glob("*.mjs"):
        typed, count = CLIENT_PARAMETER_PATTERN.subn(
            rf"\1{TYPED_CLIENT_PARAMETER}", re.sub(r"async \$ =>", "async ($) =>", path.read_text())
        )
        assert count or path.name in {"commands.mjs", "shared_values.mjs"}, (
            f"{path.name} calls the client nowhere"
        )
        path.write_text(typed)
    (plugin / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    done = subprocess.run(
        ["node", str(compiler), "-p", str(plugin)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.stdout == ""
    wrong = plugin / "hooks" / "band.mjs"
    wrong.write_text(wrong.read_text().replace("$.session.id()", "$.session.idd()"))
    done = subprocess.run(
        ["node", str(compiler), "-p", str(plugin)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert "'idd' does not exist" in done.stdout

"""Tests of the plugin's folder that ``install`` assembles."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from resume_hooks.errors import WriteFailed
from resume_hooks.system.plugin_files import assemble_plugin


def test_a_full_disk_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk raises one error, which does not list every file. The copied files are removed."""

    def raise_full_disk(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "from", None, "to")

    monkeypatch.setattr(shutil, "copy2", raise_full_disk)
    # The function is also the default value of a parameter of ``copytree``, so it is replaced
    # there, too.
    monkeypatch.setattr(
        shutil.copytree, "__defaults__", (False, None, raise_full_disk, False, False)
    )
    target = tmp_path / "state" / "plugin"
    with pytest.raises(WriteFailed) as failure:
        assemble_plugin(str(target))
    assert failure.value.message == (
        f"The plugin could not be assembled at {target}: No space left on device"
    )
    assert "Check free space" in failure.value.remedy
    assert list(target.parent.iterdir()) == []

"""The package's version, importable without the API."""

from __future__ import annotations

__version__ = "0.2.0"

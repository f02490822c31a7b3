"""The version of the package; importable without the face that offers the API."""

from __future__ import annotations

__version__ = "0.2.0"

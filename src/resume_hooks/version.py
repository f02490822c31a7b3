"""The version of the package. This module can be imported without loading the API."""

from __future__ import annotations

__version__ = "0.2.0"

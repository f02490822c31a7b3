"""The version of the package. Importing it does not load the API."""

from __future__ import annotations

__version__ = "0.2.0"

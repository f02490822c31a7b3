"""The terminals of ``resume``."""

from tests.cli.test_resume_terminal import desk

__all__ = ["desk"]

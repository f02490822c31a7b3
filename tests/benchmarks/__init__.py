"""Tests of the measurement suites."""

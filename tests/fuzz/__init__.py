"""Hostile input, made up from bytes: each target reads what it decides on from a string of them.

The same bytes make the same case. In CI hypothesis gives them, always the same ones, and shortens
what fails; ``python -m tests.fuzz`` gives random ones for as long as it is reported.
"""

"""Measure how many secrets of a list of kinds are found."""  # noqa: A005 - run as benchmarks.secrets

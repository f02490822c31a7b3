"""Measure how many secrets of many kinds are found."""  # noqa: A005 - run as benchmarks.secrets

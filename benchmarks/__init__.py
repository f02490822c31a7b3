"""Benchmarks and what they run on."""

"""Measure how many secrets of a list of kinds are found."""

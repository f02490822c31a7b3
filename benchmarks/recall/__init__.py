"""Measure the quality of searches, with questions about the corpus in users' own words."""

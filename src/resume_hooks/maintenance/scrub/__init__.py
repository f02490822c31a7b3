"""Scrub: secrets taken out of a session, and of every place that holds a copy of them."""

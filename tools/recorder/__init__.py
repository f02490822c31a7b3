"""Record what every entry point of a checkout does with many sessions.

The clock and the ids are frozen, so that two records of the same code are equal and can be
compared.
"""

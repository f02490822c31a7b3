"""The digest: a summary of a session, computed without a model, with a reference for each line.

A session and its ancestors are read in one pass, within a budget. The sections contain the user's
own words, files, commands with their outcomes, and sentences selected by keywords. Nothing is
paraphrased, so nothing is invented. The digest has two sizes: the opening, about 900 tokens, and
the whole, which the child stores as a record of its own.
"""

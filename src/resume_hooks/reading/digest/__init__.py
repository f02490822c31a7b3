"""The digest: an overview of a session that is computed without a model, with a reference for each line.

A session and its ancestors are read in one pass, within a budget. The sections contain the user's
own words, files, commands with their outcomes, and sentences selected by keywords. All of it is
quoted and nothing is paraphrased, so nothing is invented. The digest has two sizes: the opening,
about 900 tokens, and the whole digest, which the child stores in a record of its own.
"""

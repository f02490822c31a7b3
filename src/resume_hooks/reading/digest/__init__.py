"""The digest: the results of a session, computed without a model, each line with its reference.

A session and its ancestors are read in one pass, within a budget. The sections hold the user's own
words, files, commands and how they ended, and sentences picked by the words in them; nothing is
understood, so nothing is made up. Two tiers are cut: the opening, about 900 tokens, and the whole,
which the child keeps as a record of its own.
"""

"""The digest: an overview of a session that is computed without a model. Each line has a reference.

A session and its ancestors are read in one pass, within a budget of bytes. The sections contain the
user's own words, files, commands with their outcomes, and sentences selected by keywords. Every
line is a quotation: no text is paraphrased or invented. The digest has two sizes: the short one in
an opening, about 900 tokens, and the whole digest, which the child stores in a record of its own.
"""

"""Trim: a child in which placeholders replace bulky contents. Rules choose these contents.

The plan is a value, and it is written only once.

1. One scan of the session parses each record. It collects the pieces that could be trimmed, and the blocks that no
   API accepts.
2. Calibration estimates the tokens of each piece from the API's counts for two consecutive answers. Selection applies
   the rules in order, the least useful contents first. The result is a value, and a preview shows it.
3. The live chain is written record by record. A record without an edit is copied as bytes, with its ids, links and
   counts changed in the raw text. In place, a backup is written first, and lines
   that others append during the trim are kept.

A smart trim first applies four rules, then asks a model about the remaining pieces, in several
parts. A piece is trimmed only if the model saw it and its bytes are still the same.
"""

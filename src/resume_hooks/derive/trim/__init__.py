"""Trim a session: make a child in which placeholders replace long contents that rules choose.

1. A scan of the session parses each record once. It collects the pieces that could be trimmed, and
   the blocks that the API would reject.
2. Calibration estimates the tokens of each piece from the API's counts for consecutive answers.
   Selection applies the rules in order, and so chooses the least useful contents first. The preview
   shows which pieces were selected.
3. The records of the live chain are written one by one. A record without an edit is copied as bytes,
   and only its ids, links and token counts are changed in the raw text. A trim in place first writes
   a backup, and keeps the lines that a client appends during the trim.

A smart trim first applies four rules, and then asks a model about the remaining pieces, in several
calls. A piece is trimmed only if the model has read it and its bytes have not changed since then.
"""

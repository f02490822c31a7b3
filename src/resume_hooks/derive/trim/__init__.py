"""Trim: a child with placeholders for bulky contents, chosen by rules.

The plan is a value, and it is written once.

1. The session is scanned once; as each record is parsed it is noted what could go, and what no API would take.
2. Calibration finds what each piece costs, from what the API counted between two answers. Selection asks the rules in
   order of what is missed least. The outcome is a value: a preview is the plan, unapplied.
3. The live chain is written in one line: a record that no edit names is copied as bytes, with its ids, links and counts
   changed in the raw text. In place, a backup comes first and what others append meanwhile is carried over.

A smart trim first applies four rules, then asks a model about the rest in parts. A piece is trimmed
only if the model was shown it and its bytes are still the same.
"""

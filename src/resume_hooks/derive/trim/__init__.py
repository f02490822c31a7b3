"""Trim: a child whose bulky contents are placeholders, chosen by rule.

Decided purely, written once.

1. The session is scanned once; as each record is parsed it is noted what could go, and what no API would take.
2. Calibration finds what each piece costs, from what the API counted between two answers. Selection asks the rules in
   order of what is missed least. The outcome is a value: a preview is the plan, unapplied.
3. The live chain is written in one line: a record that no edit names is copied as bytes, with its ids, links and counts
   changed in the raw text. In place, a backup comes first and what others append meanwhile is carried over.

A smart trim asks four rules first, then a model, in parts; only what was offered and is still
byte-identical counts.
"""

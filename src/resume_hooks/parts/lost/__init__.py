"""What is left of sessions whose transcripts are gone: their prompts, which the client's ``history.jsonl`` still has.

They are copied into our form of record, in the state folder, and read as any other agent's sessions are. A session with
a transcript, a kept copy or a place in the trash is none of them.
"""

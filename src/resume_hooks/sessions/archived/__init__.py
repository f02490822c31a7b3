"""Read the vault: its layout, the manifests, and unpacked copies of sessions.

A locator that matches nothing in the project folders is looked up in the vault's manifests. A match
is opened as a verified copy of the pack and read like any session; changes to it are refused.
"""

"""Read the vault: its layout, its manifests, and unpacked copies of its sessions.

If a locator matches no session in the project folders, it is looked up in the vault's manifests.
The session that it matches is unpacked, verified, and read like any other session. Verbs refuse to
change it.
"""

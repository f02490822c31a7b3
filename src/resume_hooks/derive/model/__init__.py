"""Access models through a common interface: in a headless run, or in a fork of the session."""

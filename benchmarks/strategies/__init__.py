"""The ways on from a session, measured beside each other on labelled real sessions."""

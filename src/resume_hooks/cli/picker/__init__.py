"""The chooser of sessions: a list that is searched as one types, beside a preview of the session it stands on."""

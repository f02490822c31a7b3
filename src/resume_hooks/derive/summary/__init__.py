"""Context rollover: a model's summary of a session, put into the fresh child beside the digest."""

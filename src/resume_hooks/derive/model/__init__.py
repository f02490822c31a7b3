"""Access to models: a common interface, and two ways to ask a model, headless and forked."""

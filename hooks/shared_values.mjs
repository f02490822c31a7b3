// Numbers shared with the engine. Made by `make docs` from src/resume_hooks/shared_values.py.

export const FULLNESS_CHECK_TOKENS = 60000 // from this context size on, the engine is asked
export const MODEL_MS = 120000 // milliseconds for a model's complete answer
export const WAITING_MS = 170000 // milliseconds for a reply that waits for a model

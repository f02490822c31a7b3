// Numbers shared with the engine. Made by `make docs` from src/resume_hooks/shared_values.py.

export const FULLNESS_CHECK_TOKENS = 60000 // context size from which on the engine is asked
export const MODEL_MS = 120000 // milliseconds that a model has for all of an answer
export const WAITING_MS = 170000 // milliseconds for an answer of a model

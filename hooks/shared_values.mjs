// Numbers shared with the engine. Made by `make docs` from src/resume_hooks/shared_values.py.

export const LOOK_TOKENS = 60000 // of a context, from which on the engine is asked how full it is
export const MODEL_MS = 120000 // milliseconds that a model has for all of an answer
export const WAITING_MS = 170000 // milliseconds for an answer that a model has a part in

// The names of our commands in the client, and its messages. Made by `make docs` from the trigger table.

// Triggers without arguments.
export const ANSWERED_TRIGGERS = [">handoff", ">rollover", ">resume", ">back", ">search", ">session", ">lineage", ">recall", ">help", ">rewind", ">recover-context", ">continue", ">session-id"]

export const PROMPT_HELD_MESSAGE = "another session is opening, with these words in its input box"
export const PROMPT_IN_LIST_MESSAGE = "the list that is opening has these words"

export const NOT_ALONE = "a command runs only if it is alone in the input box; Enter again sends this text as it is"

export const COMMANDS = [
  {"name": "handoff", "description": "Continue in a new session that knows this one; size: 4k, 12k, 24k, or all for a copy", "argumentHint": "[size] [--new-task] [next step]"},
  {"name": "rollover", "description": "Continue in a new session with a model's summary; costs tokens and takes up to two minutes", "argumentHint": "[focus]"},
  {"name": "trim", "description": "Continue in a copy without old tool output; asks first", "argumentHint": "[options]"},
  {"name": "untrim", "description": "Continue in a copy with the trimmed contents restored", "argumentHint": ""},
  {"name": "full", "description": "Show how full this session is and the best way to continue", "argumentHint": "[--table]", "immediate": true},
  {"name": "mark", "description": "Mark this place before you try something", "argumentHint": "[goal]"},
  {"name": "back", "description": "Go back to the mark (or from a fork to its parent) in a new session that contains only a report", "argumentHint": "report"},
  {"name": "search", "description": "Find what was said in this project; --all: in every project", "argumentHint": "[--all] words", "immediate": true},
  {"name": "sessions", "description": "List the newest sessions of this project; --all: of every project", "argumentHint": "[--all]", "immediate": true},
  {"name": "lineage", "description": "Show this session's ancestors, oldest first", "argumentHint": "", "immediate": true},
  {"name": "recall", "description": "Show what was done here, to paste if the model has lost it", "argumentHint": "", "immediate": true},
]

export const PREFIXED_COMMANDS = [
  "resume-hooks:handoff",
  "resume-hooks:rollover",
  "resume-hooks:trim",
  "resume-hooks:resume",
  "resume-hooks:mark",
  "resume-hooks:back",
  "resume-hooks:search",
  "resume-hooks:session",
  "resume-hooks:lineage",
  "resume-hooks:recall",
  "resume-hooks:help",
]

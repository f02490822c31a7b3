"""Children of Codex sessions: self-contained rollouts of the old form, which every version of its CLI resumes.

``rollout`` makes the lines, purely; the other modules decide what stands in them, as the packages beside this one do
for Claude Code. Nothing of Codex is ever written but new files.
"""

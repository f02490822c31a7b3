"""Define the verbs that create a child or trim a session in place, one verb in each module.

Hooks, the plugin's JavaScript module, the shell and the API all use these functions.
"""

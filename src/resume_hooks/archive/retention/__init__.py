"""Archive sessions before the client deletes them, and parents as soon as they have a child.

The client deletes each transcript, large output and file backup separately, once it is old enough.
When a session starts, a shell script reads a timestamp in the project's folder to see whether a
check is due. The check archives the most urgent sessions for 30 ms and reports them in one line. An
``async`` hook, for which the user does not have to wait, archives the other sessions.
``vault.policy`` decides which sessions are removed from the vault.
"""

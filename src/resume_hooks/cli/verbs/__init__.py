"""The options and the help of the core's verbs. Importing these modules imports only click.

The verbs of a part are declared in the module ``verbs`` of that part.
"""

"""A list of kinds of secrets, and what is found of them."""  # noqa: A005 - run as benchmarks.secrets

"""The harness of the contract tests; start with `run` beside this directory."""

"""The harness of the interop tests. Python's standard library only; start with `run` beside this directory."""

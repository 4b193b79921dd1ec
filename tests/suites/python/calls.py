"""Runs the functions of a module whose names begin with `test_`, each with a client and an empty directory of its own, and prints a
JSON line for each: its name, what came of it, what it said."""

import json
import traceback


def run(tests, client_of, directory_of):
    """`tests` are the module's names; `client_of` gives the client, and `directory_of` makes the test's directory and gives its path."""
    for name, test in tests.items():
        if not name.startswith("test_"):
            continue
        try:
            test(client_of(), directory_of(name))
            result, said = "passed", ""
        except Exception:
            result, said = "failed", traceback.format_exc()
        print(json.dumps({"test": name.removeprefix("test_"), "result": result, "said": said}), flush=True)


def raises(kind, call):
    """The error that the call ends in."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"it ended in no {kind.__name__}")

"""What was tried and how it went: a line when a case ends, a table at the end."""

import contextlib
import re
import subprocess
import time
import traceback


class Report:
    def __init__(self, logs):
        self.logs = logs
        self.rows = []
        self.failed = 0

    @contextlib.contextmanager
    def case(self, client, case):
        """Everything in the `with` block is one row. A failure is told and kept; the next case still runs."""
        begun = time.monotonic()
        note = Note()
        try:
            yield note
            result = "ok"
        except KeyboardInterrupt:
            raise
        except Exception as error:
            result = "FAILED"
            self.failed += 1
            log = self.logs / (re.sub(r"[^a-z0-9]+", "-", f"{client} {case}".lower()).strip("-") + ".log")
            log.write_text(explain(error), errors="replace")
            note.text = f"see {log.name}"
            print(explain(error)[-3000:], flush=True)
        seconds = time.monotonic() - begun
        self.rows.append((client, case, result, f"{seconds:.1f} s", note.text))
        print(f"{client}: {case}: {result} ({seconds:.1f} s) {note.text}".rstrip(), flush=True)

    def table(self):
        rows = [("client", "case", "result", "time", "note"), *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n" + "\n".join(lines)


class Note:
    """What a case wants to say in the table's last column."""

    def __init__(self):
        self.text = ""


class Failure(Exception):
    """Something was not as it must be."""


def check(holds, sentence):
    if not holds:
        raise Failure(sentence)


def explain(error):
    """The error as text, with what a failed command printed."""
    if isinstance(error, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        output = "".join(text(part) for part in (error.stdout, error.stderr))
        return f"{error}\n{output}"
    if isinstance(error, Failure):
        return f"{error}\n"
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def text(output):
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""

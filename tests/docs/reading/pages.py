"""What a page says to run."""

import re
from dataclasses import dataclass, field

PROMPT = re.compile(r"^(?P<machine>[a-z][a-z0-9-]*)?\$ (?P<command>.*)$")
MARK = re.compile(r"^<!-- (?P<word>run|serve|write|stop|setup)\b(?P<rest>.*)$")


class PageError(Exception):
    """The page's marks make no sense."""


@dataclass
class Command:
    text: str
    # Empty: the machine on which the reader sits.
    machine: str = ""
    # None: the page shows none.
    output: list = None


@dataclass
class Step:
    """One marked block."""

    kind: str
    line: int
    commands: list = field(default_factory=list)
    # What a server prints when it serves; the path of a file.
    word: str = ""
    text: str = ""
    # It is tried again until it is so.
    waits: bool = False
    # Each number that is shown stands for any.
    any_numbers: bool = False


def read(path):
    return parse(path.read_text(), str(path))


def parse(text, name="page"):
    steps, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        mark = MARK.match(lines[at].strip())
        if not mark:
            at = past_block(lines, at)
            continue
        word, rest = mark["word"], mark["rest"]
        where = f"{name}:{at + 1}"
        if word == "setup":
            end = next((n for n in range(at, len(lines)) if lines[n].strip() == "-->"), None)
            if end is None or rest:
                raise PageError(f"{where}: a setup is `<!-- setup`, commands, and `-->` on a line of its own")
            steps.append(Step("setup", at + 1, commands_of(lines[at + 1 : end])))
            at = end + 1
            continue
        said = rest.removesuffix("-->").strip()
        if not rest.rstrip().endswith("-->"):
            raise PageError(f"{where}: the comment does not end on its line")
        if word == "stop":
            steps.append(Step("stop", at + 1))
            at += 1
            continue
        begin = at + 1
        if begin >= len(lines) or not lines[begin].startswith("```"):
            raise PageError(f"{where}: no block of code follows on the next line")
        end = begin + 1
        while end < len(lines) and not lines[end].startswith("```"):
            end += 1
        block = lines[begin + 1 : end]
        steps.append(step(word, said, block, begin + 1, where))
        at = end + 1
    return steps


def past_block(lines, at):
    """The line after this one, or after the block of code that begins here: marks in it are shown, not meant."""
    if not lines[at].startswith("```"):
        return at + 1
    at += 1
    while at < len(lines) and not lines[at].startswith("```"):
        at += 1
    return at + 1


def step(word, said, block, line, where):
    if word == "run":
        wishes = [wish.strip() for wish in said.split(",")]
        if not set(wishes) <= {"", "until it is so", "with other numbers"}:
            raise PageError(f"{where}: `run {said}` is not known")
        return Step("run", line, commands_of(block), waits="until it is so" in wishes, any_numbers="with other numbers" in wishes)
    if not said.startswith(": ") or len(said) < 3:
        raise PageError(f"{where}: `{word}` wants a word, as `<!-- {word}: WORD -->`")
    if word == "write":
        return Step("write", line, word=said[2:], text="\n".join(block) + "\n")
    return Step("serve", line, commands_of(block), said[2:])


def commands_of(lines):
    has_prompts = any(PROMPT.match(line) for line in lines)
    commands, goes_on = [], False
    for line in lines:
        prompt = PROMPT.match(line)
        if goes_on:
            commands[-1].text += "\n" + line
        elif prompt:
            commands.append(Command(prompt["command"], prompt["machine"] or "", []))
        elif has_prompts:
            if commands:
                commands[-1].output.append(line)
            elif line.strip():
                raise PageError(f"{line!r} stands before the first prompt")
            continue
        elif line.strip():
            commands.append(Command(line))
        else:
            continue
        goes_on = line.rstrip().endswith("\\")
    for command in commands:
        # Nothing shown is nothing promised.
        command.output = [line for line in command.output or [] if line.strip()] or None
    return commands


def difference(shown, printed, any_numbers=False):
    """None where what was printed is what the page shows; else a sentence."""
    wanted = [line.strip() for line in shown if line.strip()]
    found = [line.strip() for line in printed.splitlines() if line.strip()]
    if any_numbers:
        wanted, found = ([re.sub(r"\d+", "0", line) for line in lines] for lines in (wanted, found))
    at = 0
    is_free = False
    for line in wanted:
        if line == "…":
            is_free = True
            continue
        place = next((n for n in range(at, len(found)) if matches(line, found[n])), None) if is_free else at
        if place is None or place >= len(found) or not matches(line, found[place]):
            return f"the page shows {line!r}, and {found[at] if at < len(found) else 'nothing more'!r} is printed there"
        at, is_free = place + 1, False
    if at < len(found) and not is_free:
        return f"{found[at]!r} is printed, and the page shows nothing more"
    return None


def matches(shown, printed):
    parts = [r"\s+".join(re.escape(word) for word in part.split(" ") if word) for part in re.split("…", shown)]
    pattern = ".*".join(
        (r"\s*" if part.startswith(" ") else "") + middle + (r"\s*" if part.endswith(" ") and middle else "")
        for part, middle in zip(shown.split("…"), parts)
    )
    return re.fullmatch(pattern, printed) is not None

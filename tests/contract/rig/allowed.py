"""The differences that are meant: a command's key, and below it the row of docs/hadoop-differences.md that gives the reason."""


def read(path, differences):
    """Key -> row. A row that the document does not have is an error: every difference has its reason there."""
    document = differences.read_text()
    found, key = {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("    because "):
            row = line.removeprefix("    because ").strip()
            if f"\n| {row} |" not in document:
                raise SystemExit(f"{path.name}:{number}: {differences.name} has no row that begins with: {row}")
            if key is None:
                raise SystemExit(f"{path.name}:{number}: a reason without a command before it")
            for each in key:
                found[each] = row
            key = None
        else:
            key = [*(key or []), line.strip()]
    if key:
        raise SystemExit(f"{path.name} ends without a reason")
    return found

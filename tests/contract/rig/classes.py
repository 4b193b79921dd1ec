"""Which test classes there are: `classes.txt`, with a part's name in brackets before its classes."""

PARTS = ("contract", "shell", "more")


def chosen(path, parts, only, little):
    """The full names of the classes wanted, in the file's order. Those of the slice have a star behind their name."""
    found, part = [], None
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            part = line.strip("[]")
            assert part in PARTS, part
        elif line:
            name, *star = line.split()
            simple = name.rsplit(".", 1)[-1]
            if only:
                if simple in only:
                    found.append(name)
            elif (not parts or part in parts) and (star or not little):
                found.append(name)
    if not found:
        raise SystemExit(f"no class of {path.name} is meant")
    return found

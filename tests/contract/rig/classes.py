"""Which test classes there are: `classes.txt`, with a part's name in brackets before its classes."""

# Tests that were never meant to share a JVM leave things behind in it.
ALONE = "more"
PARTS = ("contract", "shell", "more")

# No column of Hadoop's is kept of the others.
USUAL = ("contract", "shell")


def chosen(path, parts, only, little):
    """The full names of the classes wanted, in the file's order, as lists of those that share a JVM. Those of the slice have a
    star behind their name."""
    found, part, last = [], None, None
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            part = line.strip("[]")
            assert part in PARTS, part
        elif line:
            name, *star = line.split()
            simple = name.rsplit(".", 1)[-1]
            wanted = simple in only if only else part in (parts or USUAL) and (star or not little)
            if wanted and (not found or ALONE in (part, last)):
                found.append([name])
            elif wanted:
                found[-1].append(name)
            last = part
    if not found:
        raise SystemExit(f"no class of {path.name} is meant")
    return found

"""Which test classes there are: `classes.txt`, with a part's name in brackets before its classes."""

import fnmatch
import zipfile

# Tests that were never meant to share a JVM leave things behind in it.
ALONE = ("more", "blocks")
PARTS = ("contract", "shell", "webhdfs", *ALONE)

# The others take an hour or more on each side.
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
            if wanted and (not found or part in ALONE or last in ALONE):
                found.append([name])
            elif wanted:
                found[-1].append(name)
            last = part
    if not found:
        raise SystemExit(f"no class of {path.name} is meant")
    return found


def left_out(path, reasons, jars):
    """Test classes of Hadoop's jars that are neither to be run nor have a reason not to be, and reasons that no class has any more."""
    named = {line.split("#")[0].split()[0] for line in path.read_text().splitlines() if line.split("#")[0].split()}
    patterns = patterns_of(reasons)
    known = set()
    for jar in sorted(jars.glob("hadoop-hdfs-*-test-sources.jar")):
        with zipfile.ZipFile(jar) as sources:
            names = [name.removesuffix(".java").replace("/", ".") for name in sources.namelist() if name.endswith(".java")]
        known.update(name for name in names if name.rsplit(".", 1)[-1].startswith("Test"))
    rest = known - named
    without = [name for name in sorted(rest) if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    idle = [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(name, pattern) for name in rest)]
    return without, idle


def patterns_of(path):
    """Each followed by its reason, sooner or later."""
    found, waiting = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("    because "):
            if not waiting:
                raise SystemExit(f"{path.name}:{number}: a reason without a class before it")
            waiting = False
        else:
            found.append(line.strip())
            waiting = True
    if waiting:
        raise SystemExit(f"{path.name} ends without a reason")
    return found

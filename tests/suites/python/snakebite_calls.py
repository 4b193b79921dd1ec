"""The calls of snakebite, a Python client that speaks Hadoop's RPC by itself: `snakebite_calls.py HOST PORT LOCAL-DIRECTORY`.

Its package brings no tests along. It writes no data, so that what it reads is stored by the harness in /stored beforehand:
`small`, `empty`, and `large` with several blocks. Its `getmerge` is left out: with Python 3 the client itself fails.
"""

import hashlib
import sys
from pathlib import Path

from snakebite.client import Client
from snakebite.errors import DirectoryException, FileNotFoundException

import calls

HOST, PORT, LOCAL = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])


def client():
    return Client(HOST, PORT, use_trash=False)


def make_directory(name):
    path = f"/snakebite/{name}"
    assert list(client().mkdir([path], create_parent=True, mode=0o755))[0]["result"]
    return path


def names(client, path, **options):
    return sorted(entry["path"] for entry in client.ls([path], **options))


def test_mkdir_and_ls(client, here):
    done = list(client.mkdir([f"{here}/a", f"{here}/b/c"], create_parent=True))
    assert [entry["result"] for entry in done] == [True, True], done
    assert names(client, here) == [f"{here}/a", f"{here}/b"]
    assert names(client, here, recurse=True) == [f"{here}/a", f"{here}/b", f"{here}/b/c"]


def test_mkdir_without_a_parent_is_refused(client, here):
    done = list(client.mkdir([f"{here}/a/b/c"], create_parent=False))
    assert not done[0]["result"] and "FileNotFoundException" in done[0]["error"], done


def test_ls_of_what_is_not_there(client, here):
    calls.raises(FileNotFoundException, lambda: names(client, f"{here}/nothing"))


def test_ls_by_pattern(client, here):
    list(client.touchz([f"{here}/one.txt", f"{here}/two.txt", f"{here}/three"]))
    assert names(client, f"{here}/*.txt") == [f"{here}/one.txt", f"{here}/two.txt"]
    assert names(client, f"{here}/{{one.txt,three}}") == [f"{here}/one.txt", f"{here}/three"]


def test_ls_of_a_large_directory(client, here):
    paths = [f"{here}/{number:04}" for number in range(2500)]
    list(client.touchz(paths))
    assert names(client, here) == paths


def test_touchz_and_stat(client, here):
    list(client.touchz([f"{here}/f"], replication=2, blocksize=1 << 20))
    found = client.stat([f"{here}/f"])
    assert (found["length"], found["block_replication"], found["blocksize"], found["file_type"]) == (0, 2, 1 << 20, "f"), found
    assert client.stat([here])["file_type"] == "d"


def test_touchz_leaves_a_file_with_contents(client, here):
    done = list(client.touchz(["/stored/small"]))
    assert not done[0]["result"] and client.stat(["/stored/small"])["length"] > 0, done


def test_rename(client, here):
    list(client.touchz([f"{here}/a"]))
    assert list(client.rename([f"{here}/a"], f"{here}/b"))[0]["result"]
    assert names(client, here) == [f"{here}/b"]


def test_rename2_overwrites_only_when_told(client, here):
    list(client.touchz([f"{here}/a", f"{here}/b"]))
    calls.raises(Exception, lambda: client.rename2(f"{here}/a", f"{here}/b"))
    client.rename2(f"{here}/a", f"{here}/b", overwriteDest=True)
    assert names(client, here) == [f"{here}/b"]


def test_delete(client, here):
    list(client.mkdir([f"{here}/d/e"], create_parent=True))
    refused = calls.raises(Exception, lambda: list(client.delete([f"{here}/d"], recurse=False)))
    assert "Is a directory" in str(refused), refused
    assert list(client.delete([f"{here}/d"], recurse=True))[0]["result"]
    assert names(client, here) == []


def test_rmdir(client, here):
    list(client.mkdir([f"{here}/d"]))
    assert list(client.rmdir([f"{here}/d"]))[0]["result"]
    assert names(client, here) == []


def test_delete_into_the_trash(_, here):
    client = Client(HOST, PORT, use_trash=True)
    list(client.touchz([f"{here}/f"]))
    list(client.delete([f"{here}/f"]))
    assert names(client, here) == []


def test_chmod_chown_chgrp(client, here):
    list(client.touchz([f"{here}/f"]))
    assert list(client.chmod([f"{here}/f"], 0o640))[0]["result"]
    assert list(client.chown([f"{here}/f"], "somebody"))[0]["result"]
    assert list(client.chgrp([f"{here}/f"], "some"))[0]["result"]
    found = client.stat([f"{here}/f"])
    assert (found["permission"], found["owner"], found["group"]) == (0o640, "somebody", "some"), found


def test_setrep(client, here):
    list(client.touchz([f"{here}/f"]))
    assert list(client.setrep([f"{here}/f"], 2))[0]["result"]
    assert client.stat([f"{here}/f"])["block_replication"] == 2


def test_cat(client, _):
    said = b"".join(piece for file in client.cat(["/stored/small"]) for piece in file)
    assert said == (LOCAL / "small").read_bytes()


def test_cat_checks_what_it_reads(client, _):
    said = b"".join(piece for file in client.cat(["/stored/large"], check_crc=True) for piece in file)
    assert said == (LOCAL / "large").read_bytes()


def test_copy_to_local(client, here):
    target = LOCAL / "copied"
    target.mkdir()
    done = list(client.copyToLocal(["/stored"], str(target)))
    assert all(entry["result"] for entry in done), done
    for name in ("small", "empty", "large"):
        mine, theirs = (hashlib.sha256((place / name).read_bytes()).hexdigest() for place in (target / "stored", LOCAL))
        assert mine == theirs, name


def test_tail(client, _):
    said = b"".join(client.tail("/stored/large", tail_length=1024))
    assert said == (LOCAL / "large").read_bytes()[-1024:]


def test_text(client, _):
    assert b"".join(client.text(["/stored/small"])) == (LOCAL / "small").read_bytes()


def test_cat_of_a_directory_is_refused(client, _):
    calls.raises(DirectoryException, lambda: [piece for file in client.cat(["/stored"]) for piece in file])


def test_test(client, here):
    assert client.test("/stored/small", exists=True)
    assert client.test("/stored/empty", zero_length=True) and not client.test("/stored/small", zero_length=True)
    assert client.test(here, directory=True) and not client.test("/stored/small", directory=True)
    assert not client.test(f"{here}/nothing", exists=True)


def test_count_and_du(client, _):
    size = sum((LOCAL / name).stat().st_size for name in ("small", "empty", "large"))
    found = list(client.count(["/stored"]))[0]
    assert (found["fileCount"], found["directoryCount"], found["length"]) == (3, 1, size), found
    assert sum(entry["length"] for entry in client.du(["/stored"])) == size


def test_df_and_serverdefaults(client, _):
    found = client.df()
    assert found["capacity"] > 0 and found["filesystem"] == f"hdfs://{HOST}:{PORT}", found
    defaults = client.serverdefaults()
    assert defaults["blockSize"] == 128 << 20 and defaults["bytesPerChecksum"] == 512, defaults


def test_a_path_of_somebody_else_is_refused(client, here):
    list(client.mkdir([f"{here}/mine"], mode=0o700))
    stranger = Client(HOST, PORT, effective_user="stranger")
    refused = calls.raises(Exception, lambda: names(stranger, f"{here}/mine"))
    assert "Permission denied" in str(refused), refused


if __name__ == "__main__":
    calls.run(dict(globals()), client, make_directory)

"""Stock clients of WebHDFS."""

import hashlib
import io
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import fsspec
import hdfs

USER = "root"
BLOCK = 1 << 20


def all_of_them(url, mib, way):
    with tempfile.TemporaryDirectory(prefix="clover-webhdfs-files-") as scratch:
        for client in (curl, python_hdfs, python_fsspec):
            begun = time.monotonic()
            client(url, mib << 20, Path(scratch))
            print(f"{way}: {client.__name__} passed in {time.monotonic() - begun:.1f} s", flush=True)


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def curl(url, size, scratch):
    """What the documentation of WebHDFS tells to type."""

    def run(*arguments):
        command = ["curl", "-s", "-S", "--max-time", "300", "-w", "\n%{http_code}", *map(str, arguments)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        body, _, code = out.rpartition(b"\n")
        return int(code), body

    def at(path, op, more=""):
        return f"{url}/webhdfs/v1{path}?op={op}&user.name={USER}{more}"

    source = scratch / "source"
    data = os.urandom(size)
    source.write_bytes(data)
    assert run("-X", "PUT", at("/curl", "MKDIRS", "&permission=750")) == (200, b'{"boolean":true}')
    code, _ = run("-L", "-X", "PUT", "-T", source, at("/curl/a%20b", "CREATE", f"&overwrite=true&blocksize={BLOCK}"))
    assert code == 201, code
    assert run("-L", at("/curl/a%20b", "OPEN")) == (200, data)
    assert run("-L", at("/curl/a%20b", "OPEN", f"&offset={size // 2}&length=1000")) == (200, data[size // 2 : size // 2 + 1000])
    assert run("-L", at("/curl/a%20b", "OPEN", f"&offset={size}"))[0] in (200, 403)
    # The way of Hadoop's own pages: ask for the place, then send the bytes there.
    code, body = run("-X", "PUT", at("/curl/paged", "CREATE", "&noredirect=true&overwrite=true"))
    assert code == 200, body
    code, _ = run("-X", "PUT", "-T", source, json.loads(body)["Location"])
    assert code == 201, code
    code, body = run(at("/curl/paged", "OPEN", "&noredirect=true"))
    assert code == 200 and run(json.loads(body)["Location"]) == (200, data), body
    code, body = run(at("/curl/a%20b", "GETFILESTATUS"))
    status = json.loads(body)["FileStatus"]
    assert (status["length"], status["type"], status["owner"], status["blockSize"]) == (size, "FILE", USER, BLOCK), status
    code, body = run("-L", at("/curl/a%20b", "GETFILECHECKSUM"))
    assert json.loads(body)["FileChecksum"]["algorithm"].startswith("MD5-of-"), body
    for path, op, method, expected in [
        ("/curl/none", "GETFILESTATUS", "GET", (404, "FileNotFoundException")),
        ("/curl/none", "OPEN", "GET", (404, "FileNotFoundException")),
        ("/curl", "DELETE", "DELETE", (403, "PathIsNotEmptyDirectoryException")),
        ("/curl", "NONSENSE", "GET", (400, "IllegalArgumentException")),
        ("/curl/a%20b", "SETPERMISSION&permission=abc", "PUT", (400, "IllegalArgumentException")),
    ]:
        code, body = run("-X", method, at(path, op))
        assert (code, json.loads(body)["RemoteException"]["exception"]) == expected, (path, op, body)
    assert run("-X", "DELETE", at("/curl", "DELETE", "&recursive=true")) == (200, b'{"boolean":true}')
    assert run("-X", "DELETE", at("/curl", "DELETE", "&recursive=true")) == (200, b'{"boolean":false}')


def python_hdfs(url, size, scratch):
    client = hdfs.InsecureClient(url, user=USER)
    data = os.urandom(size)
    client.makedirs("/py/deep/er", permission="755")
    client.write("/py/file", data, overwrite=True, blocksize=BLOCK)
    with client.read("/py/file") as reader:
        assert sum_of(reader.read()) == sum_of(data)
    with client.read("/py/file", offset=BLOCK - 5, length=10) as reader:
        assert reader.read() == data[BLOCK - 5 : BLOCK + 5]
    # A generator goes out in chunks, without a length.
    client.write("/py/chunks", (data[at : at + 70_001] for at in range(0, size, 70_001)), overwrite=True)
    with client.read("/py/chunks", chunk_size=100_000) as reader:
        assert sum_of(b"".join(reader)) == sum_of(data)
    client.write("/py/chunks", b"more", append=True)
    assert client.status("/py/chunks")["length"] == size + 4
    client.write("/py/empty", b"")
    assert client.status("/py/empty")["length"] == 0
    with client.read("/py/empty") as reader:
        assert reader.read() == b""
    assert client.list("/py") == ["chunks", "deep", "empty", "file"]
    assert client.content("/py")["fileCount"] == 3
    assert [path for path, _, _ in client.walk("/py")] == ["/py", "/py/deep", "/py/deep/er"]
    client.rename("/py/empty", "/py/deep/moved")
    client.set_permission("/py/deep/moved", "640")
    client.set_owner("/py/deep/moved", owner="ann", group="staff")
    client.set_times("/py/deep/moved", modification_time=1_000_000)
    moved = client.status("/py/deep/moved")
    assert (moved["permission"], moved["owner"], moved["group"], moved["modificationTime"]) == ("640", "ann", "staff", 1_000_000)
    client.set_acl("/py/deep/moved", "user::rw-,user:bob:r--,group::r--,other::---")
    assert "user:bob:r--" in client.acl_status("/py/deep/moved")["entries"]
    assert client.checksum("/py/file")["algorithm"].startswith("MD5-of-")
    tree = scratch / "tree"
    (tree / "sub").mkdir(parents=True)
    for number in range(6):
        (tree / "sub" / f"part-{number} é").write_bytes(data[: number * 10_000])
    client.upload("/py/tree", str(tree), n_threads=3)
    client.download("/py/tree", str(scratch / "back"), n_threads=3)
    for number in range(6):
        assert (scratch / "back/sub" / f"part-{number} é").read_bytes() == data[: number * 10_000]
    try:
        client.write("/py/file", b"again")
        raise AssertionError("a file that is there was overwritten")
    except hdfs.HdfsError as refused:
        assert refused.exception == "FileAlreadyExistsException", refused
    assert client.delete("/py", recursive=True)
    assert client.status("/py", strict=False) is None


def python_fsspec(url, size, scratch):
    host, port = url.removeprefix("http://").split(":")
    fs = fsspec.filesystem("webhdfs", host=host, port=int(port), user=USER, skip_instance_cache=True)
    data = os.urandom(size)
    fs.makedirs("/spec/dir")
    with fs.open("/spec/dir/file", "wb", block_size=BLOCK) as out:
        out.write(data)
    with fs.open("/spec/dir/file", "rb") as back:
        assert sum_of(back.read()) == sum_of(data)
        back.seek(BLOCK - 3)
        assert back.read(6) == data[BLOCK - 3 : BLOCK + 3]
    assert fs.cat_file("/spec/dir/file", start=7, end=27) == data[7:27]
    assert fs.info("/spec/dir/file")["size"] == size
    assert [entry["name"] for entry in fs.ls("/spec/dir", detail=True)] == ["/spec/dir/file"]
    local = scratch / "spec"
    local.write_bytes(data)
    fs.put(str(local), "/spec/put")
    fs.get("/spec/put", str(scratch / "got"))
    assert (scratch / "got").read_bytes() == data
    fs.mv("/spec/put", "/spec/dir/moved")
    assert fs.exists("/spec/dir/moved") and not fs.exists("/spec/put")
    assert sorted(fs.find("/spec")) == ["/spec/dir/file", "/spec/dir/moved"]
    assert fs.ukey("/spec/dir/file")["algorithm"].startswith("MD5-of-")
    with fs.open("/spec/lines", "wb") as out:
        out.write("one\ntwo\n".encode())
    with fs.open("/spec/lines", "rb") as lines:
        assert [line for line in io.TextIOWrapper(lines)] == ["one\n", "two\n"]
    fs.rm("/spec", recursive=True)
    assert not fs.exists("/spec")

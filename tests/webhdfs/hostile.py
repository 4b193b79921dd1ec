"""Requests that no honest client sends, and how Clover takes them."""

import http.client
import json
import socket
import time

from cluster import wait

EVIL = "http://evil.example"
FRIEND = "https://console.example"


def all_of_it(cluster, mib, way):
    stories = (
        bodies_that_end_early,
        tricks_in_paths,
        headers_without_end,
        pages_of_other_origins,
        browsers_led_here_by_other_names,
        users,
        checks,
        slow_readers,
    )
    for story in stories:
        begun = time.monotonic()
        story(cluster, mib << 20)
        print(f"{way}: {story.__name__} passed in {time.monotonic() - begun:.1f} s", flush=True)


def ask(cluster, method, target, headers=None, body=None, port=None):
    connection = http.client.HTTPConnection("127.0.0.1", port or cluster.http_port, timeout=90)
    connection.request(method, target, body, headers or {})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), data


def exception(data):
    return json.loads(data)["RemoteException"]["exception"]


def place(cluster, method, path, op, more=""):
    """The address that takes the bytes, as a port and the rest."""
    status, _, data = ask(cluster, method, f"/webhdfs/v1{path}?op={op}&user.name=root&noredirect=true{more}")
    assert status == 200, data
    location = json.loads(data)["Location"].removeprefix("http://")
    authority, _, target = location.partition("/")
    return int(authority.rsplit(":", 1)[1]), "/" + target


def is_open(cluster, path):
    status, _, data = ask(cluster, "GET", f"/webhdfs/v1{path}?op=GET_BLOCK_LOCATIONS&user.name=root")
    assert status == 200, data
    return json.loads(data)["LocatedBlocks"]["isUnderConstruction"]


def send_and_cut(port, head, body):
    with socket.create_connection(("127.0.0.1", port), timeout=90) as connection:
        connection.sendall(head.encode() + body)


def bodies_that_end_early(cluster, size):
    """A file whose client has gone is not closed as if it were whole."""
    part = b"x" * 100_000
    for name, framing, body in [
        ("length", "Content-Length: 1000000", part),
        ("chunks", "Transfer-Encoding: chunked", b"%x\r\n%s\r\n" % (len(part), part)),
        ("within", "Transfer-Encoding: chunked", b"%x\r\n%s" % (2 * len(part), part)),
    ]:
        path = f"/early-{name}"
        port, target = place(cluster, "PUT", path, "CREATE", "&overwrite=true")
        send_and_cut(port, f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{framing}\r\n\r\n", body)
        log = cluster.directory
        wait("the server has noticed", lambda: any(f"path=\"{path}\"" in file.read_text() for file in log.glob("*.log")))
        assert is_open(cluster, path), f"{path} was closed"
        # Its writer is gone, so that another may replace it at once.
        port, target = place(cluster, "PUT", path, "CREATE", "&overwrite=true")
        status, _, data = ask(cluster, "PUT", target, body=b"whole", port=port)
        assert status == 201 and not is_open(cluster, path), data


def tricks_in_paths(cluster, size):
    for path in ["/a/../b", "/a/%2e%2e/b", "/a%2F..%2Fb", "/./a", "/a//b", "/a%00b", "/a:b", "/%ff", "/a%2", "/%zz"]:
        status, _, data = ask(cluster, "GET", f"/webhdfs/v1{path}?op=GETFILESTATUS")
        assert status == 400 and exception(data), (path, data)
    status, _, data = ask(cluster, "PUT", "/webhdfs/v1/a?op=RENAME&destination=/b/../c")
    assert status == 400, data
    for target, expected in [("/webhdfs/v2/a?op=OPEN", 404), ("/webhdfs/v1/a?op=OPEN&offset=-1", 400), ("/webhdfs/v1/a?x=%ff&op=OPEN", 400)]:
        assert ask(cluster, "GET", target)[0] == expected, target
    assert ask(cluster, "PATCH", "/webhdfs/v1/a?op=OPEN")[0] == 405
    # Not every server that a request names is asked.
    port, target = place(cluster, "PUT", "/named", "CREATE")
    if cluster.redirects:
        begin, _, rest = target.partition("namenoderpcaddress=")
        other = f"{begin}namenoderpcaddress=127.0.0.1:{cluster.http_port}&{rest.partition('&')[2]}"
        status, _, data = ask(cluster, "PUT", other, body=b"x", port=port)
        assert status == 400 and "none of the metadata servers" in json.loads(data)["RemoteException"]["message"], data


def headers_without_end(cluster, size):
    for headers in ["X-Long: " + "x" * 300_000 + "\r\n", "X-Many: 1\r\n" * 300]:
        with socket.create_connection(("127.0.0.1", cluster.http_port), timeout=90) as connection:
            try:
                connection.sendall(f"GET /webhdfs/v1/?op=LISTSTATUS HTTP/1.1\r\n{headers}\r\n".encode())
                answer = connection.recv(100)
            except ConnectionError:
                answer = b""
            assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer
    assert ask(cluster, "GET", f"/webhdfs/v1/{'a/' * 20_000}?op=GETFILESTATUS")[0] == 400
    if not cluster.redirects:
        return
    # A request that is never finished is not waited for; once is enough, for it takes half a minute.
    with socket.create_connection(("127.0.0.1", cluster.http_port), timeout=90) as connection:
        connection.sendall(b"GET /webhdfs/v1/?op=LISTSTATUS HTTP/1.1\r\nX-Slow: ")
        try:
            answer = connection.recv(100)
        except ConnectionError:
            answer = b""
        assert answer == b"" or b" 408 " in answer, answer


def pages_of_other_origins(cluster, size):
    here = f"http://127.0.0.1:{cluster.http_port}"
    made = "/webhdfs/v1/origin?op=MKDIRS&user.name=root"
    for headers in [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]:
        status, answered, data = ask(cluster, "PUT", made, headers)
        assert (status, exception(data)) == (403, "AuthorizationException"), (headers, data)
        assert not any(name.lower().startswith("access-control") for name in answered), answered
        status, answered, _ = ask(cluster, "GET", "/webhdfs/v1/?op=LISTSTATUS", headers)
        assert status == 200 and "access-control-allow-origin" not in answered, answered
    assert ask(cluster, "GET", "/webhdfs/v1/origin?op=GETFILESTATUS")[0] == 404
    for headers in [{}, {"Origin": here}, {"Origin": FRIEND}, {"Sec-Fetch-Site": "same-origin"}]:
        assert ask(cluster, "PUT", made, headers)[0] == 200, headers
    # Hadoop's pages send files to data servers: their browser asks first, from the metadata server's origin.
    port, target = place(cluster, "PUT", "/origin/file", "CREATE", "&overwrite=true")
    for origin in (here, FRIEND):
        asking = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
        status, answered, _ = ask(cluster, "OPTIONS", target, asking, port=port)
        is_other = origin == FRIEND or cluster.redirects
        assert status == 200 and (answered.get("access-control-allow-origin") == origin) == is_other, answered
        assert not is_other or "PUT" in answered["access-control-allow-methods"], answered
        status, answered, data = ask(cluster, "PUT", target, {"Origin": origin}, b"from a page", port)
        assert status == 201 and (answered.get("access-control-allow-origin") == origin) == is_other, (answered, data)
    assert ask(cluster, "OPTIONS", target, {"Origin": EVIL}, port=port)[0] == 403
    # Another program on the metadata server's host has pages of its own.
    for origin in (EVIL, "http://127.0.0.1", "http://127.0.0.1:8080"):
        assert ask(cluster, "PUT", target, {"Origin": origin}, b"forged", port)[0] == 403, origin
    port, target = place(cluster, "GET", "/origin/file", "OPEN")
    status, answered, data = ask(cluster, "GET", target, {"Origin": FRIEND}, port=port)
    assert (status, answered["access-control-allow-origin"], data) == (200, FRIEND, b"from a page")


def browsers_led_here_by_other_names(cluster, size):
    """A page whose name was made to lead to this machine is of the server's origin, for its browser."""
    browser = {"User-Agent": "Mozilla/5.0 (X11)", "Accept-Language": "en"}
    meta, data = cluster.http_port, cluster.data_http_ports[0]
    port, target = place(cluster, "PUT", "/origin/rebound", "CREATE")
    changes = [
        ("PUT", "/webhdfs/v1/rebound?op=MKDIRS&user.name=root", meta),
        ("DELETE", "/webhdfs/v1/origin?op=DELETE&recursive=true&user.name=root", meta),
        ("GET", "/fsck?ugi=root&path=%2F&delete=1", meta),
        ("GET", "/logLevel?log=root&level=DEBUG", meta),
        ("PUT", target, port),
    ]
    questions = ["/", "/files/", "/login", "/jmx", "/conf", "/stacks", "/metrics", "/health", "/ready", "/prom", "/nowhere"]
    pages = ["/webhdfs/v1/?op=LISTSTATUS", "/imagetransfer?getimage=1&txid=latest", *questions]
    asked = [*changes, *(("GET", page, meta) for page in pages), *(("GET", page, data) for page in questions)]
    for method, page, port in asked:
        for marks in (browser, {**browser, "Origin": f"http://evil.example:{port}"}, {"Accept-Language": "en"}):
            # Each is of one origin, for the browser.
            status, _, told = ask(cluster, method, page, {**marks, "Host": f"evil.example:{port}"}, port=port)
            assert status == 421 and b"http_hosts" in told, (method, page, port, status, told)
    for kept, status in (("/rebound", 404), ("/origin", 200), ("/origin/rebound", 404)):
        assert ask(cluster, "GET", f"/webhdfs/v1{kept}?op=GETFILESTATUS&user.name=root")[0] == status, kept
    own = ["127.0.0.1", "[::1]", "localhost", "LOCALHOST.", socket.gethostname()]
    for port, names in ((meta, [*own, "meta.example"]), (data, [*own, "one.data.example"])):
        for name in names:
            assert ask(cluster, "GET", "/health", {**browser, "Host": f"{name}:{port}"}, port=port)[0] == 200, name
        # A program calls by whatever name it has.
        assert ask(cluster, "GET", "/health", {"Host": "alias.example"}, port=port)[0] == 200


def users(cluster, size):
    def home(query):
        status, _, data = ask(cluster, "GET", f"/webhdfs/v1/?op=GETHOMEDIRECTORY&{query}")
        return status, json.loads(data).get("Path") or exception(data)

    assert home("") == (200, "/user/dr.who")
    assert home("user.name=ann") == (200, "/user/ann")
    for name in ("a+b", "..", "ann%00", "1"):
        assert home(f"user.name={name}") == (400, "IllegalArgumentException"), name
    # Only the proxy that the configuration names, only from its host, only for those users.
    assert home("user.name=knox&doas=ann") == (200, "/user/ann")
    assert home("user.name=ann&doas=ann") == (200, "/user/ann")
    assert home("user.name=knox&doas=root") == (403, "AuthorizationException")
    assert home("user.name=ann&doas=bob") == (403, "AuthorizationException")
    status, _, data = ask(cluster, "PUT", "/webhdfs/v1/mine?op=MKDIRS&user.name=ann")
    assert (status, exception(data)) == (403, "AccessControlException"), data
    ask(cluster, "PUT", "/webhdfs/v1/user/ann?op=MKDIRS&user.name=root")
    ask(cluster, "PUT", "/webhdfs/v1/user/ann?op=SETOWNER&owner=ann&user.name=root")
    port, target = place(cluster, "PUT", "/user/ann/file", "CREATE", "&overwrite=true")
    target = target.replace("user.name=root", "user.name=knox&doas=ann")
    status, _, data = ask(cluster, "PUT", target, body=b"for ann", port=port)
    assert status == 201, data
    status, _, data = ask(cluster, "GET", "/webhdfs/v1/user/ann/file?op=GETFILESTATUS&user.name=root")
    assert json.loads(data)["FileStatus"]["owner"] == "ann", data


def checks(cluster, size):
    """`/fsck`: no page of another origin has something changed, users are those of WebHDFS, and a client that goes costs nothing."""
    for change in ("move", "delete", "replicate"):
        for headers in [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]:
            status, _, data = ask(cluster, "GET", f"/fsck?ugi=root&path=%2F&{change}=1", headers)
            assert (status, exception(data)) == (403, "AuthorizationException"), (change, headers, data)
        status, answered, data = ask(cluster, "GET", f"/fsck?ugi=root&path=%2F&{change}=1", {"Origin": FRIEND})
        assert (status, answered["access-control-allow-origin"]) == (200, FRIEND) and data.endswith(b"HEALTHY"), data
    status, answered, data = ask(cluster, "GET", "/fsck?ugi=root&path=%2F", {"Origin": EVIL})
    assert status == 200 and "access-control-allow-origin" not in answered, answered
    assert answered["content-type"] == "text/plain; charset=utf-8" and answered["x-content-type-options"] == "nosniff", answered
    for user, words in [
        ("ugi=ann,staff", b"FSCK started by ann (auth:SIMPLE) from /127.0.0.1 for path / at "),
        ("", b"FSCK started by dr.who (auth:SIMPLE) "),
        ("user.name=knox&doas=ann", b"FSCK started by ann (auth:PROXY) via knox (auth:SIMPLE) "),
    ]:
        status, _, data = ask(cluster, "GET", f"/fsck?path=%2F&{user}")
        assert status == 200 and data.startswith(words), data
    assert ask(cluster, "GET", "/fsck?user.name=knox&doas=root")[0] == 403
    assert ask(cluster, "GET", "/fsck?ugi=a%2Fb")[0] == 400
    assert ask(cluster, "POST", "/fsck?ugi=root")[0] == 405
    assert ask(cluster, "GET", "/fsck?ugi=root", port=cluster.data_http_ports[0])[0] == 404
    for path in ("relative", "/a/../b", "/%00"):
        status, _, data = ask(cluster, "GET", f"/fsck?ugi=root&path={path}")
        assert status == 200 and (data.endswith(b"FAILED") or data.endswith(b"does not exist")), (path, data)
    # More clients than there may be checks, all of which go without a word.
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", cluster.http_port), timeout=90) as connection:
            connection.sendall(b"GET /fsck?ugi=root&files=1&blocks=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert ask(cluster, "GET", "/fsck?ugi=root")[2].endswith(b"HEALTHY")


def slow_readers(cluster, size):
    """A client that asks and does not read costs a little memory, and no more."""
    port, target = place(cluster, "PUT", "/large", "CREATE", "&overwrite=true&replication=1")
    servers = {"meta": cluster.http_port, "data-0": cluster.data_http_ports[0], "data-1": cluster.data_http_ports[1]}
    before = {name: cluster.resident_mib(name) for name in servers}
    piece = bytes(1 << 20)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("PUT", target, (piece for _ in range(size >> 20)), {"Content-Length": str(size)})
    response = connection.getresponse()
    assert response.status == 201, response.read()
    connection.close()
    port, target = place(cluster, "GET", "/large", "OPEN")
    idle = []
    for _ in range(16):
        reader = socket.create_connection(("127.0.0.1", port), timeout=90)
        reader.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert reader.recv(12) == b"HTTP/1.1 200"
        idle.append(reader)
    # Others are served meanwhile.
    status, _, data = ask(cluster, "GET", target, port=port)
    assert (status, len(data)) == (200, size)
    after = {name: cluster.resident_mib(name) for name in servers}
    print(f"    resident MiB before {before}, after {size >> 20} MiB written and 16 readers that do not read {after}")
    for name in servers:
        assert after[name] - before[name] < 128, (name, before, after)
    for reader in idle:
        reader.close()
    assert ask(cluster, "DELETE", "/webhdfs/v1/large?op=DELETE&user.name=root")[0] == 200

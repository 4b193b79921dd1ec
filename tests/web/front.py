"""The web pages of Hadoop's own servers, served as files of its published jar, before a server that answers all else.

A page finds `/jmx`, `/conf`, `/webhdfs` at its own origin, as if it lived on the server.
"""

import http.client
import mimetypes
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# What concerns one connection only.
OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection"}
PATIENCE_S = 60


class Front(ThreadingHTTPServer):
    """`application`: `hdfs` for a NameNode's pages, `datanode` for those of a DataNode. `behind`: `host:port` of the server."""

    daemon_threads = True

    def __init__(self, jar, application, behind):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.behind = {}, behind
        with zipfile.ZipFile(jar) as archive:
            for prefix, place in ((f"webapps/{application}/", "/"), ("webapps/static/", "/static/")):
                for name in archive.namelist():
                    if name.startswith(prefix) and not name.endswith("/") and "/WEB-INF/" not in name:
                        self.files[place + name.removeprefix(prefix)] = archive.read(name)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        # What the server behind was asked for, and its status.
        self.passed = []

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        path = self.path.split("?")[0]
        file = self.server.files.get("/index.html" if path == "/" else path)
        if path == "/favicon.ico":
            # No server has one, and a browser asks for it by itself.
            self.send_response(204)
            self.end_headers()
        elif file is not None and self.command == "GET":
            self.send_response(200)
            self.send_header("Content-Type", mimetypes.guess_type(path)[0] or "text/html")
            self.send_header("Content-Length", str(len(file)))
            self.end_headers()
            self.wfile.write(file)
        else:
            self.pass_on()

    do_GET = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_HEAD = answer

    def pass_on(self):
        """The server sees the name by which the browser called, as behind any proxy that keeps it."""
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_A_CONNECTION}
        behind = http.client.HTTPConnection(self.server.behind, timeout=PATIENCE_S)
        try:
            behind.request(self.command, self.path, self.rfile.read(length) if length else None, headers)
            got = behind.getresponse()
            body = got.read()
        finally:
            behind.close()
        self.server.passed.append((self.command, self.path, got.status))
        self.send_response(got.status)
        for name, value in got.getheaders():
            if name.lower() not in OF_A_CONNECTION | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is printed."""

"""Where tests in the judge's JVM ask for what only the cluster's owner can do: another layout, a restart, a data server less."""

import socketserver
import threading

from .layout import Layout


class Control:
    """Serves on a port of its own for as long as the `with` block runs; a line of words with tabs between asks, a line answers."""

    def __init__(self, cluster):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                words = self.rfile.readline().decode().rstrip("\n").split("\t")
                try:
                    answer = obey(cluster, *words)
                except Exception as error:
                    answer = f"{type(error).__name__}: {error}".replace("\n", " ")
                self.wfile.write(f"{answer}\n".encode())

        self.server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


def obey(cluster, verb, *words):
    match verb:
        case "lay-out":
            # Whether it is new, or what was there and only wants to be emptied.
            return "done" if cluster.lay_out(Layout.parse(words)) else "same"
        case "restart":
            cluster.restart_metadata(Layout.parse(words).keys if words else None)
        case "stop-metadata":
            cluster.stop_metadata()
        case "stop-data":
            cluster.stop_data(int(words[0]))
        case "start-data":
            cluster.start_data(int(words[0]))
        case "add-data":
            cluster.add_data(words[0], tuple(words[1].split(",")))
        case "refresh-nodes":
            cluster.refresh_nodes()
        case "data":
            # Port and directories of each data server.
            return "done\t" + "\t".join(f"{port}:{':'.join(map(str, places))}" for port, places in cluster.data())
        case _:
            raise ValueError(f"no such order: {verb}")
    return "done"

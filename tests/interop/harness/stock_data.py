"""Hadoop's own DataNodes under Clover's metadata server: all clients read what each wrote, and pipelines lose servers."""

from . import cases, writing_on
from .cluster import StockDataServers


def run(report, stock, clover, rounds, tree, work):
    """Without rounds no server is lost, and the slower clients stay away."""
    cluster = StockDataServers(clover, work / "stock-data", stock, data_servers=writing_on.DATA_SERVERS)
    try:
        with report.case("stock data servers", f"start under Clover, {writing_on.DATA_SERVERS} of them"):
            cluster.start()
        if not report.failed:
            clients = [client for client in stock.all() if rounds or (client.takes_many and client.takes_large)]
            for writer in clients:
                cases.exchange(report, stock, cluster, tree, writer, clients, "/stock-data")
        if rounds and not report.failed:
            writing_on.play(report, stock, cluster, rounds, work / "logs" / "stock-data-writing-on.log")
    finally:
        cluster.thaw()
        cluster.stop()

"""Client configurations, as a directory with Hadoop's two files."""

from xml.sax.saxutils import escape

from harness.clients import call

NAMESERVICE = "clover"
PROVIDER = "org.apache.hadoop.hdfs.server.namenode.ha.%sProxyProvider"


def write(clover, directory, addresses, provider, others):
    """What `clover client-config` writes for these members, with some values of a story's own after it."""
    words = ["--target", f"hdfs://{addresses[0]}"]
    if len(addresses) > 1:
        words = ["--members", ",".join(addresses), "--nameservice", NAMESERVICE]
    call([clover, "client-config", directory, "--force", *words])
    if provider != "configured":
        others = {f"dfs.client.failover.proxy.provider.{NAMESERVICE}": PROVIDER % provider, **others}
    added = "".join(
        f"  <property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in others.items()
    )
    site = directory / "hdfs-site.xml"
    # Of two properties of one name the later one counts.
    site.write_text(site.read_text().replace("</configuration>", f"{added}</configuration>"))
    return directory

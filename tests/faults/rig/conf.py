"""Client configurations, as a directory with Hadoop's two files."""

from xml.sax.saxutils import escape

PROVIDERS = {
    "configured": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
    "hedging": "org.apache.hadoop.hdfs.server.namenode.ha.RequestHedgingProxyProvider",
}
NAMESERVICE = "clover"


def write(directory, properties):
    directory.mkdir(parents=True, exist_ok=True)
    text = "".join(
        f"  <property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in properties.items()
    )
    (directory / "hdfs-site.xml").write_text(f"<configuration>\n{text}</configuration>\n")
    default = properties["fs.defaultFS"]
    (directory / "core-site.xml").write_text(
        f"<configuration><property><name>fs.defaultFS</name><value>{escape(default)}</value></property></configuration>\n"
    )
    return directory


def of_group(addresses, provider="configured", **others):
    """A nameservice of several members; a single one needs none."""
    numbers = list(addresses)
    properties = {"fs.defaultFS": f"hdfs://{NAMESERVICE}", "dfs.nameservices": NAMESERVICE}
    properties[f"dfs.ha.namenodes.{NAMESERVICE}"] = ",".join(f"m{number}" for number in numbers)
    for number in numbers:
        properties[f"dfs.namenode.rpc-address.{NAMESERVICE}.m{number}"] = addresses[number]
    properties[f"dfs.client.failover.proxy.provider.{NAMESERVICE}"] = PROVIDERS[provider]
    return {**properties, **others}


def of_cluster(clover, addresses, provider, directory, others):
    """What `clover client-config` writes for these members, with some values replaced."""
    others = {"dfs.client.use.datanode.hostname": "false", **others}
    if len(addresses) == 1:
        return {"fs.defaultFS": f"hdfs://{next(iter(addresses.values()))}", **others}
    return of_group(addresses, provider, **others)

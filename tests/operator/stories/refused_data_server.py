"""One member refuses a data server: a hand-over to that member warns, and the data server is taken later without a restart."""

from harness.report import check
from stand import admin, health, until

IN_SLICE = False


def run(make):
    cluster = make.start(members=2, data=1)
    active = cluster.members[cluster.wait_active()]
    other = next(member for member in cluster.members.values() if member is not active)
    listed = make.directory / "data-servers"
    listed.write_text("192.0.2.1\n")
    other.process.end()
    other.configure(list(cluster.members), cluster.coordinator, data_servers_file=listed)
    other.start()
    until("it is in sync again", lambda: len(cluster.view()["in_sync"]) == 2)
    log = cluster.data["data-1"].log
    until("it has refused the data server", lambda: "refused; it is asked again" in log.read_text())
    check(cluster.data["data-1"].is_running, cluster.data["data-1"].tail())
    check(health(other)[1]["live_data_servers"] == "0", health(other))

    said = admin(cluster, "group", "hand-over", "--to", other.number)
    said.works(f"Member {other.number} is active", "WARNING", "0 of the 1 data servers")
    admin(cluster, "group", "hand-over", "--to", active.number).works().does_not_say("WARNING")

    # The list is put right, and nothing is restarted.
    listed.write_text("127.0.0.1\n")
    # To all members, as a client that knows them all does.
    cluster.admin("refresh-nodes")
    until("it is taken", lambda: health(other)[1]["live_data_servers"] == "1", seconds=60)

"""Safe mode says why it is on, how much is lacking and what it waits for; `/ready` is 503 until it is over."""

import json
import time

from harness.report import check
from stand import admin, fs, page, until

IN_SLICE = True
FILES = 4


def run(make):
    cluster = make.start(members=1, data=1)
    member = cluster.members[1]
    for number in range(FILES):
        letter = make.directory / f"letter-{number}"
        letter.write_text("hello\n")
        fs(cluster, "-put", letter, "/").works()
    # What has committed is noted once a second, and only what was noted is waited for.
    time.sleep(1.5)
    cluster.data["data-1"].kill()
    member.process.kill()
    member.process.wait_gone()
    member.start()
    until("it answers", lambda: page(member, "/ready")[0] is not None)
    code, text = until("it is in safe mode", lambda: (found := page(member, "/ready"))[0] == 503 and "safe mode" in found[1] and found)
    check("needs additional 3 blocks" in json.loads(text)["reason"], text)
    fs(cluster, "-mkdir", "/new").is_refused("safe mode")
    admin(cluster, "report").works("Safe mode is on", "needs additional 3 blocks")
    # For long nothing comes.
    until("it says what it waits for", lambda: "are all data servers running?" in admin(cluster, "report").works().out, seconds=20)
    cluster.start_data("data-1")
    until("it is over", lambda: page(member, "/ready")[0] == 200)
    fs(cluster, "-mkdir", "/new").works()

"""What Hadoop's own pages show in a browser: the tables and sentences of a page, and which of them are empty."""

import json
import re
import urllib.parse
import urllib.request

TABS = ["overview", "datanode", "datanode-volume-failures", "snapshot", "startup-progress"]
# Old scripts of the pages make a browser say this wherever they run; and two pictures that they ask for are not in Hadoop's jar.
OF_THE_PAGES = ("Synchronous XMLHttpRequest", "is deprecated", "[Deprecation]", "/static/bootstrap-3.4.1/img/")
# Pairs of a name, which a heading and the head of a row or column make, and a text. Columns without a head are for clicks.
READ = r"""
const text = one => one.textContent.replace(/\s+/g, ' ').trim();
const read = [];
let heading = '';
for (const one of document.querySelector(arguments[0]).querySelectorAll('.page-header, p, h2, table')) {
  if (one.matches('.page-header')) { 
    // Without the name of the server, which stands in a part of its own.
    const [first] = one.querySelector('h1').childNodes;
    heading = text(first).replace(/['(]/g, '') || text(one);
    continue;
  }
  if (!one.matches('table')) { read.push([`${heading}: text`, text(one)]); continue; }
  const heads = [...one.querySelectorAll('thead th, thead td')].map(text);
  for (const row of one.querySelectorAll('tr')) {
    if (row.closest('thead')) continue;
    const cells = [...row.children];
    if (heads.length) cells.forEach((cell, at) => heads[at] && read.push([`${heading}: ${heads[at]}`, text(cell)]));
    else read.push([`${heading}: ${text(cells[0])}`, text(cells[1])]);
  }
}
return read;
"""
# A value that a page has made of something that it did not find.
BROKEN = re.compile(r"NaN|undefined|Invalid date|\[object|\bnull\b|Infinity")
# Nothing, or a unit without its number.
EMPTY = re.compile(r"[^0-9A-Za-z]*|s|ms|m|B|[^0-9A-Za-z]*GB[^0-9A-Za-z]*")


def shown(browser, selector):
    """All that stands in this part of the page, as pairs of a name and a text."""
    return [tuple(pair) for pair in browser.run(READ, selector)]


def broken(pairs):
    return [pair for pair in pairs if BROKEN.search(pair[1])]


def empty(pairs):
    """The names that have no value, in one row at least."""
    return {name for name, value in pairs if EMPTY.fullmatch(value)}


def values(pairs, name):
    return [value for known, value in pairs if known == name]


def errors(browser):
    return [error for error in browser.errors() if not any(part in error for part in OF_THE_PAGES)]


def error_box(browser):
    """The text of the red box, if it is shown."""
    return browser.run("const box = document.querySelector('#alert-panel'); return box && box.offsetParent ? box.innerText : ''")


def bytes_shown(count):
    """A number of bytes as the pages write it."""
    units, size, at = ["B", "KB", "MB", "GB", "TB", "PB"], float(count), 0
    while size >= 1024:
        size, at = size / 1024, at + 1
    return f"{int(size * 100 + 0.5) / 100:.2f}".rstrip("0").rstrip(".") + f" {units[at]}"


class Place:
    """A file system by the addresses of its servers' pages, Hadoop's or Clover's."""

    def __init__(self, name, authority, user):
        self.name, self.authority, self.user = name, authority, user

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.authority}{path}", timeout=60) as answer:
            return answer.read()

    def bean(self, name):
        return json.loads(self.get(f"/jmx?qry={name if ':' in name else f'Hadoop:service=NameNode,name={name}'}"))["beans"][0]

    def data_servers(self):
        return [one["infoAddr"] for one in json.loads(self.bean("NameNodeInfo")["LiveNodes"]).values()]

    def call(self, method, path, operation, body=None, **parameters):
        """WebHDFS, as a superuser unless another `user` is named."""
        query = {"op": operation, "user.name": parameters.pop("user", self.user), **parameters}
        url = f"http://{self.authority}/webhdfs/v1{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=60) as answer:
            return answer.read()

    def put(self, path, data):
        location = json.loads(self.call("PUT", path, "CREATE", noredirect="true"))["Location"]
        headers = {"Content-Type": "application/octet-stream"}
        urllib.request.urlopen(urllib.request.Request(location, data, headers, method="PUT"), timeout=60).read()

    def names(self, path):
        told = json.loads(self.call("GET", path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]
        return {one["pathSuffix"]: one for one in told}

    def read(self, path):
        return self.call("GET", path, "OPEN")


# Longer than what a page shows of a file's beginning and end.
LONG = b"".join(b"line %06d of a long file\n" % number for number in range(6_000))
NOTES = b"The first line.\n<b>Not bold.</b>\n"
# A visitor of these pages is this user, on Hadoop and on Clover.
VISITOR = "dr.who"


def fill(place):
    """Two files, two snapshots, and a directory of the visitor's own."""
    for path, mode in (("/data/deep/deeper", "755"), (f"/user/{VISITOR}", "755"), ("/other", "755")):
        place.call("PUT", path, "MKDIRS", permission=mode)
    place.call("PUT", f"/user/{VISITOR}", "SETOWNER", owner=VISITOR)
    place.put("/data/notes", NOTES)
    place.put("/data/long", LONG)
    place.call("PUT", "/data", "ALLOWSNAPSHOT")
    place.call("PUT", "/data", "CREATESNAPSHOT", snapshotname="first")
    place.call("PUT", "/data", "CREATESNAPSHOT", snapshotname="second")
    place.call("PUT", "/other", "ALLOWSNAPSHOT")

"""Hadoop's explorer.html: what its buttons do to files."""

import json
import urllib.request

from demo import check
from driver import PATIENCE_S
from hadoop_views import LONG, NOTES, VISITOR, bytes_shown, error_box, errors

# So much of a file is shown.
CHUNK = 32_768
HOME = f"/user/{VISITOR}"


class Explorer:
    def __init__(self, browser, front, place):
        self.browser, self.front, self.place = browser, front, place

    def go(self, path):
        """Hadoop's page asks once, when it is loaded. On a machine that is busy it is loaded a second time, as a person does, and its errors are told."""
        self.load(path)
        try:
            self.browser.wait(f"the list of {path}", lambda: self.at() == path and self.drawn(), PATIENCE_S / 2)
        except SystemExit as late:
            print(f"web: {late}; the page is loaded anew. Its errors: {self.browser.errors()}", flush=True)
            self.load(path)
            self.browser.wait(f"the list of {path}", lambda: self.at() == path and self.drawn())

    def load(self, path):
        self.browser.open("about:blank")
        self.browser.open(f"{self.front.url}/explorer.html#{path}")

    def at(self):
        return self.browser.run("return document.querySelector('#directory').value")

    def drawn(self):
        return self.browser.run("return !!document.querySelector('#table-explorer_wrapper')")

    def rows(self):
        """The rows as lists of texts, by their names."""
        rows = "[...document.querySelectorAll('tr.explorer-entry')].map(row => [...row.children].map(one => one.textContent.replace(/\\s+/g, ' ').trim()))"
        return {row[8]: row for row in self.browser.run(f"return {rows}")}

    def wait_rows(self, what, is_so):
        self.browser.wait(what, lambda: is_so(self.rows()))

    def button(self, name, part):
        self.browser.click(f'tr[inode-path="{name}"] {part}')

    def quiet(self, doing):
        check(not error_box(self.browser), f"{doing}: {error_box(self.browser)}")
        found = errors(self.browser)
        check(not found, f"{doing}: {found}")


def explore(browser, front, place, directory):
    page = Explorer(browser, front, place)
    looks(page)
    if place.name == "Hadoop":
        # Its DataNodes do not let a page of another port send a file: their answers to a browser's question lack Content-Type.
        print("web: explorer.html on Hadoop lists, previews and downloads")
        return
    changes(page, directory)
    refusals(page)
    print(f"web: explorer.html on {place.name} lists, previews, downloads, makes, uploads, moves, sets rights and deletes")


def looks(page):
    browser, place = page.browser, page.place
    page.go("/")
    check({"data", "user", "other"} <= set(page.rows()), page.rows())
    page.button("data", ".explorer-browse-links")
    page.wait_rows("the files of /data", lambda rows: "long" in rows)
    told, rows = place.names("/data"), page.rows()
    check(set(rows) == set(told), (rows, told))
    (_, rights, owner, group, size, changed, copies, block, _, _) = rows["long"]
    check(rights == "-rw-r--r--" and owner == place.user, rows["long"])
    check(group == told["long"]["group"] and size == bytes_shown(len(LONG)) and changed, rows["long"])
    check(copies == str(told["long"]["replication"]) and block == "128 MB", rows["long"])
    check(rows["deep"][1].startswith("drwxr-xr-x") and rows["deep"][4] == "0 B", rows["deep"])

    page.button("long", ".explorer-browse-links")
    browser.wait("the file", lambda: browser.run("return document.querySelector('#file-info').offsetHeight > 0"))
    block = json.loads(place.call("GET", "/data/long", "GET_BLOCK_LOCATIONS"))["LocatedBlocks"]["locatedBlocks"][0]
    about = browser.text("#file-info-blockinfo-body")
    wanted = {
        "Block ID": block["block"]["blockId"],
        "Block Pool ID": block["block"]["blockPoolId"],
        "Generation Stamp": block["block"]["generationStamp"],
        "Size": len(LONG),
    }
    for name, value in wanted.items():
        check(f"{name}: {value}\n" in about + "\n", (name, value, about))
    hosts = [one["hostName"] for one in block["locations"]]
    check(about.split("Availability:")[1].split() == hosts and hosts, (about, hosts))
    for which, part in (("head", LONG[:CHUNK]), ("tail", LONG[-CHUNK:])):
        browser.click(f"#file-info-preview-{which}")
        text = "return document.querySelector('#file-info-preview-body').value"
        browser.wait(f"the {which}", lambda part=part: browser.run(text).encode() == part)
    # As the browser follows the link, without leaving the page.
    href = browser.run("return document.querySelector('#file-info-download').href")
    check(urllib.request.urlopen(href).read() == LONG, f"the download of {href}")
    browser.click("#file-info .modal-footer button")
    page.button("notes", ".explorer-browse-links")
    browser.wait("the small file", lambda: browser.text("#file-info-title").endswith("notes"))
    browser.click("#file-info-preview-tail")
    browser.wait("its end", lambda: browser.run(text).encode() == NOTES)
    browser.click("#file-info .modal-footer button")
    page.button("deep", ".explorer-browse-links")
    page.wait_rows("a directory", lambda rows: set(rows) == {"deeper"})
    browser.click("#parentDir")
    page.wait_rows("the way up", lambda rows: "long" in rows)
    page.go("/data/.snapshot/first")
    check(set(page.rows()) == {"deep", "long", "notes"}, page.rows())
    page.quiet("looks")


def changes(page, directory):
    browser, place = page.browser, page.place
    (directory / "upload one").write_bytes(b"some bytes\n" * 9)
    (directory / "upload-two").write_bytes(b"")
    page.go(HOME)
    for name in ("made here", "second"):
        browser.click("#btn-create-dir")
        browser.wait("the form", lambda: browser.text("#new_directory_pwd") == HOME)
        browser.type("#new_directory", name)
        browser.click("#btn-create-directory-send")
        page.wait_rows("the directory", lambda rows, name=name: name in rows)
    made = place.names(HOME)["made here"]
    check((made["owner"], made["permission"]) == (VISITOR, "755"), made)
    check(page.rows()["made here"][1] == "drwxr-xr-x", page.rows())

    browser.click("#btn-upload-files")
    browser.type("#modal-upload-file-input", f"{directory / 'upload one'}\n{directory / 'upload-two'}")
    browser.wait("the button", lambda: browser.run("return !document.querySelector('#modal-upload-file-button').disabled"))
    browser.click("#modal-upload-file-button")
    page.wait_rows("the uploaded files", lambda rows: {"upload one", "upload-two"} <= set(rows))
    browser.wait("the form is gone", lambda: browser.run("return document.querySelector('#modal-upload-file').offsetHeight == 0"))
    check(place.read(f"{HOME}/upload one") == b"some bytes\n" * 9, "the bytes of the file")
    check(page.rows()["upload one"][4] == "99 B", page.rows())

    page.button("upload one", ".explorer-perm-links")
    boxes = "return [...document.querySelectorAll('.popover input:checked')].map(one => +one.dataset.bit)"
    browser.wait("the rights in boxes", lambda: sum(1 << bit for bit in browser.run(boxes)) == 0o644)
    browser.click('.popover input[data-bit="2"]')
    browser.click(".popover #explorer-set-perm-button")
    page.wait_rows("the new rights", lambda rows: rows["upload one"][1] == "-rw-r-----")
    check(place.names(HOME)["upload one"]["permission"] == "640", "the rights")

    page.button("upload one", ".explorer-replication-links")
    browser.wait("the number of copies", lambda: browser.find(".editable-input input"))
    browser.run("document.querySelector('.editable-input input').value = ''")
    browser.type(".editable-input input", "2")
    # The number changes at once, and then the table is drawn anew.
    browser.run("document.querySelector('#table-explorer').dataset.before = 'yes'")
    browser.click(".editable-submit")
    browser.wait("a new table", lambda: browser.run("return !!document.querySelector('#table-explorer:not([data-before])')"))
    page.wait_rows("the new number", lambda rows: rows["upload one"][6] == "2")

    page.button("upload one", "input.file_selector")
    browser.click('button[title="Cut & Paste"]')
    browser.click("#explorer-cut")
    browser.call("POST", browser.session + "/alert/accept", {})
    page.button("second", ".explorer-browse-links")
    page.wait_rows("an empty directory", lambda rows: not rows and page.at() == f"{HOME}/second")
    browser.click('button[title="Cut & Paste"]')
    browser.click("#explorer-paste")
    page.wait_rows("the moved file", lambda rows: "upload one" in rows)
    check("upload one" not in place.names(HOME), "it is not in its old place")
    check(place.names(f"{HOME}/second")["upload one"]["replication"] == 2, "it has the number of copies that was set")

    page.go(HOME)
    for name in ("second", "upload-two"):
        page.button(name, ".glyphicon-trash")
        browser.wait("the question", lambda name=name: f"delete {name}" in browser.text("#delete-prompt"))
        browser.click("#delete-button")
        page.wait_rows("it is gone", lambda rows, name=name: name not in rows)
    check(set(place.names(HOME)) == {"made here"}, place.names(HOME))
    page.quiet("changes")


def refusals(page):
    """What a visitor may not do, and what is not there, is said in the red box."""
    browser = page.browser
    page.go("/data")
    page.button("notes", ".glyphicon-trash")
    browser.wait("the question", lambda: "delete notes" in browser.text("#delete-prompt"))
    browser.click("#delete-button")
    browser.wait("the refusal", lambda: "Permission denied: user=dr.who, access=WRITE" in error_box(browser))
    check("notes" in page.place.names("/data"), "it is still there")
    browser.open("about:blank")
    browser.open(f"{page.front.url}/explorer.html#/nowhere")
    browser.wait("the refusal", lambda: "Path does not exist on HDFS" in error_box(browser))
    # The browser notes both as errors, which they are.
    found = errors(browser)
    check(len(found) == 2 and "403" in found[0] and "404" in found[1], found)

"""The checkers themselves: each finds what it is there for, and nothing in a history that is right."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks import blocks, doubled, epochs, errors, gaps, linear, lost, outage, stages, trees
from checks.history import Entry, Operation


def told(thread, name, begun, ended, outcome, *arguments, value=""):
    return Operation("client", thread, name, begun, ended, outcome, value, arguments)


def cell(name, begun, ended, outcome, *names, value=""):
    return told("cell-1", name, begun, ended, outcome, *(f"cells/0/{n}" for n in names), value=value)


class Linear(unittest.TestCase):
    def test_one_after_the_other(self):
        history = [
            cell("create", 0, 1, "ok", "a", value="7"),
            cell("rename", 2, 3, "ok", "a", "b"),
            cell("stat", 4, 5, "missing", "a"),
            cell("stat", 6, 7, "ok", "b", value="7"),
            cell("delete", 8, 9, "ok", "b"),
        ]
        self.assertEqual(linear.violations([history]), [])

    def test_a_stale_read_is_found(self):
        history = [cell("create", 0, 1, "ok", "a", value="7"), cell("stat", 2, 3, "missing", "a")]
        self.assertEqual(len(linear.violations([history])), 1)

    def test_a_read_at_the_same_time_may_go_either_way(self):
        for outcome, value in (("missing", ""), ("ok", "7")):
            history = [cell("create", 0, 10, "ok", "a", value="7"), cell("stat", 2, 3, outcome, "a", value=value)]
            self.assertEqual(linear.violations([history]), [])

    def test_a_read_that_saw_it_orders_the_next(self):
        history = [
            cell("create", 0, 10, "ok", "a", value="7"),
            cell("stat", 1, 2, "ok", "a", value="7"),
            cell("stat", 3, 4, "missing", "a"),
        ]
        self.assertEqual(len(linear.violations([history])), 1)

    def test_a_delete_told_twice_is_found(self):
        history = [
            cell("create", 0, 1, "ok", "a", value="7"),
            cell("delete", 2, 3, "ok", "a"),
            cell("delete", 4, 5, "ok", "a"),
        ]
        self.assertEqual(len(linear.violations([history])), 1)

    def test_an_unanswered_create_may_show_late_once(self):
        history = [
            cell("create", 0, None, "error:X", "a"),
            cell("stat", 2, 3, "missing", "a"),
            cell("stat", 4, 5, "ok", "a", value="7"),
            cell("delete", 6, 7, "ok", "a"),
        ]
        self.assertEqual(linear.violations([history]), [])
        self.assertEqual(len(linear.violations([[*history, cell("stat", 8, 9, "ok", "a", value="7")]])), 1)

    def test_hundreds_of_unanswered_operations_are_judged_at_once(self):
        history = []
        for moment in range(0, 3000, 10):
            history.append(cell("create", moment, None, "error:X", "abc"[moment % 3]))
            history.append(cell("rename", moment + 1, None, "error:X", "abc"[moment % 3], "bca"[moment % 3]))
            history.append(cell("delete", moment + 2, None, "error:X", "cab"[moment % 3]))
            history.append(cell("stat", moment + 3, moment + 4, "missing", "a"))
        self.assertEqual(linear.violations([history]), [])


class Private(unittest.TestCase):
    def begin(self):
        return [told("own-1", "mkdir", 0, 1, "ok", "own-1"), told("own-1", "create", 2, 3, "ok", "own-1/f", value="5")]

    def test_all_there(self):
        listing = {"own-1": Entry(True, "4", 0, "0"), "own-1/f": Entry(False, "5", 0, "0")}
        self.assertEqual(lost.violations([self.begin()], listing), [])
        self.assertEqual(doubled.violations([self.begin()], listing), [])

    def test_a_file_that_is_gone_is_lost(self):
        self.assertEqual(len(lost.violations([self.begin()], {"own-1": Entry(True, "4", 0, "0")})), 1)

    def test_a_file_with_another_inode_was_made_twice(self):
        listing = {"own-1": Entry(True, "4", 0, "0"), "own-1/f": Entry(False, "6", 0, "0")}
        self.assertEqual(len(doubled.violations([self.begin()], listing)), 1)

    def test_a_retried_create_that_meets_itself_was_made_twice(self):
        history = [*self.begin(), told("own-1", "create", 4, 5, "exists", "own-1/g")]
        self.assertEqual(len(doubled.violations([history], None)), 1)

    def test_a_deleted_file_that_is_there_came_back(self):
        history = [*self.begin(), told("own-1", "delete", 4, 5, "ok", "own-1/f")]
        listing = {"own-1": Entry(True, "4", 0, "0"), "own-1/f": Entry(False, "5", 0, "0")}
        self.assertEqual(len(doubled.violations([history], listing)), 1)

    def test_an_unclear_rename_may_have_gone_either_way(self):
        history = [*self.begin(), told("own-1", "rename", 4, None, "waiting", "own-1/f", "own-1/g")]
        for name in ("own-1/f", "own-1/g"):
            listing = {"own-1": Entry(True, "4", 0, "0"), name: Entry(False, "5", 0, "0")}
            self.assertEqual(lost.violations([history], listing) + doubled.violations([history], listing), [])

    def test_other_bytes_are_a_loss(self):
        history = [*self.begin(), told("own-1", "close", 4, 5, "ok", "own-1/f", "10", "abc")]
        listing = {"own-1": Entry(True, "4", 0, "0"), "own-1/f": Entry(False, "5", 9, "abc")}
        self.assertEqual(len(lost.violations([history], listing)), 1)


class Others(unittest.TestCase):
    def test_an_epoch_with_two_actives_is_found(self):
        logs = {"m1": "is active in epoch 3 and serves\n", "m2": "is active in epoch 4 and serves\n"}
        self.assertEqual(epochs.violations(logs), [])
        self.assertEqual(len(epochs.violations({**logs, "m3": "… is active in epoch 3 and serves group=1"})), 1)

    def test_the_stages_of_a_takeover_add_up(self):
        takeover = {"epoch": 2, "member": 3, "trigger": "lease over", "detect_ms": 400, "claim_ms": 5, "sync_ms": 60}
        self.assertEqual(stages.of(takeover), {"noticed": 400, "election": 5, "switching": 55})
        self.assertIn("reconnection 40 ms", stages.sentence(takeover, 500))

    def test_an_error_is_allowed_by_name_only(self):
        history = [told("own-1", "create", 0, 1, "error:RetriableException", "own-1/f")]
        self.assertEqual(len(errors.violations([history])), 1)
        self.assertEqual(errors.violations([history], errors.RETRIABLE), [])

    def test_the_outage_is_the_longest_gap_around_the_fault(self):
        millisecond = 1_000_000
        ends = [1, 2, 3, 4, 504, 505, 506]
        history = [told("own-1", "stat", (end - 1) * millisecond, end * millisecond, "ok", "x") for end in ends]
        seen = outage.of(history, 4 * millisecond, 506 * millisecond)
        self.assertEqual(seen.gap_ms, 500)



class Mixed(unittest.TestCase):
    """Names that hold a file or a directory."""

    def found(self, *history):
        return len(linear.violations([[told("mixed-1", name, *others, value=value) for name, *others, value in history]]))

    def test_a_directory_may_be_made_again_and_is_seen_with_one_number(self):
        made = [("mkdir", 0, 1, "ok", "mixed/0/a/it", ""), ("mkdir", 2, 3, "ok", "mixed/0/a/it", ""), ("stat", 4, 5, "ok", "mixed/0/a/it", "d7")]
        self.assertEqual(self.found(*made, ("stat", 6, 7, "ok", "mixed/0/a/it", "d7")), 0)
        self.assertEqual(self.found(*made, ("stat", 6, 7, "ok", "mixed/0/a/it", "d8")), 1)
        self.assertEqual(self.found(*made, ("stat", 6, 7, "ok", "mixed/0/a/it", "f7")), 1)

    def test_a_name_holds_one_of_both(self):
        made = ("create", 0, 1, "ok", "mixed/0/a/it", "f7")
        self.assertEqual(self.found(made, ("mkdir", 2, 3, "exists", "mixed/0/a/it", "")), 0)
        self.assertEqual(self.found(made, ("mkdir", 2, 3, "ok", "mixed/0/a/it", "")), 1)
        self.assertEqual(self.found(("mkdir", 0, 1, "ok", "mixed/0/a/it", ""), ("create", 2, 3, "ok", "mixed/0/a/it", "f7")), 1)

    def test_a_directory_is_renamed_to_a_free_name_only(self):
        made = ("mkdir", 0, 1, "ok", "mixed/0/a/it", "")
        moved = ("rename", 2, 3, "ok", "mixed/0/a/it", "mixed/0/b/it", "")
        self.assertEqual(self.found(made, moved, ("create", 4, 5, "ok", "mixed/0/a/it", "f7")), 0)
        self.assertEqual(self.found(made, moved, ("create", 4, 5, "ok", "mixed/0/b/it", "f7")), 1)
        self.assertEqual(self.found(made, ("create", 2, 3, "ok", "mixed/0/b/it", "f7"), moved), 1)

    def test_a_refused_rename_changes_nothing(self):
        made = [("create", 0, 1, "ok", "mixed/0/a/it", "f7"), ("rename", 2, 3, "refused", "mixed/0/a/it", "mixed/0/b/it", "")]
        self.assertEqual(self.found(*made, ("stat", 4, 5, "ok", "mixed/0/a/it", "f7")), 0)
        self.assertEqual(self.found(*made, ("stat", 4, 5, "ok", "mixed/0/b/it", "f7")), 1)

    def test_what_an_unanswered_call_has_made_is_of_its_kind(self):
        file = ("create", 0, None, "error:X", "mixed/0/a/it", "")
        self.assertEqual(self.found(file, ("stat", 2, 3, "ok", "mixed/0/a/it", "f7")), 0)
        self.assertEqual(self.found(file, ("stat", 2, 3, "ok", "mixed/0/a/it", "d7")), 1)
        directory = ("mkdir", 0, None, "error:X", "mixed/0/a/it", "")
        self.assertEqual(self.found(directory, ("stat", 2, 3, "ok", "mixed/0/a/it", "d7")), 0)
        self.assertEqual(self.found(directory, ("stat", 2, 3, "ok", "mixed/0/a/it", "f7")), 1)


class Trees(unittest.TestCase):
    """Threads that rename and delete directories with what is in them."""

    def history(self, *more):
        return [
            told("tree-1", "mkdir", 0, 1, "ok", "tree-1"),
            told("tree-1", "mkdir", 2, 3, "ok", "tree-1/d"),
            told("tree-1", "create", 4, 5, "ok", "tree-1/d/f", value="7"),
            told("tree-1", "close", 6, 7, "ok", "tree-1/d/f", "3", "abc"),
            told("tree-1", "rename", 8, 9, "ok", "tree-1/d", "tree-1/n"),
            *more,
        ]

    def found(self, history, listing):
        return lost.violations([history], listing), doubled.violations([history], listing)

    def test_a_directory_takes_along_what_is_in_it(self):
        listing = {"tree-1": Entry(True, "1", 0, "0"), "tree-1/n": Entry(True, "2", 0, "0"), "tree-1/n/f": Entry(False, "7", 3, "abc")}
        self.assertEqual(self.found(self.history(), listing), ([], []))
        listing["tree-1/d"] = Entry(True, "2", 0, "0")
        gone, twice = self.found(self.history(), listing)
        self.assertEqual((len(gone), len(twice)), (0, 1))
        del listing["tree-1/d"], listing["tree-1/n/f"]
        gone, twice = self.found(self.history(), listing)
        self.assertEqual((len(gone), len(twice)), (1, 0))

    def test_what_a_listing_leaves_out_or_has_too_much_is_found(self):
        for names, wanted in (("f", (0, 0)), ("", (1, 0)), ("f,g", (0, 1))):
            gone, twice = self.found(self.history(told("tree-1", "list", 10, 11, "ok", "tree-1/n", value=names)), None)
            self.assertEqual((len(gone), len(twice)), wanted)

    def test_nothing_is_said_of_what_is_below_an_unclear_name(self):
        history = self.history(told("tree-1", "rename", 10, None, "error:X", "tree-1/n", "tree-1/o"))
        for name in ("tree-1/n", "tree-1/o"):
            listing = {"tree-1": Entry(True, "1", 0, "0"), name: Entry(True, "2", 0, "0"), f"{name}/f": Entry(False, "7", 3, "abc")}
            self.assertEqual(self.found(history, listing), ([], []))

    def test_joined_files_are_one(self):
        history = self.history(told("tree-1", "create", 10, 11, "ok", "tree-1/n/g", value="8"))
        history += [told("tree-1", "close", 12, 13, "ok", "tree-1/n/g", "2", "de")]
        history += [told("tree-1", "concat", 14, 15, "ok", "tree-1/n/f", "5", "abcde", "tree-1/n/g")]
        listing = {"tree-1": Entry(True, "1", 0, "0"), "tree-1/n": Entry(True, "2", 0, "0"), "tree-1/n/f": Entry(False, "7", 5, "abcde")}
        self.assertEqual(self.found(history, listing), ([], []))
        listing["tree-1/n/g"] = Entry(False, "8", 2, "de")
        gone, twice = self.found(history, listing)
        self.assertEqual((len(gone), len(twice)), (0, 1))


class Blocks(unittest.TestCase):
    def test_each_block_is_where_it_should_be(self):
        one = blocks.Block("/a", False, 1, 1001, 10)
        self.assertEqual(blocks.violations([one], {"data-1": {(1, 1001, 10)}}), [])

    def test_what_is_astray_is_found(self):
        one, same = blocks.Block("/a", False, 1, 1001, 10), blocks.Block("/b", False, 1, 1001, 10)
        self.assertEqual(len(blocks.violations([one], {"data-1": {(1, 1000, 10)}})), 1)
        self.assertEqual(len(blocks.violations([one], {"data-1": {(1, 1001, 10), (2, 1002, 5)}})), 1)
        self.assertEqual(len(blocks.violations([one, same], {"data-1": {(1, 1001, 10)}})), 1)

    def test_the_last_block_of_an_open_file_may_be_nowhere(self):
        open_file = [blocks.Block("/a", True, 1, 1001, 10), blocks.Block("/a", True, 2, 1002, 0)]
        self.assertEqual(blocks.violations(open_file, {"data-1": {(1, 1001, 10)}}), [])
        self.assertEqual(len(blocks.violations(open_file, {"data-1": set()})), 1)

    def unlike(self, *replicas, is_open=False, missing=frozenset(), servers=("data-1", "data-2", "data-3")):
        """Of a file with one block, of which the servers have these replicas beside two good ones."""
        good = blocks.Replica("finalized", 1, 1001, 10)
        held = dict.fromkeys(servers[:2], {good}) | {servers[2]: set(replicas)}
        return blocks.unlike([blocks.Block("/a", is_open, 1, 1001, 10, 3)], held, missing)

    def test_replicas_as_they_must_be_are_fine(self):
        self.assertEqual(self.unlike(blocks.Replica("finalized", 1, 1001, 10)), [])
        one = blocks.Block("/a", False, 1, 1001, 10, 3)
        on_two = {name: {blocks.Replica("finalized", 1, 1001, 10)} for name in ("data-1", "data-2")}
        self.assertEqual(blocks.unlike([one], on_two), [], "no more than there are servers")

    def test_a_replica_too_few_or_too_many_is_found(self):
        good = blocks.Replica("finalized", 1, 1001, 10)
        self.assertEqual(len(self.unlike()), 1)
        four = {f"data-{number}": {good} for number in range(4)}
        self.assertEqual(len(blocks.unlike([blocks.Block("/a", False, 1, 1001, 10, 3)], four)), 1)

    def test_what_is_left_on_a_disk_is_found(self):
        good = blocks.Replica("finalized", 1, 1001, 10)
        for left in (blocks.Replica(place, 2, 1002, 10) for place in ("finalized", "rbw", "tmp")):
            self.assertEqual(len(self.unlike(good, left)), 1, left)
        for spoilt in (("rbw", 1, 1001, 10), ("finalized", 1, 1000, 10), ("finalized", 1, 1001, 9), ("finalized", 1, None, 10)):
            # It is told as well that the file has one replica too few.
            self.assertEqual(len(self.unlike(blocks.Replica(*spoilt))), 2, spoilt)

    def test_an_open_file_and_a_missing_one_may_have_anything_anywhere(self):
        for words in ({"is_open": True}, {"missing": {"/a"}}):
            self.assertEqual(self.unlike(blocks.Replica("rbw", 1, 1000, 3), **words), [])
            self.assertEqual(len(self.unlike(blocks.Replica("rbw", 2, 1000, 3), **words)), 1)

    def fsck(self, fault=None, healthy=True, over=0):
        lines = [{"path": "/a", "blocks": [{"block": "blk_1", "fault": fault}]}] if fault else []
        return [*lines, {"summary": {"healthy": healthy, "over_replicated_blocks": over}}]

    def test_fsck_must_say_exactly_what_is_missing(self):
        self.assertEqual(blocks.unhealthy(self.fsck()), [])
        for fault in ("missing", "corrupt"):
            self.assertEqual(blocks.unhealthy(self.fsck(fault, healthy=False), {"/a"}), [])
            self.assertEqual(len(blocks.unhealthy(self.fsck(fault, healthy=False))), 2)
        self.assertEqual(len(blocks.unhealthy(self.fsck("missing", healthy=False), {"/a", "/b"})), 1)
        self.assertEqual(len(blocks.unhealthy(self.fsck(), {"/a"})), 2)
        self.assertEqual(len(blocks.unhealthy(self.fsck("under_replicated"))), 1)
        self.assertEqual(len(blocks.unhealthy(self.fsck(over=1))), 1)


class TreesApart(unittest.TestCase):
    def end(self, own="1:7", digest="aa", dix="5", directories="bb"):
        return f"failpoint end: at 1:1 00, directories at 1 00\nfailpoint end: at {own} {digest}, directories at {dix} {directories}\n"

    def test_equal_trees_are_fine(self):
        one, other = {"m1": self.end(), "m2": self.end()}, {"m3": self.end(own="4:9", digest="cc")}
        self.assertEqual(trees.violations([one, other]), [])

    def test_what_differs_is_found(self):
        one = {"m1": self.end()}
        for other in (self.end(digest="cc"), self.end(own="1:8", directories="cc"), self.end(own="1:8", dix="6"), ""):
            self.assertEqual(len(trees.violations([{**one, "m2": other}])), 1)
        self.assertEqual(len(trees.violations([one, {"m3": self.end(own="4:9", directories="cc")}])), 1)


class Gaps(unittest.TestCase):
    def test_faults_of_one_kind_are_told_together(self):
        felt = [{"fault": f"kill -9 of m{number} of group 2", "gap_ms": number * 10, "slowest_ms": 5} for number in (1, 2, 3, 4)]
        kind, total = gaps.sentences(felt)
        self.assertIn("m* of group *: p50 20, p90 40, max 40 ms", kind)
        self.assertIn("all faults", total)


if __name__ == "__main__":
    unittest.main()

"""The proxy finds methods and call numbers in the bytes that a Hadoop client sends."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.proxy import Dropper, request


class Request(unittest.TestCase):
    # Header: kind 2, final packet, call 5, client id of 16 bytes; then the method's name.
    HEADER = bytes([8, 2, 16, 0, 24, 10, 34, 16]) + bytes(range(16)) + bytes([40, 1])
    NAMED = b"\x0a\x06mkdirs" + b"\x12\x02xy" + b"\x18\x01"

    def frame(self, header):
        return bytes([len(header)]) + header + bytes([len(self.NAMED)]) + self.NAMED + b"\x00"

    def test_a_call(self):
        self.assertEqual(request(self.frame(self.HEADER)), ((bytes(range(16)), 5), "mkdirs"))

    def test_a_ping_is_no_call(self):
        self.assertEqual(request(self.frame(self.HEADER.replace(bytes([24, 10]), bytes([24, 7])))), (None, None))

    def test_only_the_first_reply_is_swallowed(self):
        dropper = Dropper()
        self.assertEqual([dropper.swallows((b"c", 1), "mkdirs") for _ in range(3)], [True, False, False])


if __name__ == "__main__":
    unittest.main()

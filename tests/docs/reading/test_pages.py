"""Pages are taken apart as their marks say, and what is printed is held against what is shown."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reading import pages
from reading.shells import Shell

PAGE = """Text.
<!-- run -->
```console
$ one \\
  more
shown
meta-1$ two
```
<!-- run until it is so, with other numbers -->
```
three
four
```
<!-- setup
five
-->
<!-- write: /etc/x on meta-1 -->
```toml
a = 1
```
<!-- serve: ready -->
```
clover demo
```
<!-- stop -->
```
<!-- run -->
not run
```
"""


class Pages(unittest.TestCase):
    def test_steps(self):
        steps = pages.parse(PAGE)
        self.assertEqual([step.kind for step in steps], ["run", "run", "setup", "write", "serve", "stop"])
        first, second = steps[0].commands
        self.assertEqual((first.text, first.machine, first.output), ("one \\\n  more", "", ["shown"]))
        self.assertEqual((second.text, second.machine, second.output), ("two", "meta-1", None))
        self.assertEqual([command.text for command in steps[1].commands], ["three", "four"])
        self.assertEqual((steps[1].waits, steps[1].any_numbers, steps[0].waits), (True, True, False))
        self.assertEqual((steps[3].word, steps[3].text), ("/etc/x on meta-1", "a = 1\n"))

    def test_marks_that_make_no_sense(self):
        for text in ("<!-- run -->\ntext", "<!-- run twice -->\n```\na\n```", "<!-- serve -->\n```\na\n```", "<!-- setup\na", "<!-- run\n```\na\n```"):
            with self.assertRaises(pages.PageError, msg=text):
                pages.parse(text)

    def test_what_is_as_shown(self):
        for shown, printed in (
            (["a   b"], "a b\n"),
            (["…"], "anything\nat all"),
            (["a … c"], "a b b c"),
            (["a", "…", "z"], "a\nb\nc\nz"),
            (["a", "…"], "a"),
            (["1/…  0"], " 1/17     0 "),
            (["a", "b"], "\na\n\nb\n"),
        ):
            self.assertIsNone(pages.difference(shown, printed), (shown, printed))

    def test_what_is_not(self):
        for shown, printed in (
            (["a"], "b"),
            (["a"], "a\nb"),
            (["a", "b"], "a"),
            (["a", "…", "z"], "a\nb"),
            (["… c"], "a b"),
            (["a.c"], "abc"),
        ):
            self.assertIsNotNone(pages.difference(shown, printed), (shown, printed))

    def test_other_numbers(self):
        self.assertIsNone(pages.difference(["member 1, epoch 2"], "member 3, epoch 10", any_numbers=True))
        self.assertIsNotNone(pages.difference(["member 1, epoch 2"], "member 3, epoch x", any_numbers=True))


class Shells(unittest.TestCase):
    def test_a_shell_keeps_what_is_exported_and_tells_how_commands_end(self):
        shell = Shell("", Path("/"), quiet=True)
        self.assertEqual(shell.run("export GREETING=hello")[0], 0)
        code, printed = shell.run("echo $GREETING; cat; false")
        self.assertEqual((code, printed.strip()), (1, "hello"))
        self.assertEqual(shell.run("(exit 7)")[0], 7)
        shell.end()


if __name__ == "__main__":
    unittest.main()

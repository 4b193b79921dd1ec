//! The layout of Hadoop's JSON: scripts look for `"State" : "active"` with the spaces that it has there.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The text of a value: each attribute on a line of its own, arrays in their line.
pub fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Layout::default());
    value.serialize(&mut serializer).expect("memory takes all bytes, and all keys are texts");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[derive(Default)]
struct Layout {
    depth: usize,
    /// The object that was begun last has an attribute.
    has_attribute: bool,
}

impl Layout {
    fn begin_line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Layout {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" ]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        out.write_all(if is_first { &b" "[..] } else { &b", "[..] })
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_attribute = false;
        out.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !std::mem::replace(&mut self.has_attribute, true) {
            return out.write_all(b" }");
        }
        self.begin_line(out)?;
        out.write_all(b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.has_attribute = true;
        if !is_first {
            out.write_all(b",")?;
        }
        self.begin_line(out)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn attributes_stand_in_lines_and_arrays_in_theirs() {
        let value = json!({ "beans": [{ "name": "a:b=c", "Numbers": [1, 2.5], "Nested": { "x": null } }, { "none": {}, "nothing": [] }] });
        let expected = r#"{
  "beans" : [ {
    "Nested" : {
      "x" : null
    },
    "Numbers" : [ 1, 2.5 ],
    "name" : "a:b=c"
  }, {
    "none" : { },
    "nothing" : [ ]
  } ]
}"#;
        assert_eq!(super::text(&value), expected);
    }
}

use crate::tree::Tree;
use std::io;

pub(super) fn write(tree: &Tree, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let _ = (tree, sink);
    todo!()
}

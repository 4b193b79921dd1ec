//! The children of a directory, ordered by name: a B+ tree whose nodes are pieces of a heap.
//!
//! ```text
//! leaf  : level = 0 u8 | length u8 | class u8 | 0 | inode handle u32 × capacity(class)
//! inner : level > 0 u8 | length u8 | class u8 | 0 | (child u32, smallest inode u32, inodes below u32) × 42
//! ```
//!
//! A tree holds handles only; the caller compares by name, so a key costs four bytes. Small directories pay
//! for a small leaf. Counts in inner nodes give the rank of an entry, which paged listings live on.

use super::{NONE, heap::Heap};
use std::cmp::Ordering;

const HEADER: usize = 4;
/// Bytes of a leaf by class: 1, 3, 7, 15, 31 or 63 entries.
const LEAF_BYTES: [usize; 6] = [8, 16, 32, 64, 128, 256];
const LEAF_CLASS_MAX: u8 = 5;
const LEAF_MAX: usize = 63;
/// The class of a leaf that begins where its left neighbour ended: it will grow.
const LEAF_CLASS_APPENDED: u8 = 2;
const INNER_BYTES: usize = 512;
const INNER_ENTRY: usize = 12;
const INNER_MAX: usize = (INNER_BYTES - HEADER) / INNER_ENTRY;
/// Neighbours that together hold no more than this become one node.
const LEAF_MERGE: usize = 40;
const INNER_MERGE: usize = 26;

/// Says how the entry compares with the key sought.
pub(crate) trait Compare: Fn(u32) -> Ordering {}
impl<F: Fn(u32) -> Ordering> Compare for F {}

#[derive(Clone, Copy)]
struct Entry {
    child: u32,
    min: u32,
    count: u32,
}

#[derive(Clone, Copy)]
struct Header {
    level: u8,
    length: usize,
    class: u8,
}

fn capacity(class: u8) -> usize {
    (LEAF_BYTES[class as usize] - HEADER) / 4
}

fn class_for(length: usize) -> u8 {
    (0..=LEAF_CLASS_MAX).find(|class| capacity(*class) >= length).unwrap_or(LEAF_CLASS_MAX)
}

fn header(heap: &Heap, node: u32) -> Header {
    let bytes = heap.get(node, HEADER);
    Header { level: bytes[0], length: bytes[1] as usize, class: bytes[2] }
}

fn bytes_of(header: Header) -> usize {
    if header.level == 0 { LEAF_BYTES[header.class as usize] } else { INNER_BYTES }
}

fn new_node(heap: &mut Heap, level: u8, class: u8) -> u32 {
    let node = heap.allocate(bytes_of(Header { level, length: 0, class }));
    heap.get_mut(node, HEADER).copy_from_slice(&[level, 0, class, 0]);
    node
}

fn release(heap: &mut Heap, node: u32) {
    let size = bytes_of(header(heap, node));
    heap.release(node, size);
}

fn leaf_entry(heap: &Heap, node: u32, at: usize) -> u32 {
    heap.u32_at(node, HEADER + 4 * at)
}

fn inner_entry(heap: &Heap, node: u32, at: usize) -> Entry {
    let start = HEADER + INNER_ENTRY * at;
    Entry {
        child: heap.u32_at(node, start),
        min: heap.u32_at(node, start + 4),
        count: heap.u32_at(node, start + 8),
    }
}

fn set_inner_entry(heap: &mut Heap, node: u32, at: usize, entry: Entry) {
    let start = HEADER + INNER_ENTRY * at;
    let bytes = &mut heap.get_mut(node, INNER_BYTES)[start..start + INNER_ENTRY];
    bytes[..4].copy_from_slice(&entry.child.to_le_bytes());
    bytes[4..8].copy_from_slice(&entry.min.to_le_bytes());
    bytes[8..].copy_from_slice(&entry.count.to_le_bytes());
}

/// Makes room for one entry of `width` bytes at `at`; the node must have capacity.
fn open_gap(heap: &mut Heap, node: u32, at: usize, width: usize) {
    let header = header(heap, node);
    let bytes = heap.get_mut(node, bytes_of(header));
    bytes.copy_within(HEADER + width * at..HEADER + width * header.length, HEADER + width * (at + 1));
    bytes[1] += 1;
}

fn close_gap(heap: &mut Heap, node: u32, at: usize, width: usize) {
    let header = header(heap, node);
    let bytes = heap.get_mut(node, bytes_of(header));
    bytes.copy_within(HEADER + width * (at + 1)..HEADER + width * header.length, HEADER + width * at);
    bytes[1] -= 1;
}

/// Moves the entries from `from` on to the end of `target`.
fn move_tail(heap: &mut Heap, node: u32, from: usize, target: u32, width: usize) {
    let (source, goal) = (header(heap, node), header(heap, target));
    let length = width * (source.length - from);
    let mut buffer = [0; INNER_BYTES];
    let start = HEADER + width * from;
    buffer[..length].copy_from_slice(&heap.get(node, bytes_of(source))[start..start + length]);
    heap.get_mut(node, HEADER)[1] = from as u8;
    let start = HEADER + width * goal.length;
    let bytes = heap.get_mut(target, bytes_of(goal));
    bytes[start..start + length].copy_from_slice(&buffer[..length]);
    bytes[1] += (source.length - from) as u8;
}

/// Gives a leaf another class; the entries must fit.
fn resize_leaf(heap: &mut Heap, node: u32, class: u8) -> u32 {
    let resized = new_node(heap, 0, class);
    move_tail(heap, node, 0, resized, 4);
    release(heap, node);
    resized
}

/// The position in a leaf of the entry that is equal to the key. `Err`: that of the first one that is greater.
fn leaf_search(heap: &Heap, node: u32, length: usize, compare: &impl Compare) -> Result<usize, usize> {
    let entries = &heap.get(node, HEADER + 4 * length)[HEADER..];
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = (low + high) / 2;
        match compare(u32_of(&entries[4 * middle..])) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => high = middle,
        }
    }
    Err(low)
}

/// The child of an inner node in which the key belongs.
fn inner_position(heap: &Heap, node: u32, length: usize, compare: &impl Compare) -> usize {
    let entries = &heap.get(node, HEADER + INNER_ENTRY * length)[HEADER..];
    let (mut low, mut high) = (1, length);
    while low < high {
        let middle = (low + high) / 2;
        // The child is in front of its smallest inode.
        match compare(u32_of(&entries[INNER_ENTRY * middle + 4..])) {
            Ordering::Greater => high = middle,
            _ => low = middle + 1,
        }
    }
    low - 1
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn describe(heap: &Heap, node: u32) -> Entry {
    let head = header(heap, node);
    if head.level == 0 {
        return Entry { child: node, min: leaf_entry(heap, node, 0), count: head.length as u32 };
    }
    let count = (0..head.length).map(|at| inner_entry(heap, node, at).count).sum();
    Entry { child: node, min: inner_entry(heap, node, 0).min, count }
}

/// How many entries there are.
#[cfg(test)]
pub(crate) fn count(heap: &Heap, root: u32) -> u32 {
    if root == NONE { 0 } else { describe(heap, root).count }
}

pub(crate) fn find(heap: &Heap, root: u32, compare: impl Compare) -> Option<u32> {
    let mut node = root;
    if node == NONE {
        return None;
    }
    loop {
        let head = header(heap, node);
        if head.level > 0 {
            node = inner_entry(heap, node, inner_position(heap, node, head.length, &compare)).child;
            continue;
        }
        let at = leaf_search(heap, node, head.length, &compare).ok()?;
        return Some(leaf_entry(heap, node, at));
    }
}

/// How many entries are less than the key, or equal to it.
pub(crate) fn rank_after(heap: &Heap, root: u32, compare: impl Compare) -> u32 {
    let mut node = root;
    let mut rank = 0;
    if node == NONE {
        return 0;
    }
    loop {
        let head = header(heap, node);
        if head.level > 0 {
            let at = inner_position(heap, node, head.length, &compare);
            rank += (0..at).map(|at| inner_entry(heap, node, at).count).sum::<u32>();
            node = inner_entry(heap, node, at).child;
            continue;
        }
        return match leaf_search(heap, node, head.length, &compare) {
            Ok(at) => rank + at as u32 + 1,
            Err(at) => rank + at as u32,
        };
    }
}

/// The entries from a rank on, in order.
pub(crate) fn iterate(heap: &Heap, root: u32, rank: u32) -> Iter<'_> {
    Iter { heap, root, rank, leaf: NONE, at: 0, length: 0 }
}

pub(crate) struct Iter<'a> {
    heap: &'a Heap,
    root: u32,
    /// The rank of the first entry after the current leaf.
    rank: u32,
    leaf: u32,
    at: usize,
    length: usize,
}

impl Iter<'_> {
    /// Goes to the leaf that holds the entry of rank `self.rank`; false at the end.
    fn seek(&mut self) -> bool {
        let (mut node, mut rank) = (self.root, self.rank);
        if node == NONE {
            return false;
        }
        loop {
            let head = header(self.heap, node);
            if head.level == 0 {
                if rank as usize >= head.length {
                    return false;
                }
                (self.leaf, self.at, self.length) = (node, rank as usize, head.length);
                self.rank += (head.length - self.at) as u32;
                return true;
            }
            let mut entries = (0..head.length).map(|at| inner_entry(self.heap, node, at));
            let Some(entry) = entries.find(|entry| {
                let here = rank < entry.count;
                if !here {
                    rank -= entry.count;
                }
                here
            }) else {
                return false;
            };
            node = entry.child;
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.at == self.length && !self.seek() {
            return None;
        }
        self.at += 1;
        Some(leaf_entry(self.heap, self.leaf, self.at - 1))
    }
}

/// Adds an entry; no equal one may be there. Answers the new root.
pub(crate) fn insert(heap: &mut Heap, root: u32, handle: u32, compare: impl Compare) -> u32 {
    if root == NONE {
        let leaf = new_node(heap, 0, 0);
        put_leaf_entry(heap, leaf, 0, handle);
        return leaf;
    }
    let (node, right) = insert_below(heap, root, handle, &compare);
    let Some(right) = right else {
        return node;
    };
    let level = header(heap, node).level + 1;
    let parent = new_node(heap, level, 0);
    for (at, child) in [node, right].into_iter().enumerate() {
        open_gap(heap, parent, at, INNER_ENTRY);
        let entry = describe(heap, child);
        set_inner_entry(heap, parent, at, entry);
    }
    parent
}

fn put_leaf_entry(heap: &mut Heap, leaf: u32, at: usize, handle: u32) {
    open_gap(heap, leaf, at, 4);
    let start = HEADER + 4 * at;
    heap.get_mut(leaf, start + 4)[start..].copy_from_slice(&handle.to_le_bytes());
}

/// Answers the node, which may have moved, and its new right neighbour if it was split.
fn insert_below(heap: &mut Heap, node: u32, handle: u32, compare: &impl Compare) -> (u32, Option<u32>) {
    let head = header(heap, node);
    if head.level == 0 {
        return insert_in_leaf(heap, node, handle, compare);
    }
    let at = inner_position(heap, node, head.length, compare);
    let (child, right) = insert_below(heap, inner_entry(heap, node, at).child, handle, compare);
    let entry = match right {
        // Cheaper than counting, and the common case.
        None => {
            let old = inner_entry(heap, node, at);
            Entry { child, min: first(heap, child), count: old.count + 1 }
        }
        Some(_) => describe(heap, child),
    };
    set_inner_entry(heap, node, at, entry);
    let Some(right) = right else {
        return (node, None);
    };
    let entry = describe(heap, right);
    if head.length < INNER_MAX {
        open_gap(heap, node, at + 1, INNER_ENTRY);
        set_inner_entry(heap, node, at + 1, entry);
        return (node, None);
    }
    let neighbour = new_node(heap, head.level, 0);
    let split = if at + 1 == INNER_MAX { INNER_MAX } else { INNER_MAX / 2 };
    move_tail(heap, node, split, neighbour, INNER_ENTRY);
    let (target, position) = if at + 1 < split || (at + 1 == split && split < INNER_MAX) {
        (node, at + 1)
    } else {
        (neighbour, at + 1 - split)
    };
    open_gap(heap, target, position, INNER_ENTRY);
    set_inner_entry(heap, target, position, entry);
    (node, Some(neighbour))
}

fn first(heap: &Heap, node: u32) -> u32 {
    if header(heap, node).level == 0 { leaf_entry(heap, node, 0) } else { inner_entry(heap, node, 0).min }
}

fn insert_in_leaf(heap: &mut Heap, leaf: u32, handle: u32, compare: &impl Compare) -> (u32, Option<u32>) {
    let head = header(heap, leaf);
    let (Ok(at) | Err(at)) = leaf_search(heap, leaf, head.length, compare);
    if head.length < capacity(head.class) {
        put_leaf_entry(heap, leaf, at, handle);
        return (leaf, None);
    }
    if head.class < LEAF_CLASS_MAX {
        let leaf = resize_leaf(heap, leaf, head.class + 1);
        put_leaf_entry(heap, leaf, at, handle);
        return (leaf, None);
    }
    // Names often arrive in order: leave a full leaf behind, rather than two halves.
    if at == LEAF_MAX {
        let right = new_node(heap, 0, LEAF_CLASS_APPENDED);
        put_leaf_entry(heap, right, 0, handle);
        return (leaf, Some(right));
    }
    let half = LEAF_MAX / 2;
    let right = new_node(heap, 0, LEAF_CLASS_MAX);
    move_tail(heap, leaf, half, right, 4);
    let (target, at) = if at <= half { (leaf, at) } else { (right, at - half) };
    put_leaf_entry(heap, target, at, handle);
    (leaf, Some(right))
}

/// Takes out the entry equal to the key, which must be there. Answers the new root.
pub(crate) fn remove(heap: &mut Heap, root: u32, compare: impl Compare) -> u32 {
    let mut root = remove_below(heap, root, &compare);
    while root != NONE {
        let head = header(heap, root);
        if head.level == 0 || head.length > 1 {
            break;
        }
        let child = inner_entry(heap, root, 0).child;
        release(heap, root);
        root = child;
    }
    root
}

/// Answers the node, which may have moved; `NONE` once it is empty.
fn remove_below(heap: &mut Heap, node: u32, compare: &impl Compare) -> u32 {
    let head = header(heap, node);
    if head.level == 0 {
        let at =
            leaf_search(heap, node, head.length, compare).expect("a child that is to be removed is there");
        close_gap(heap, node, at, 4);
        let length = head.length - 1;
        if length == 0 {
            release(heap, node);
            return NONE;
        }
        if length * 3 <= capacity(head.class) {
            return resize_leaf(heap, node, class_for(length));
        }
        return node;
    }
    let at = inner_position(heap, node, head.length, compare);
    let old = inner_entry(heap, node, at);
    let child = remove_below(heap, old.child, compare);
    if child == NONE {
        close_gap(heap, node, at, INNER_ENTRY);
        if head.length == 1 {
            release(heap, node);
            return NONE;
        }
        return node;
    }
    let entry = Entry { child, min: first(heap, child), count: old.count - 1 };
    set_inner_entry(heap, node, at, entry);
    merge_around(heap, node, at, head.length);
    node
}

/// Joins the child at `at` with a neighbour if both fit well into one node.
fn merge_around(heap: &mut Heap, node: u32, at: usize, length: usize) {
    let head = header(heap, inner_entry(heap, node, at).child);
    let (limit, width) = if head.level == 0 { (LEAF_MERGE, 4) } else { (INNER_MERGE, INNER_ENTRY) };
    if head.length > limit / 2 {
        return;
    }
    let pairs = [(at.wrapping_sub(1), at), (at, at + 1)];
    for (left, right) in pairs.into_iter().filter(|(left, right)| *left < length && *right < length) {
        let (keep, gone) = (inner_entry(heap, node, left), inner_entry(heap, node, right));
        let total = header(heap, keep.child).length + header(heap, gone.child).length;
        if total > limit {
            continue;
        }
        let mut kept = keep.child;
        if head.level == 0 && capacity(header(heap, kept).class) < total {
            kept = resize_leaf(heap, kept, class_for(total));
        }
        move_tail(heap, gone.child, 0, kept, width);
        release(heap, gone.child);
        let merged = Entry { child: kept, min: keep.min, count: keep.count + gone.count };
        set_inner_entry(heap, node, left, merged);
        close_gap(heap, node, right, INNER_ENTRY);
        return;
    }
}

/// Gives back all nodes.
pub(crate) fn clear(heap: &mut Heap, root: u32) {
    if root == NONE {
        return;
    }
    let head = header(heap, root);
    if head.level > 0 {
        for at in 0..head.length {
            let child = inner_entry(heap, root, at).child;
            clear(heap, child);
        }
    }
    release(heap, root);
}

#[cfg(test)]
#[path = "children/tests.rs"]
mod tests;

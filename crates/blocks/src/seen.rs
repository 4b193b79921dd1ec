//! A set of slots: which blocks a report in progress has named.

const CHUNK_BITS: usize = 4096;

type Chunk = Option<Box<[u64; CHUNK_BITS / 64]>>;

/// Bits in chunks of half a kilobyte, made when first touched.
#[derive(Default)]
pub struct Seen {
    chunks: Vec<Chunk>,
    count: u32,
}

impl Seen {
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn contains(&self, slot: u32) -> bool {
        let (chunk, word, bit) = place(slot);
        self.chunks.get(chunk).and_then(Option::as_ref).is_some_and(|words| words[word] & bit != 0)
    }

    /// False if it was there already.
    pub fn insert(&mut self, slot: u32) -> bool {
        let (chunk, word, bit) = place(slot);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let words = self.chunks[chunk].get_or_insert_with(|| Box::new([0; CHUNK_BITS / 64]));
        let new = words[word] & bit == 0;
        words[word] |= bit;
        self.count += u32::from(new);
        new
    }

    /// Leaves what is in both.
    pub fn retain(&mut self, other: &Self) {
        let mut count = 0;
        for (at, chunk) in self.chunks.iter_mut().enumerate() {
            match (chunk.as_mut(), other.chunks.get(at).and_then(Option::as_ref)) {
                (Some(words), Some(others)) => {
                    for (word, other) in words.iter_mut().zip(others.iter()) {
                        *word &= other;
                        count += word.count_ones();
                    }
                }
                _ => *chunk = None,
            }
        }
        self.count = count;
    }

    pub fn remove(&mut self, slot: u32) {
        let (chunk, word, bit) = place(slot);
        if let Some(words) = self.chunks.get_mut(chunk).and_then(Option::as_mut)
            && words[word] & bit != 0
        {
            words[word] &= !bit;
            self.count -= 1;
        }
    }
}

fn place(slot: u32) -> (usize, usize, u64) {
    let slot = slot as usize;
    (slot / CHUNK_BITS, slot % CHUNK_BITS / 64, 1 << (slot % 64))
}

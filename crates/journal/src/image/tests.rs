use super::*;
use parking_lot::Mutex;
use std::io::Read;

/// A file in memory.
#[derive(Default)]
struct Memory(Mutex<Vec<u8>>);

impl File for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.0.lock();
        let end = offset as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    fn submit_write_sync(self: Arc<Self>, bytes: bytes::Bytes, offset: u64, done: env::WriteDone) {
        done(self.write_at(&bytes, offset));
    }
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.lock().resize(length as usize, 0);
        Ok(())
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        self.set_length(length)
    }
}

fn header() -> ImageHeader {
    let id = TxId { epoch: Epoch(2), sn: Sn(9) };
    ImageHeader { group: GroupId(1), at: LogPoint { id, chain: Chain(3) }, store_uuid: [4; 16] }
}

fn write(pieces: &[&[u8]]) -> (Vec<u8>, Checkpoint) {
    let file = Arc::new(Memory::default());
    let mut writer = ImageWriter::new(file.clone(), &header()).unwrap();
    for piece in pieces {
        writer.write(piece).unwrap();
    }
    let checkpoint = writer.finish().unwrap();
    let bytes = file.0.lock().clone();
    (bytes, checkpoint)
}

fn read(bytes: &[u8]) -> io::Result<(Vec<u8>, [u8; 32])> {
    let mut reader = ImageReader::open(Arc::new(Memory(Mutex::new(bytes.to_vec()))))?;
    let mut content = Vec::new();
    reader.read_to_end(&mut content)?;
    Ok((content, reader.finish()?))
}

#[test]
fn an_image_reads_back_whatever_the_pieces_were() {
    let content: Vec<u8> = (0..3 * CHUNK_BYTES_MAX + 17).map(|n| (n / 7) as u8).collect();
    let (whole, checkpoint) = write(&[&content]);
    let pieces: Vec<&[u8]> = content.chunks(99_991).collect();
    assert_eq!(write(&pieces), (whole.clone(), checkpoint));
    assert_eq!(checkpoint.file_bytes, whole.len() as u64);
    assert_eq!(read(&whole).unwrap(), (content, checkpoint.sha256));
}

#[test]
fn an_empty_image_reads_back() {
    let (bytes, checkpoint) = write(&[]);
    assert_eq!(read(&bytes).unwrap(), (Vec::new(), checkpoint.sha256));
}

#[test]
fn a_flipped_bit_or_a_cut_anywhere_is_noticed() {
    let (good, checkpoint) = write(&[b"inodes", &[3; 300], b"blocks"]);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        // A bit in the header that the header's own checksum covers, or anything else.
        assert!(read(&bad).is_err(), "byte {at}");
        assert!(read(&good[..at]).is_err(), "cut to {at}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(read(&longer).is_err());
    assert_eq!(read(&good).unwrap().1, checkpoint.sha256);
}

#[test]
fn a_reader_that_stops_early_still_checks_the_rest() {
    let (mut bytes, _) = write(&[b"abc", &[1; 2000]]);
    let end = bytes.len() - 200;
    bytes[end] ^= 1;
    let mut reader = ImageReader::open(Arc::new(Memory(Mutex::new(bytes)))).unwrap();
    let _ = reader.read(&mut [0; 1]);
    assert!(reader.finish().is_err());
}

#[test]
fn a_chunk_that_claims_too_much_is_refused_before_anything_is_allocated() {
    let (mut bytes, _) = write(&[b"abc"]);
    bytes[64..68].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(read(&bytes).unwrap_err().to_string().contains("a chunk of at most"));
}

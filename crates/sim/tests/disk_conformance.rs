//! The promises of a disk on which a store relies, checked on the machine's disk and on the simulated one.

use env::{Disk, LocalDisk, OpenMode, disk::read_exact_at};
use sim::{Dice, SimDisk};
use std::{io::ErrorKind, path::Path, sync::mpsc};

fn on_each(check: impl Fn(&dyn Disk, &Path)) {
    on_each_completed(|disk, root, _| check(disk, root));
}

/// The machine's disk goes on by itself; the simulated one has to be told.
fn on_each_completed(check: impl Fn(&dyn Disk, &Path, &dyn Fn())) {
    let directory = tempfile::tempdir().unwrap();
    check(&LocalDisk::new(), directory.path(), &|| ());
    let disk = SimDisk::new(Dice::new(1));
    disk.create_directory(Path::new("/sim")).unwrap();
    check(&disk, Path::new("/sim"), &|| disk.complete_all());
}

#[test]
fn files_open_as_their_mode_says() {
    on_each(|disk, root| {
        let path = root.join("file");
        assert_eq!(disk.open(&path, OpenMode::Read).err().unwrap().kind(), ErrorKind::NotFound);
        assert_eq!(disk.open(&path, OpenMode::ReadWrite).err().unwrap().kind(), ErrorKind::NotFound);
        disk.open(&path, OpenMode::CreateNew).unwrap().write_at(b"content", 0).unwrap();
        assert_eq!(disk.open(&path, OpenMode::CreateNew).err().unwrap().kind(), ErrorKind::AlreadyExists);
        assert_eq!(disk.open(&path, OpenMode::ReadWrite).unwrap().length().unwrap(), 7);
        assert_eq!(disk.length(&path).unwrap(), 7);
        assert_eq!(disk.open(&path, OpenMode::CreateOrTruncate).unwrap().length().unwrap(), 0);
        let nowhere = root.join("missing/file");
        assert_eq!(disk.open(&nowhere, OpenMode::CreateNew).err().unwrap().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn what_is_written_is_read() {
    on_each(|disk, root| {
        let file = disk.open(&root.join("file"), OpenMode::CreateNew).unwrap();
        file.write_at(b"world", 6).unwrap();
        file.write_at(b"hello", 0).unwrap();
        let mut buffer = [9; 20];
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 11);
        assert_eq!(&buffer[..11], b"hello\0world", "a hole reads as zeros");
        assert_eq!(file.read_at(&mut buffer, 6).unwrap(), 5);
        assert_eq!(file.read_at(&mut buffer, 11).unwrap(), 0);
        let error = read_exact_at(&*file, &mut buffer, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        file.set_length(3).unwrap();
        file.allocate(5).unwrap();
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
        assert_eq!(&buffer[..5], b"hel\0\0");
        file.allocate(2).unwrap();
        assert_eq!(file.length().unwrap(), 5, "allocating never cuts");
        file.sync_data().unwrap();
    });
}

#[test]
fn names_are_listed_renamed_and_removed() {
    on_each(|disk, root| {
        for name in ["b", "a", "c"] {
            disk.open(&root.join(name), OpenMode::CreateNew).unwrap().write_at(name.as_bytes(), 0).unwrap();
        }
        disk.create_directory(&root.join("d/e/f")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["a", "b", "c", "d"], "sorted");
        disk.rename(&root.join("a"), &root.join("b")).unwrap();
        disk.sync_directory(root).unwrap();
        let mut content = [0];
        disk.open(&root.join("b"), OpenMode::Read).unwrap().read_at(&mut content, 0).unwrap();
        assert_eq!(content, *b"a", "a rename replaces");
        disk.remove_file(&root.join("c")).unwrap();
        assert_eq!(disk.remove_file(&root.join("c")).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(disk.rename(&root.join("c"), &root.join("x")).is_err());
        assert!(disk.is_directory(&root.join("d/e")).unwrap() && disk.exists(&root.join("d/e/f")).unwrap());
        assert!(!disk.is_directory(&root.join("b")).unwrap() && !disk.exists(&root.join("z")).unwrap());
        assert!(!disk.is_directory(&root.join("z")).unwrap());
        disk.remove_directory(&root.join("d")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["b"]);
        assert!(disk.list(&root.join("d")).is_err());
        assert!(disk.space(root).unwrap().free_bytes > 0);
    });
}

#[test]
fn a_lock_has_one_holder() {
    on_each(|disk, root| {
        let path = root.join("lock");
        let held = disk.lock(&path).unwrap();
        assert_eq!(disk.lock(&path).err().unwrap().kind(), ErrorKind::WouldBlock);
        drop(held);
        disk.lock(&path).unwrap();
    });
}

#[test]
fn submitted_writes_call_back_and_are_there() {
    on_each_completed(|disk, root, complete| {
        let file = disk.open(&root.join("file"), OpenMode::CreateNew).unwrap();
        let (sender, receiver) = mpsc::channel();
        for byte in 0..8_u8 {
            let sender = sender.clone();
            let done = Box::new(move |result: std::io::Result<()>| sender.send(result.is_ok()).unwrap());
            file.clone().submit_write_sync(vec![byte; 100].into(), u64::from(byte) * 100, done);
        }
        drop(sender);
        complete();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [true; 8]);
        let mut content = [9; 800];
        read_exact_at(&*file, &mut content, 0).unwrap();
        assert!(content.chunks(100).zip(0..).all(|(chunk, byte)| chunk.iter().all(|found| *found == byte)));
    });
}

use super::*;

fn disk() -> SimDisk {
    let disk = SimDisk::new(Dice::new(7));
    disk.create_directory(Path::new("/d")).unwrap();
    disk
}

fn create(disk: &SimDisk, path: &str, content: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_at(content, 0).unwrap();
    file
}

fn read(disk: &SimDisk, path: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(Path::new(path), OpenMode::Read)?;
    let mut content = vec![0; file.length()? as usize];
    file.read_at(&mut content, 0)?;
    Ok(content)
}

#[test]
fn only_what_was_synced_survives() {
    let disk = disk();
    let file = create(&disk, "/d/a", b"synced");
    file.sync_data().unwrap();
    disk.sync_directory(Path::new("/d")).unwrap();
    file.write_at(b"forgot", 0).unwrap();
    create(&disk, "/d/b", b"never named").sync_data().unwrap();
    assert_eq!(read(&disk, "/d/a").unwrap(), b"forgot");
    disk.crash(Loss::All);
    assert_eq!(read(&disk, "/d/a").unwrap(), b"synced");
    assert!(read(&disk, "/d/b").is_err());
    assert!(file.sync_data().is_err(), "what was opened before the crash is dead");
}

#[test]
fn the_death_of_a_process_loses_nothing_written() {
    let disk = disk();
    create(&disk, "/d/a", b"written");
    disk.crash(Loss::Nothing);
    assert_eq!(read(&disk, "/d/a").unwrap(), b"written");
}

#[test]
fn a_write_is_torn_at_sectors() {
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        let disk = SimDisk::new(Dice::new(seed));
        disk.put(Path::new("/d/a"), &[0; 2048]);
        disk.open(Path::new("/d/a"), OpenMode::ReadWrite).unwrap().write_at(&[1; 2048], 0).unwrap();
        disk.crash(Loss::Random);
        let content = read(&disk, "/d/a").unwrap();
        for sector in content.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
        }
        seen.insert(content.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>());
    }
    assert!(seen.len() > 8, "many tears were tried: {}", seen.len());
}

#[test]
fn a_failed_sync_loses_what_programs_still_see() {
    let disk = disk();
    let file = create(&disk, "/d/a", b"old");
    file.sync_data().unwrap();
    disk.sync_directory(Path::new("/d")).unwrap();
    file.write_at(b"new", 0).unwrap();
    disk.fail_sync(0, Fault::Io);
    assert!(file.sync_data().is_err());
    file.sync_data().expect("the next sync says that all is well");
    assert_eq!(read(&disk, "/d/a").unwrap(), b"new");
    disk.crash(Loss::Nothing);
    assert_eq!(read(&disk, "/d/a").unwrap(), b"old");
}

#[test]
fn submitted_writes_wait_for_the_scenario() {
    let disk = disk();
    let file = create(&disk, "/d/a", b"");
    let (sender, receiver) = std::sync::mpsc::channel();
    for byte in [1, 2] {
        let sender = sender.clone();
        let done = Box::new(move |result: io::Result<()>| sender.send((byte, result.is_ok())).unwrap());
        file.clone().submit_write_sync(Bytes::from(vec![byte]), u64::from(byte), done);
    }
    assert!(receiver.try_recv().is_err());
    disk.complete(1);
    disk.complete(0);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(2, true), (1, true)]);
}

#[test]
fn a_renamed_file_does_not_come_back_under_its_old_name() {
    let disk = disk();
    disk.create_directory(Path::new("/e")).unwrap();
    create(&disk, "/d/a", b"moved").sync_data().unwrap();
    disk.rename(Path::new("/d/a"), Path::new("/e/b")).unwrap();
    disk.sync_directory(Path::new("/e")).unwrap();
    disk.sync_directory(Path::new("/d")).unwrap();
    disk.crash(Loss::All);
    assert_eq!(read(&disk, "/e/b").unwrap(), b"moved");
    assert!(read(&disk, "/d/a").is_err());
}

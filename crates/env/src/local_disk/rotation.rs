//! Whether the device below a directory seeks, as Linux says it in `queue/rotational`.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Every block device, by its numbers.
const DEVICES: &str = "/sys/dev/block";

/// A device may lie on others, and those on others again: more than this is no device that anybody has.
const DEPTH_MAX: usize = 8;

/// `None` where the system does not say: a file system of the network, in memory, or over several devices, of which each seeks for itself. Virtual disks
/// are often said to seek, whatever is below them.
pub fn seeks(path: &Path) -> Option<bool> {
    let device = fs::metadata(path).ok()?.dev();
    is_rotational(Path::new(DEVICES), libc::major(device), libc::minor(device))
}

fn is_rotational(devices: &Path, major: u32, minor: u32) -> Option<bool> {
    let mut device: PathBuf = fs::canonicalize(devices.join(format!("{major}:{minor}"))).ok()?;
    for _ in 0..DEPTH_MAX {
        let below = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        match &below[..] {
            [] => return told_of(&device),
            [lone] => device = fs::canonicalize(lone).ok()?,
            // Volume groups and arrays.
            _ => return None,
        }
    }
    None
}

fn told_of(device: &Path) -> Option<bool> {
    // The queue of a partition is that of the disk above it.
    let queues = [Some(device), device.parent()].into_iter().flatten();
    let told =
        queues.map(|place| place.join("queue/rotational")).find_map(|file| fs::read_to_string(file).ok())?;
    match told.trim() {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_partition_seeks_as_its_disk_does_and_a_device_without_a_queue_is_not_known() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for (disk, told) in [("sda", "1\n"), ("nvme0n1", "0\n"), ("odd", "perhaps\n")] {
            fs::create_dir_all(at(disk).join("queue")).unwrap();
            fs::create_dir(at(disk).join("part")).unwrap();
            fs::write(at(disk).join("queue/rotational"), told).unwrap();
        }
        for (number, target) in [
            ("8:0", "sda"),
            ("8:1", "sda/part"),
            ("259:0", "nvme0n1"),
            ("259:1", "nvme0n1/part"),
            ("7:0", "odd"),
        ] {
            symlink(at(target), at(number)).unwrap();
        }
        for (stacked, below) in
            [("dm-0", &["sda/part"][..]), ("dm-1", &["sda", "nvme0n1"]), ("md0", &["dm-0"])]
        {
            fs::create_dir_all(at(stacked).join("slaves")).unwrap();
            fs::create_dir(at(stacked).join("queue")).unwrap();
            fs::write(at(stacked).join("queue/rotational"), "1").unwrap();
            for name in below {
                symlink(at(name), at(stacked).join("slaves").join(name.replace('/', "-"))).unwrap();
            }
        }
        for (number, target) in [("253:0", "dm-0"), ("253:1", "dm-1"), ("9:0", "md0")] {
            symlink(at(target), at(number)).unwrap();
        }
        let seeks = |major, minor| is_rotational(root.path(), major, minor);
        assert_eq!((seeks(253, 0), seeks(9, 0)), (Some(true), Some(true)), "one disk below");
        assert_eq!(seeks(253, 1), None, "of two disks each seeks for itself");
        assert_eq!((seeks(8, 0), seeks(8, 1)), (Some(true), Some(true)));
        assert_eq!((seeks(259, 0), seeks(259, 1)), (Some(false), Some(false)));
        assert_eq!((seeks(7, 0), seeks(0, 42)), (None, None));
    }

    #[test]
    fn memory_is_not_known_to_seek() {
        assert_eq!(seeks(Path::new("/proc")), None);
        assert_eq!(seeks(Path::new("/there is no such directory")), None);
    }
}

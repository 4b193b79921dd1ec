//! A disk that seeks, below a real kernel: a file that a program serves with the delays of a modelled disk is a block device
//! behind a loop device, with a file system on it.
//!
//! Everything is mounted in a mount namespace of its own, so that nothing stays mounted when this program ends, by a kill as well.

pub mod head;
mod served;

use crate::disks::platter::Measures;
use anyhow::{Context, bail, ensure};
use fuser::{BackgroundSession, Config, MountOption};
use head::Order;
use served::{Directory, NAME, Served};
use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

/// The kinds of file systems that the benchmark can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileSystemKind {
    Ext4,
    Xfs,
}

impl FileSystemKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Nothing that takes the disk's time later on: no tables that the kernel fills when it finds the time.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => {
                ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"])
            }
            Self::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
        }
    }

    fn options(self) -> &'static str {
        match self {
            Self::Ext4 => "noatime,noinit_itable,no_prefetch_block_bitmaps",
            Self::Xfs => "noatime",
        }
    }
}

/// How a device is made.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub kind: FileSystemKind,
    pub order: Order,
    /// Dirty bytes of the device that the system may hold.
    pub dirty_bytes: u64,
    pub trace: Option<&'a Path>,
}

/// Has this program run once more with its arguments and `marker`, in a mount namespace of its own.
///
/// # Errors
/// The program does not run as root, or `unshare` cannot be run.
pub fn run_in_namespace(marker: &str) -> anyhow::Result<ExitCode> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "a disk that seeks is mounted: only root may (as sudo {} disks --seeking …)",
        std::env::args().next().unwrap_or_default()
    );
    ensure!(Path::new("/dev/fuse").exists(), "this system has no FUSE: /dev/fuse is missing");
    ensure!(
        Path::new("/dev/loop-control").exists(),
        "this system has no loop devices: /dev/loop-control is missing"
    );
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(program);
    let status = command.args(std::env::args_os().skip(1)).arg(marker).status().context("running unshare")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// A mounted disk that seeks. It is gone when this is dropped.
pub struct Device {
    served: Arc<Served>,
    session: Option<BackgroundSession>,
    thread: Option<JoinHandle<()>>,
    image_dir: PathBuf,
    loop_device: Option<String>,
    mounted: Option<PathBuf>,
}

impl Device {
    /// A new disk with an empty file system, mounted at `dir`/mnt.
    ///
    /// # Errors
    /// A program that is needed is missing or fails; the text says which.
    pub fn mount(dir: &Path, plan: Plan<'_>) -> anyhow::Result<Self> {
        let measures = Measures::BARRACUDA;
        let memory =
            rustix::fs::memfd_create("disk", rustix::fs::MemfdFlags::CLOEXEC).context("taking memory")?;
        let memory = File::from(memory);
        memory.set_len(measures.bytes).context("taking memory")?;
        let (maker, options) = plan.kind.maker();
        let image = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        run(maker, &[options, &[&image]].concat())?;

        let (image_dir, mounted) = (dir.join("image"), dir.join("mnt"));
        for dir in [&image_dir, &mounted] {
            fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        let served = Served::new(measures, plan.order, memory);
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("clover-bench".into()), MountOption::NoAtime];
        let session = fuser::spawn_mount(Directory(served.clone()), &image_dir, &config);
        let session = session.with_context(|| format!("mounting {} by FUSE", image_dir.display()))?;
        let worker = served.clone();
        let thread = std::thread::Builder::new().name("disk-head".into()).spawn(move || worker.work())?;
        let mut device = Self {
            served,
            session: Some(session),
            thread: Some(thread),
            image_dir,
            loop_device: None,
            mounted: None,
        };

        let image = device.image_dir.join(NAME);
        let image = image.to_str().context("the directory's name is not UTF-8")?;
        let found = run("losetup", &["--find", "--show", "--direct-io=on", image])?;
        let loop_device = found.trim().to_owned();
        device.loop_device = Some(loop_device.clone());
        let place = mounted.to_str().context("the directory's name is not UTF-8")?;
        run("mount", &["-t", plan.kind.name(), "-o", plan.kind.options(), &loop_device, place])?;
        device.mounted = Some(mounted.clone());
        limit_dirty(&loop_device, plan.dirty_bytes)?;
        device.served.begin(plan.trace)?;
        Ok(device)
    }

    /// Where the file system is.
    pub fn path(&self) -> &Path {
        self.mounted.as_deref().unwrap_or(Path::new(""))
    }

    /// How often the head has gone elsewhere.
    pub fn seeks(&self) -> u64 {
        self.served.seeks()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // What fails here ends with the namespace.
        if let Some(mounted) = self.mounted.take().as_deref().and_then(Path::to_str) {
            let _ = run("umount", &[mounted]);
        }
        if let Some(loop_device) = self.loop_device.take() {
            let _ = run("losetup", &["--detach", &loop_device]);
            wait_until_detached(&loop_device);
        }
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
        self.served.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The system detaches a loop device when its last user has closed it.
fn wait_until_detached(loop_device: &str) {
    let number = loop_device.trim_start_matches("/dev/");
    let backing = format!("/sys/block/{number}/loop/backing_file");
    for _ in 0..600 {
        if !Path::new(&backing).exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Lets the system hold at most `bytes` of dirty data for this device. The system's own limit depends on the machine's memory.
fn limit_dirty(loop_device: &str, bytes: u64) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(loop_device).with_context(|| format!("looking at {loop_device}"))?.rdev();
    let bdi = format!("/sys/class/bdi/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    for (name, value) in [("max_bytes", bytes.to_string()), ("strict_limit", "1".into())] {
        let path = format!("{bdi}/{name}");
        fs::write(&path, value).with_context(|| format!("writing {path} (Linux 6.2 or newer is needed)"))?;
    }
    Ok(())
}

/// Runs a program of the system and answers what it says.
fn run(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.with_context(|| format!("running {program}, which is needed for a disk that seeks"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

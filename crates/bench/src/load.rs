//! `clover bench load`: the native client at work, and what it was told, for those who check that afterwards.
//!
//! One line an operation, between tabs: thread, operation, begin and end in nanoseconds of the machine's monotonic
//! clock, outcome, value, arguments. The stock client's load in tests/faults/java writes the same.

use super::monotonic_ns;
use base::FsError;
use cli::{runtime, target::Target};
use client::{CreateOptions, FileSystem, FileWriter};
use std::{
    fs::File,
    future::Future,
    io::{Read, Write},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The directory below which everything happens.
    #[arg(long, value_name = "PATH")]
    root: String,
    /// The file to write the history to.
    #[arg(long, value_name = "FILE")]
    history: PathBuf,
    /// The seed of everything that is left to chance. It is also a part of the workers' names.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Workers that keep to a directory of their own.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    own: u64,
    /// Workers that share a few names with all others of their kind.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    cell: u64,
    /// The rest of a worker between two operations.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 2_000)]
    pause_us: u64,
}

const CELLS: u64 = 6;
const NAMES: u64 = 3;
const FILES_MAX: usize = 400;
/// The pause after a refusal. Without it, refusals would fill the history.
const REST: Duration = Duration::from_millis(20);

/// Runs until standard input ends.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.target.configuration()?;
    let uri = args.target.uri(&config);
    let history = Arc::new(File::create(&args.history)?);
    let is_ending = Arc::new(AtomicBool::new(false));
    let seen = is_ending.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        seen.store(true, Ordering::Relaxed);
    });
    runtime::block_on(async move {
        let fs = FileSystem::connect(&uri, &config)?;
        let worker = |kind: &str, number: u64| Worker {
            fs: fs.clone(),
            root: args.root.clone(),
            name: format!("{kind}-{}-native-{number}", args.seed),
            history: history.clone(),
            is_ending: is_ending.clone(),
            pause: Duration::from_micros(args.pause_us),
            random: (args.seed * 1_000 + number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        };
        let mut workers = Vec::new();
        for number in 0..args.own {
            workers.push(tokio::spawn(worker("own", number).keep_to_itself()));
        }
        for number in args.own..args.own + args.cell {
            workers.push(tokio::spawn(worker("cell", number).share()));
        }
        for worker in workers {
            worker.await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

struct Worker {
    fs: FileSystem,
    root: String,
    name: String,
    history: Arc<File>,
    is_ending: Arc<AtomicBool>,
    pause: Duration,
    random: u64,
}

impl Worker {
    /// Create, rename, delete and stat in a directory of its own: each answer is known in advance.
    async fn keep_to_itself(mut self) {
        let (top, mut files, mut names) = (self.name.clone(), Vec::<String>::new(), 0_u64);
        self.make_directory(&top).await;
        while self.goes_on().await {
            names += 1;
            let choice = self.below(100);
            if (choice < 40 && files.len() < FILES_MAX) || files.is_empty() {
                let made = format!("{top}/f{names}");
                if self.create(&made).await {
                    files.push(made);
                }
                continue;
            }
            let at = self.below(files.len() as u64) as usize;
            if choice < 60 {
                let (from, to) = (files.swap_remove(at), format!("{top}/m{names}"));
                if self.rename(&from, &to).await {
                    files.push(to);
                }
            } else if choice < 80 {
                let gone = files.swap_remove(at);
                self.delete(&gone).await;
            } else {
                let which = files[at].clone();
                self.stat(&which).await;
            }
        }
    }

    /// Works on names that all workers of this kind share, in cells of three.
    async fn share(mut self) {
        for cell in 0..CELLS {
            self.make_directory(&format!("cells/{cell}")).await;
        }
        while self.goes_on().await {
            let cell = self.below(CELLS);
            let (one, other) = (self.below(NAMES), self.below(NAMES));
            let path = |name: u64| format!("cells/{cell}/{name}");
            match self.below(100) {
                0..30 => drop(self.create(&path(one)).await),
                30..50 => drop(self.delete(&path(one)).await),
                80.. if one != other => drop(self.rename(&path(one), &path(other)).await),
                _ => self.stat(&path(one)).await,
            }
        }
    }

    async fn goes_on(&self) -> bool {
        tokio::time::sleep(self.pause).await;
        !self.is_ending.load(Ordering::Relaxed)
    }

    fn below(&mut self, count: u64) -> u64 {
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % count
    }

    fn absolute(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Makes the directory of the load. All workers need it, so this is tried until it is there.
    async fn make_directory(&self, path: &str) {
        let at = self.absolute(path);
        while self.record("mkdir", &[path], self.fs.mkdirs(&at), |()| plain(true)).await.is_none()
            && !self.is_ending.load(Ordering::Relaxed)
        {}
    }

    async fn create(&self, path: &str) -> bool {
        let at = self.absolute(path);
        let options = CreateOptions::default();
        let create = self.fs.create(&at, &options);
        let told = |writer: &FileWriter| ("ok", writer.file_id().to_string());
        let Some(writer) = self.record("create", &[path], create, told).await else { return false };
        self.record("close", &[path, "0", "0"], writer.close(), |_| plain(true)).await.is_some()
    }

    async fn rename(&self, from: &str, to: &str) -> bool {
        let (source, target) = (self.absolute(from), self.absolute(to));
        let rename = self.fs.rename_or_move_into(&source, &target);
        self.record("rename", &[from, to], rename, |yes| plain(*yes)).await == Some(true)
    }

    async fn delete(&self, path: &str) -> bool {
        let at = self.absolute(path);
        self.record("delete", &[path], self.fs.delete(&at, false), |yes| plain(*yes)).await == Some(true)
    }

    async fn stat(&self, path: &str) {
        let at = self.absolute(path);
        let told = |status: &client::FileStatus| ("ok", status.file_id.to_string());
        self.record("stat", &[path], self.fs.status(&at), told).await;
    }

    async fn record<T>(
        &self,
        operation: &str,
        arguments: &[&str],
        call: impl Future<Output = client::Result<T>>,
        told: impl FnOnce(&T) -> (&'static str, String),
    ) -> Option<T> {
        let begun = monotonic_ns();
        let result = call.await;
        let ended = monotonic_ns();
        let (outcome, value) = match &result {
            Ok(answer) => told(answer),
            Err(client::Error::Fs(FsError::NotFound(_))) => ("missing", String::new()),
            Err(client::Error::Fs(FsError::AlreadyExists(_))) => ("exists", String::new()),
            Err(error) => ("error:native", error.to_string().replace(['\t', '\n'], " ")),
        };
        let line = format!(
            "{}\t{operation}\t{begun}\t{ended}\t{outcome}\t{value}\t{}\n",
            self.name,
            arguments.join("\t")
        );
        // One write a line. A history that cannot be written is worth nothing: its readers find it cut short.
        let _ = (&*self.history).write_all(line.as_bytes());
        if outcome.starts_with("error") {
            tokio::time::sleep(REST).await;
        }
        result.ok()
    }
}

fn plain(yes: bool) -> (&'static str, String) {
    (if yes { "ok" } else { "false" }, String::new())
}

//! The load of the native client: create, mkdir, rename, delete and stat without pause, each worker in a directory
//! of its own.

use super::history::{Operation, Outcome, Verb};
use base::FsError;
use client::{CreateOptions, FileSystem};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

const FILES_MAX: usize = 400;
const DIRECTORIES_MAX: usize = 40;
/// The pause after a refusal. Without it, refusals would fill the history.
const REST: Duration = Duration::from_millis(50);

/// Workers at work.
pub struct Load {
    is_ending: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    workers: Vec<JoinHandle<Vec<Operation>>>,
}

impl Load {
    pub fn start(fs: &FileSystem, root: &str, workers: usize, pause: Duration) -> Self {
        let (is_ending, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let worker = |number: usize| Worker {
            fs: fs.clone(),
            root: root.to_owned(),
            name: format!("native-{number}"),
            history: Vec::new(),
            done: done.clone(),
            random: (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            names: 0,
            pause,
        };
        let workers =
            (0..workers).map(|number| tokio::spawn(worker(number).run(is_ending.clone()))).collect();
        Self { is_ending, done, workers }
    }

    /// Operations that were acknowledged so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub async fn end(self) -> anyhow::Result<Vec<Operation>> {
        self.is_ending.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for worker in self.workers {
            all.extend(worker.await?);
        }
        Ok(all)
    }
}

struct Worker {
    fs: FileSystem,
    root: String,
    name: String,
    history: Vec<Operation>,
    done: Arc<AtomicU64>,
    random: u64,
    names: u64,
    pause: Duration,
}

impl Worker {
    async fn run(mut self, is_ending: Arc<AtomicBool>) -> Vec<Operation> {
        let mut directories = vec![self.name.clone()];
        let mut files: Vec<String> = Vec::new();
        let first = self.name.clone();
        while !self.mkdir(first.clone()).await && !is_ending.load(Ordering::Relaxed) {}
        while !is_ending.load(Ordering::Relaxed) {
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
            let directory = directories[self.below(directories.len())].clone();
            let choice = self.below(100);
            if choice < 10 && directories.len() < DIRECTORIES_MAX {
                let made = self.fresh(&directory, "d");
                if self.mkdir(made.clone()).await {
                    directories.push(made);
                }
            } else if (choice < 40 && files.len() < FILES_MAX) || files.is_empty() {
                let made = self.fresh(&directory, "f");
                if self.create(made.clone()).await {
                    files.push(made);
                }
            } else if choice < 60 {
                let at = self.below(files.len());
                let (from, to) = (files.swap_remove(at), self.fresh(&directory, "m"));
                if self.rename(from, to.clone()).await {
                    files.push(to);
                }
            } else if choice < 75 {
                let at = self.below(files.len());
                let gone = files.swap_remove(at);
                self.delete(gone).await;
            } else {
                let which = files[self.below(files.len())].clone();
                self.stat(which).await;
            }
        }
        self.history
    }

    /// A name that was never used.
    fn fresh(&mut self, directory: &str, kind: &str) -> String {
        self.names += 1;
        format!("{directory}/{kind}{}", self.names)
    }

    fn below(&mut self, count: usize) -> usize {
        // xorshift64*: any worker's choices are its own.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % count
    }

    fn absolute(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    async fn mkdir(&mut self, path: String) -> bool {
        let (fs, at) = (self.fs.clone(), self.absolute(&path));
        self.record(Verb::Mkdir, path, None, async move { fs.mkdirs(&at).await.map(|()| true) }).await
    }

    async fn create(&mut self, path: String) -> bool {
        let (fs, at) = (self.fs.clone(), self.absolute(&path));
        let create = async move {
            fs.create(&at, &CreateOptions::default()).await?.close().await?;
            Ok(true)
        };
        self.record(Verb::Create, path, None, create).await
    }

    async fn rename(&mut self, from: String, to: String) -> bool {
        let (fs, source, target) = (self.fs.clone(), self.absolute(&from), self.absolute(&to));
        let rename = async move { fs.rename(&source, &target, false).await.map(|()| true) };
        self.record(Verb::Rename, from, Some(to), rename).await
    }

    async fn delete(&mut self, path: String) -> bool {
        let (fs, at) = (self.fs.clone(), self.absolute(&path));
        self.record(Verb::Delete, path, None, async move { fs.delete(&at, false).await }).await
    }

    async fn stat(&mut self, path: String) -> bool {
        let (fs, at) = (self.fs.clone(), self.absolute(&path));
        self.record(Verb::Stat, path, None, async move { fs.status(&at).await.map(|_| true) }).await
    }

    async fn record(
        &mut self,
        verb: Verb,
        path: String,
        to: Option<String>,
        call: impl Future<Output = client::Result<bool>>,
    ) -> bool {
        let began_ns = crate::monotonic_ns();
        let outcome = match call.await {
            Ok(true) => Outcome::Ok,
            Ok(false) => Outcome::Denied("false".into()),
            Err(client::Error::Fs(error @ (FsError::NotFound(_) | FsError::AlreadyExists(_)))) => {
                Outcome::Denied(error.to_string())
            }
            Err(error) => Outcome::Error(error.to_string()),
        };
        let is_ok = outcome == Outcome::Ok;
        self.history.push(Operation {
            verb,
            began_ns,
            ended_ns: crate::monotonic_ns(),
            outcome: outcome.clone(),
            path,
            to,
        });
        if is_ok {
            self.done.fetch_add(1, Ordering::Relaxed);
        } else if matches!(outcome, Outcome::Error(_)) {
            tokio::time::sleep(REST).await;
        }
        is_ok
    }
}

//! A `clover demo` of one's own, and commands against it.
#![allow(dead_code, reason = "each test uses a part")]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

static DEMOS: AtomicU32 = AtomicU32::new(0);

/// A cluster in a process of its own, killed and deleted at the end.
pub struct Demo {
    directory: PathBuf,
    process: Child,
    uri: String,
    /// The lines that it has printed.
    said: Said,
    superuser: String,
}

type Said = Arc<Mutex<Vec<String>>>;

pub struct Output {
    /// The bytes of both streams: standard output, and standard error after it.
    pub text: String,
    pub stdout: Vec<u8>,
    pub code: i32,
}

impl Demo {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A cluster with so many metadata servers.
    pub fn of_members(count: u32) -> Self {
        Self::with(&["--members", &count.to_string()])
    }

    /// A cluster with so many groups of so many metadata servers each.
    pub fn of_groups(groups: u32, members: u32) -> Self {
        Self::with(&["--groups", &groups.to_string(), "--members", &members.to_string()])
    }

    /// A cluster with so many data servers.
    pub fn of_data_servers(count: u32) -> Self {
        Self::with(&["--data-servers", &count.to_string()])
    }

    /// A cluster with these options of `clover demo`.
    pub fn with(words: &[&str]) -> Self {
        let number = DEMOS.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("clover-shell-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("local")).unwrap();
        // A group's ports are chosen before they are bound, and another test may take one in between.
        let started = (0..5).find_map(|_| {
            let _ = std::fs::remove_dir_all(directory.join("cluster"));
            spawn(&directory, words)
        });
        let (process, uri, said) = started.expect("the demo says when it is ready");
        let mut demo = Self { directory, process, uri, said, superuser: String::new() };
        demo.superuser = demo.must(&["-stat", "%u", "/"]).text.trim().to_owned();
        demo
    }

    /// The user who runs the test, and so is the superuser of the demo.
    pub fn superuser(&self) -> &str {
        &self.superuser
    }

    /// Kills everything as a power cut would, page cache aside, and starts it again.
    pub fn kill_and_start(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.start_again();
    }

    /// Asks it to end as ^C does, waits until it has ended, and returns its exit code and all that it has printed.
    pub fn interrupt(&mut self) -> (i32, Vec<String>) {
        self.signal("-INT");
        let code = self.process.wait().unwrap().code().unwrap_or(-1);
        // The reader of its lines has let go of them when it has read the last one.
        while Arc::strong_count(&self.said) > 1 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        (code, self.said())
    }

    /// Starts it in the same directory, without any options.
    pub fn start_again(&mut self) {
        self.start_again_with(&[]);
    }

    /// Starts it in the same directory, with these options.
    pub fn start_again_with(&mut self, words: &[&str]) {
        let started = spawn(&self.directory, words).expect("the demo says when it is ready");
        (self.process, self.uri, self.said) = started;
    }

    /// The lines that it has printed so far.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Sends the signal of this name to the demo, like the command `kill`.
    pub fn signal(&self, name: &str) {
        signal(&self.process, name);
    }

    pub fn uri(&self) -> String {
        self.uri.clone()
    }

    /// The directory in which commands run.
    pub fn local(&self) -> PathBuf {
        self.directory.join("local")
    }

    /// Runs a command whose clients know all metadata servers.
    pub fn run_for_group(&self, words: &[&str]) -> Output {
        let mut command = clover(&self.local());
        command.args(words).env("HADOOP_CONF_DIR", self.directory.join("cluster/conf"));
        run(command)
    }

    /// Runs `clover fs` as a user, or as the superuser.
    pub fn fs(&self, user: Option<&str>, words: &[&str]) -> Output {
        let mut command = clover(&self.local());
        command.args(["fs", "-fs", &self.uri]).args(words);
        match user {
            Some(user) => command.env("HADOOP_USER_NAME", user),
            None => command.env_remove("HADOOP_USER_NAME"),
        };
        run(command)
    }

    /// Runs [`fs`](Self::fs) by the superuser, and fails the test if the command fails.
    pub fn must(&self, words: &[&str]) -> Output {
        let output = self.fs(None, words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.text);
        output
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// `None`: it has ended before it was ready.
fn spawn(directory: &Path, words: &[&str]) -> Option<(Child, String, Said)> {
    let mut command = clover(directory);
    command.args(["demo", "--dir", "cluster", "--rpc-port", "0", "--http-port", "0"]).args(words);
    // Small blocks, so that small files have several.
    command.args(["--set", "dfs.namenode.fs-limits.min-block-size=512"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let uri = loop {
        let Some(line) = lines.next() else {
            process.wait().unwrap();
            return None;
        };
        let line = line.unwrap();
        if let Some(uri) = line.strip_prefix("ready ") {
            break uri.to_owned();
        }
    };
    // The rest is read, so that it never waits for a reader.
    let said = Said::default();
    let reader = said.clone();
    std::thread::spawn(move || lines.for_each(|line| reader.lock().unwrap().push(line.unwrap())));
    Some((process, uri, said))
}

/// Sends a signal, as `-STOP`. A process that is to stop has stopped when this returns: on a busy machine it may answer for a while before.
pub fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
    while name == "-STOP" && !is_stopped(process.id()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Whether all threads of a process stand still, by the letter behind the name in their files `stat`.
fn is_stopped(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.map(|thread| thread.unwrap().path().join("stat")).all(|file| {
        // A thread that has ended meanwhile stands still too.
        let stat = std::fs::read_to_string(file).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('T'))
    })
}

/// The program, in a directory and without the settings of whoever runs the test.
pub fn clover(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clover"));
    command.current_dir(directory).stdin(Stdio::null());
    for variable in ["HADOOP_CONF_DIR", "HADOOP_USER_NAME", "CLOVER_LOG"] {
        command.env_remove(variable);
    }
    command
}

pub fn run(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Output { text, stdout: output.stdout, code: output.status.code().unwrap_or(-1) }
}

/// Splits a command line at spaces that are not between single quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

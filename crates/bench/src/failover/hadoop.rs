//! The load of a stock Hadoop client: the program of the fault stories, which writes its own history.

use super::{
    history::{self, Operation},
    scene::Scene,
};
use anyhow::{Context, ensure};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

const OPTIONS: [&str; 5] = [
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
];

pub struct Load {
    process: Child,
    history: PathBuf,
    log: PathBuf,
}

impl Load {
    pub fn start(
        scene: &Scene,
        conf: &Path,
        directory: &Path,
        root: &str,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let classes = directory.join("java");
        compile(&scene.java, &scene.hadoop, &classes)?;
        let (history, log) = (directory.join("client.tsv"), directory.join("client.log"));
        let class_path = format!("{}:{}:{}/*", conf.display(), classes.display(), scene.hadoop.display());
        let output = File::create(&log)?;
        let process = Command::new("java")
            .args(OPTIONS)
            .args(["-cp", &class_path, "LoadClient", "load", root])
            .arg(&history)
            // Seed, then threads of each kind, then the rest between two operations, then threads of two further kinds.
            .args(["1", &scene.threads.to_string(), "0", "0", "0", &pause.as_micros().to_string(), "0", "0"])
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("starting java")?;
        Ok(Self { process, history, log })
    }

    /// Operations that were acknowledged, as far as they are written.
    pub fn done(&self) -> u64 {
        let text = std::fs::read(&self.history).unwrap_or_default();
        text.windows(4).filter(|at| at == b"\tok\t").count() as u64
    }

    pub fn end(mut self) -> anyhow::Result<Vec<Operation>> {
        drop(self.process.stdin.take());
        let status = self.process.wait()?;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        ensure!(status.success() && !said.contains("broke:"), "the client failed ({status}): {said}");
        history::read(&self.history)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn compile(sources: &Path, jars: &Path, classes: &Path) -> anyhow::Result<()> {
    ensure!(jars.is_dir(), "{} is not there: `make setup-test` lays Hadoop's client out", jars.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(sources).with_context(|| format!("reading {}", sources.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "java") {
            files.push(path);
        }
    }
    let output = Command::new("javac")
        .args([
            "-nowarn",
            "-XDsuppressNotes",
            "--release",
            "11",
            "-cp",
            &format!("{}/*", jars.display()),
            "-d",
        ])
        .arg(classes)
        .args(&files)
        .output()
        .context("starting javac")?;
    ensure!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

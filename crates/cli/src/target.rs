//! The file system on which a command works.

use crate::EVERYWHERE;
use client::Config;
use std::path::PathBuf;

/// The file system on which a command works if neither an option nor a configuration names one.
pub const DEFAULT_FS: &str = "hdfs://127.0.0.1:8020";

#[derive(Debug, clap::Args)]
pub struct Target {
    /// The file system, as hdfs://127.0.0.1:8020 or a name service; else fs.defaultFS of the configuration.
    #[arg(long, global = true, value_name = "URI", help_heading = EVERYWHERE)]
    pub fs: Option<String>,
    /// A directory with core-site.xml and hdfs-site.xml, or one such file; else HADOOP_CONF_DIR.
    #[arg(long, global = true, value_name = "PATH", help_heading = EVERYWHERE)]
    conf: Vec<PathBuf>,
    /// Set a Hadoop property, as dfs.replication=2.
    #[arg(short = 'D', global = true, value_name = "KEY=VALUE", help_heading = EVERYWHERE)]
    define: Vec<String>,
}

/// The advice for a person when no server was reached.
pub fn remedy(error: &client::Error) -> Option<String> {
    if matches!(error, client::Error::NotServing { .. }) {
        return Some(
            "`--fs hdfs://HOST:PORT` names another one, `--fs hdfs://GROUP` all that the configuration knows"
                .to_owned(),
        );
    }
    let client::Error::Unreachable { target, .. } = error else { return None };
    let authority = target.strip_prefix("hdfs://").unwrap_or(target);
    let is_bare = !authority.contains(':') && !authority.contains('.');
    Some(match is_bare {
        true => format!(
            "Is it running? If {authority} is the name of a group, HADOOP_CONF_DIR or --conf must lead to the configuration that names \
             its servers"
        ),
        false => "Is it running? `--fs hdfs://HOST:PORT` names another one".to_owned(),
    })
}

impl Target {
    /// The files named, or those of the environment, and then what `-D` sets.
    ///
    /// # Errors
    /// A file cannot be read or understood, or what follows `-D` is no KEY=VALUE.
    pub fn configuration(&self) -> anyhow::Result<Config> {
        let mut config = match &*self.conf {
            [] => Config::from_environment()?,
            [dir] if dir.is_dir() => Config::from_dir(dir)?,
            _ => Config::new(),
        };
        for file in self.conf.iter().filter(|path| !path.is_dir()) {
            config.read_file(file)?;
        }
        for definition in &self.define {
            let Some((key, value)) = definition.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                anyhow::bail!("-D {definition}: is not KEY=VALUE, as in -D dfs.replication=2");
            };
            config.set(key, value);
        }
        Ok(config)
    }

    /// The file system that is meant: the one named, else the configuration's, else this machine's.
    pub fn uri(&self, config: &Config) -> String {
        let configured = || config.get("fs.defaultFS").or_else(|| config.get("fs.default.name"));
        self.fs.clone().or_else(configured).unwrap_or_else(|| DEFAULT_FS.to_owned())
    }
}

//! The options and properties that name the file with the cluster's secret, which proves orders.

use crate::{
    config::{self, settings::Settings},
    user,
};
use anyhow::{Context, bail};
use env::Env;
use metad::peers::Secret;
use std::path::{Path, PathBuf};

/// The property of Hadoop's configuration files that names a file with the secret.
pub const PROPERTY: &str = "clover.secret.file";

/// The options of a command line that name the file with the secret.
#[derive(Debug, clap::Args)]
pub struct ProvedBy {
    /// The file with the cluster's secret, by which an order is proved: the members' secret_file.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "config")]
    pub secret_file: Option<PathBuf>,
    /// The configuration of a metadata server on this machine: an order is proved by its secret.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The ways to the secret, the first that is named first.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The secret itself.
    pub known: Option<Secret>,
    /// A file with the secret and nothing else.
    pub file: Option<PathBuf>,
    /// The configuration of a metadata server on this machine.
    pub config: Option<PathBuf>,
    /// The path of that file from [`PROPERTY`]; `file` has precedence.
    pub property: Option<PathBuf>,
}

impl Source {
    /// The secret, from the first of the places that is named.
    ///
    /// # Errors
    /// No place is named, the file cannot be read or is open to others, or it holds no secret.
    pub fn read(&self) -> anyhow::Result<Secret> {
        match self {
            Self { known: Some(secret), .. } => Ok(secret.clone()),
            Self { file: Some(file), .. } => of_file("--secret-file", file),
            Self { config: Some(config), .. } => of_member(config),
            Self { property: Some(file), .. } => of_file(PROPERTY, file),
            _ => bail!(
                "an order needs a proof of the cluster's secret: name the members' secret_file with --secret-file FILE or, \
                 on the machine of a member, its configuration with --config FILE. {PROPERTY} in hdfs-site.xml names a \
                 file with the secret for good"
            ),
        }
    }
}

fn of_file(named_by: &str, file: &Path) -> anyhow::Result<Secret> {
    let bytes = std::fs::read(file).with_context(|| format!("{named_by}: reading {}", file.display()))?;
    Secret::new(bytes.trim_ascii()).with_context(|| {
        format!("{named_by}: {} has less than the {} bytes of a secret", file.display(), Secret::BYTES_MIN)
    })
}

/// The secret of a member on this machine: the content of its secret file, or the secret in its directory.
fn of_member(file: &Path) -> anyhow::Result<Secret> {
    let mut settings = Settings::defaults(config::META);
    settings.read_file(file)?;
    let member = config::meta::config(&settings, &user::of_this_process()?)?;
    let env = Env::production();
    let cluster = metad::read_cluster(&env, &member.name_directory).with_context(|| {
        format!("--config: {}: this wants the rights of who runs the server", member.name_directory.display())
    })?;
    let secret = metad::format::secret(&env, member.group.secret.as_deref(), &cluster);
    secret.map_err(|(path, what)| anyhow::anyhow!("{}: {what}", path.display()))?.with_context(|| {
        format!(
            "{} keeps no secret, for the cluster was made by an early version: put one into a file, and name it in \
             secret_file of each member",
            member.name_directory.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gone at the end of a test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(of: &str) -> Self {
            let path = std::env::temp_dir().join(format!("clover-{of}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_secret_is_read_from_where_it_is_named_and_who_names_nothing_is_told_how() {
        let directory = Directory::new("named-secret");
        let (named, configured) = (directory.0.join("named"), directory.0.join("configured"));
        std::fs::write(&named, "one of thirty-two letters\n").unwrap();
        std::fs::write(&configured, "another of as many letters").unwrap();
        let property = Source { property: Some(configured), ..Source::default() };
        let both = Source { file: Some(named), ..property.clone() };
        assert!(both.read().unwrap() == Secret::new(b"one of thirty-two letters").unwrap());
        assert!(property.read().unwrap() == Secret::new(b"another of as many letters").unwrap());

        let error = Source::default().read().unwrap_err().to_string();
        assert!(error.contains("--secret-file FILE") && error.contains("--config FILE"), "{error}");
        let short = directory.0.join("short");
        std::fs::write(&short, "short").unwrap();
        let error = Source { file: Some(short), ..Source::default() }.read().unwrap_err().to_string();
        assert!(error.contains("has less than the 16 bytes of a secret"), "{error}");
    }

    #[test]
    fn the_secret_of_a_member_is_in_its_directory_or_in_its_file() {
        let directory = Directory::new("member-secret");
        let (env, name) = (Env::production(), directory.0.join("name"));
        let address = "127.0.0.1".parse().unwrap();
        let made = metad::format(&env, &name, None, address, &metad::GroupConfig::default()).unwrap();
        let file = directory.0.join("meta.toml");
        std::fs::write(&file, format!("name_dir = '{}'\n", name.display())).unwrap();
        let source = Source { config: Some(file.clone()), ..Source::default() };
        assert!(source.read().unwrap() == made.secret.unwrap());

        let own = directory.0.join("own");
        std::fs::write(&own, "one of thirty-two letters\n").unwrap();
        std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!("name_dir = '{}'\nsecret_file = '{}'\n", name.display(), own.display());
        std::fs::write(&file, text).unwrap();
        assert!(source.read().unwrap() == Secret::new(b"one of thirty-two letters").unwrap());
    }
}

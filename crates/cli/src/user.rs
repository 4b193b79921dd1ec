//! The user that this process runs as.

/// The name of the user that runs this process, or the one that `HADOOP_USER_NAME` names in its place, as Hadoop's servers take it.
///
/// # Errors
/// The user has no name, and the variable is not set.
pub fn of_this_process() -> anyhow::Result<String> {
    Ok(env::users::of_process()?)
}

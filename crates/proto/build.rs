//! Compiles the protocol definitions in `protos/`, and derives from the same descriptors the tables that
//! say which fields of a message are required (prost does not refuse a message that lacks one).

use prost::Message as _;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("protos");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", directory.display());

    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let descriptors = protox::compile(&files, [&directory])?;
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    prost_build::Config::new().bytes(["."]).enable_type_names().compile_fds(descriptors)?;
    Ok(())
}

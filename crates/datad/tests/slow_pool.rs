//! The names of a large pool take minutes to read. The other pools go on meanwhile.

mod played;

use datad::DataServer;
use env::{
    Disk, Env, Lock, OpenMode,
    disk::{File, Space},
};
use parking_lot::{Condvar, Mutex};
use played::{Metadata, config, eventually, register_again, serve, store_block};
use proto::hdfs::datanode::received_deleted_block_info_proto::BlockStatus;
use std::{io, path::Path, sync::Arc};

const QUICK: &str = "BP-77-127.0.0.1-1700000000000";
const SLOW: &str = "BP-78-127.0.0.1-1700000000000";

/// A disk on which nobody can read a directory of one pool before the test says so.
struct SlowDisk {
    disk: Arc<dyn Disk>,
    is_read: Mutex<bool>,
    released: Condvar,
}

impl SlowDisk {
    fn release(&self) {
        *self.is_read.lock() = true;
        self.released.notify_all();
    }
}

impl Disk for SlowDisk {
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if path.iter().any(|part| part == SLOW) {
            let mut is_read = self.is_read.lock();
            self.released.wait_while(&mut is_read, |is_read| !*is_read);
        }
        self.disk.list(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.disk.open(path, mode)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.create_directory(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_directory(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_pools_do_not_wait_for_one_that_is_being_read() {
    let root = tempfile::tempdir().unwrap();
    let [of_slow, of_quick] = [SLOW, QUICK].map(|pool| Arc::new(Metadata::of("CID-one", pool)));
    let all = [&of_slow, &of_quick].map(|metadata| serve(metadata, "127.0.0.1:0"));
    let production = Env::production();
    let disk = Arc::new(SlowDisk {
        disk: production.disk.clone(),
        is_read: Mutex::new(false),
        released: Condvar::new(),
    });
    let env = Env { disk: disk.clone(), ..production };
    let server = DataServer::start(env, config(root.path(), &all.each_ref())).await.unwrap();

    // The slow one's metadata server stands first in the configuration.
    eventually("the quick pool is served", || !of_quick.log.lock().full.is_empty()).await;
    let reading = root.path().join(format!("data/current/{SLOW}/current/finalized"));
    eventually("the slow one is being read", || reading.is_dir()).await;
    let beats = || of_quick.log.lock().heartbeats.len();
    let before = beats();
    eventually("heartbeats go on", || beats() > before + 3).await;
    store_block(&server, QUICK, 5);
    eventually("a block is told", || of_quick.changed(5, BlockStatus::Received)).await;
    // A further handshake of a pool that is served.
    of_quick.log.lock().commands.push(register_again());
    eventually("a second full report", || of_quick.log.lock().full.len() > 1).await;
    assert!(of_slow.log.lock().registered.is_empty());

    disk.release();
    eventually("the slow pool is served", || !of_slow.log.lock().full.is_empty()).await;
    server.shutdown().await;
}

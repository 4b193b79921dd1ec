//! The cables between members, which a test can pull out and put back, and those of strangers from elsewhere.

use super::Cluster;
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

/// The members that are cut off from everybody else. A pulled cable is silent: nothing is reset, and nothing arrives.
#[derive(Clone, Default)]
pub struct Cables {
    pulled: Arc<Mutex<BTreeSet<u32>>>,
}

/// The offset, in the first frame of a connection, of the number of the member that connects.
const MEMBER_AT: usize = 8 + 8 + 2 + 2 + 2 + 4;

impl Cables {
    pub fn pull(&self, member: u32) {
        self.pulled.lock().unwrap().insert(member);
    }

    pub fn plug_in(&self, member: u32) {
        self.pulled.lock().unwrap().remove(&member);
    }

    fn is_through(&self, one: u32, other: u32) -> bool {
        let pulled = self.pulled.lock().unwrap();
        !pulled.contains(&one) && !pulled.contains(&other)
    }

    /// An address at which others reach `member`, which listens on `target`, as long as the cables are in.
    pub fn lay(&self, member: u32, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cables = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let cables = cables.clone();
                std::thread::spawn(move || cables.carry(member, target, stream));
            }
        });
        address
    }

    fn carry(&self, to: u32, target: SocketAddr, mut near: TcpStream) -> Option<()> {
        let mut first = [0; MEMBER_AT + 4];
        near.read_exact(&mut first).ok()?;
        let from = u32::from_le_bytes(first[MEMBER_AT..].try_into().unwrap());
        while !self.is_through(from, to) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut far = TcpStream::connect(target).ok()?;
        far.write_all(&first).ok()?;
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (back, cables) = ((far.try_clone().ok()?, near.try_clone().ok()?), self.clone());
        std::thread::spawn(move || cables.pump(from, to, back.0, back.1));
        self.pump(from, to, near, far)
    }

    fn pump(&self, from: u32, to: u32, mut near: TcpStream, mut far: TcpStream) -> Option<()> {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = near.read(&mut bytes).unwrap_or(0);
            while !self.is_through(from, to) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if count == 0 || far.write_all(&bytes[..count]).is_err() {
                let _ = far.shutdown(std::net::Shutdown::Both);
                let _ = near.shutdown(std::net::Shutdown::Both);
                return None;
            }
        }
    }
}

impl Cluster {
    /// An address from which each connection goes on to the member as if it came from `ip`.
    pub async fn address_from(&self, ip: Ipv4Addr, member: u32) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, member) = (listener.local_addr().unwrap(), self.address(member));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass_on(near, ip, member));
            }
        });
        address
    }
}

async fn pass_on(mut near: tokio::net::TcpStream, ip: Ipv4Addr, to: SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((ip, 0).into()).unwrap();
    let mut far = socket.connect(to).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}

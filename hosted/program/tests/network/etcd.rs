//! A server of etcd for one test, and one that only claims to be.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Access;

use crate::PATIENCE;

/// A server of etcd, ended with its data when it is dropped.
pub(crate) struct Etcd {
    server: Option<Child>,
    data: PathBuf,
    ports: [u16; 2],
}

impl Etcd {
    /// A server, or none on a machine without etcd: there `REQUIRE_ETCD` must not be set.
    pub(crate) fn start() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("etcd-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // In memory, where there is such a place: a disk that others keep busy holds up each write
        // for longer than a node waits for an answer.
        let memory = PathBuf::from("/dev/shm");
        let is_writable = rustix::fs::access(&memory, Access::WRITE_OK).is_ok();
        let folder = if is_writable { memory } else { env!("CARGO_TARGET_TMPDIR").into() };
        let data = folder.join(format!("weft-{name}"));
        let mut etcd = Self { server: None, data, ports: free_ports() };
        if !etcd.run() {
            assert!(std::env::var_os("REQUIRE_ETCD").is_none(), "install etcd-server");
            eprintln!("not run: there is no etcd here; on Debian: apt-get install etcd-server");
            return None;
        }
        Some(etcd)
    }

    /// Where clients reach it.
    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("it runs");
            server.wait().expect("it was killed");
        }
    }

    /// Runs again with its data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "it ran before");
    }

    /// Runs again without its data.
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.data).expect("its own folder");
        assert!(self.run(), "it ran before");
    }

    /// Starts the server, and waits until it is healthy: before that it accepts connections and
    /// does not answer.
    fn run(&mut self) -> bool {
        let [client, peer] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let started = Command::new("etcd")
            .arg("--data-dir")
            .arg(&self.data)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error"])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(server) = started else { return false };
        self.server = Some(server);
        let began = Instant::now();
        while !self.is_healthy() {
            assert!(began.elapsed() < PATIENCE, "etcd does not start");
            thread::park_timeout(Duration::from_millis(20));
        }
        true
    }

    /// Whether it says that it is: it has a leader, and takes writes.
    fn is_healthy(&self) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports[0]))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            std::io::Result::Ok(answer)
        };
        ask().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
        // Left out by a test that failed early.
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// Ports that were free; etcd takes none of the system's choice.
fn free_ports() -> [u16; 2] {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let listeners = [bind(), bind()];
    listeners.map(|it| it.local_addr().expect("it is bound").port())
}

/// A server that sends `answer` to each request, or nothing if it is empty; its address.
pub(crate) fn impostor(answer: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if answer.is_empty() {
                silent.push(stream);
                continue;
            }
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

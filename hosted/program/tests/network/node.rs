//! One node of a meeting, and its events.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use weft::bootstrap::{
    Addresses, AnnouncedIncarnation, Bootstrap, BootstrapEvent, Hello, Key, Meeting,
    NetworkBootstrap, News, Refusal, Timing, VERSION,
};
use weft::cluster::FabricKind;
use weft::core::ids::Incarnation;
use weft::signing::PublicKey;

use crate::PATIENCE;

/// A node that meets others.
pub(crate) struct Node {
    pub(crate) bootstrap: NetworkBootstrap,
    events: Receiver<BootstrapEvent>,
}

/// The hello of a node of the tests.
pub(crate) fn hello(rank: u16) -> Hello {
    let (cluster, fabric) = ("weft".to_owned(), FabricKind::Verbs);
    Hello { version: VERSION, cluster, instance: 0, layout: 7, dirnet: 5, script: 0, fabric, rank }
}

/// A new key.
pub(crate) fn key() -> Key {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("key-{}-{count}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let key = Key::create(&path).expect("a new file");
    fs::remove_file(&path).expect("it was just made");
    key
}

impl Node {
    /// A node that calls those at `others`, which have the ranks below its own.
    pub(crate) fn start(hello: Hello, others: &[SocketAddr], key: Key, timing: Timing) -> Self {
        let mut addresses: Vec<String> = others.iter().map(SocketAddr::to_string).collect();
        assert_eq!(usize::from(hello.rank), addresses.len());
        // Its own address, and those of the nodes above it, which it never calls.
        addresses.resize(3, "127.0.0.1:0".to_owned());
        Self::begin(hello, Meeting { addresses: Addresses::Listed(addresses), key, timing })
    }

    /// A node that registers with the etcd at `endpoint`.
    pub(crate) fn registered(hello: Hello, endpoint: &str, key: Key) -> Self {
        let (endpoints, own) = (vec![endpoint.to_owned()], "127.0.0.1:0".to_owned());
        let addresses = Addresses::Registered { endpoints, own };
        Self::begin(hello, Meeting { addresses, key, timing: Timing::default() })
    }

    fn begin(hello: Hello, meeting: Meeting) -> Self {
        let (sender, events) = channel();
        let sink = move |event| {
            // The test is over.
            let _ = sender.send(event);
        };
        let bootstrap = NetworkBootstrap::start(hello, 3, meeting, sink).expect("a free port");
        Self { bootstrap, events }
    }

    /// Node 0 with this key.
    pub(crate) fn first(key: &Key) -> Self {
        Self::start(hello(0), &[], key.clone(), Timing::default())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.bootstrap.address()
    }

    pub(crate) fn next(&self) -> BootstrapEvent {
        self.events.recv_timeout(PATIENCE).expect("an event in time")
    }

    /// The next event of any peer.
    #[track_caller]
    pub(crate) fn news(&self) -> News {
        match self.next() {
            BootstrapEvent::Heard { news, .. } => news,
            other @ BootstrapEvent::Refused { .. } => panic!("{other:?}"),
        }
    }

    /// The next refusal of any peer.
    #[track_caller]
    pub(crate) fn refusal(&self) -> Refusal {
        match self.next() {
            BootstrapEvent::Refused { reason, .. } => reason,
            other @ BootstrapEvent::Heard { .. } => panic!("{other:?}"),
        }
    }

    pub(crate) fn announce(&mut self, incarnation: u32) {
        self.bootstrap.announce(AnnouncedIncarnation {
            incarnation: Incarnation(incarnation),
            boot: Incarnation(incarnation),
            process: None,
            memory: 1,
            key: Some(Self::key_of(incarnation)),
        });
    }

    /// The public key of a node of these tests in that incarnation.
    pub(crate) fn key_of(incarnation: u32) -> PublicKey {
        PublicKey([u8::try_from(incarnation).expect("a small number"); 32])
    }

    /// Waits until a peer was met that runs in this incarnation.
    #[track_caller]
    pub(crate) fn await_alive(&self, incarnation: u32) {
        let met = self.news();
        assert!(matches!(met, News::Met(_)), "{met:?}");
        let alive = self.news();
        let key = Some(Self::key_of(incarnation));
        let is_it = matches!(&alive, News::Alive(announced)
            if announced.incarnation.0 == incarnation && announced.key == key);
        assert!(is_it, "{alive:?}");
    }
}

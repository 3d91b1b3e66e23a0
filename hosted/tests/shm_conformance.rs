//! The conformance suite over shared memory, each endpoint watched through a process that can die.

use std::process::{Child, Command, Stdio};

use weft::process::Pidfd;
use weft::shm::{NodeMemory, OwnMemory, RemoteMemory, ShmFabric, Wait};
use weft_core::fabric::conformance::{Harness, PEERS, layout};
use weft_core::fabric::{Fabric, Layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

struct Host {
    layout: Layout,
    memories: [NodeMemory; PEERS],
    ends: Vec<ShmFabric>,
    processes: Vec<Child>,
    incarnations: [Incarnation; PEERS],
    began: std::time::Instant,
}

fn process() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
}

impl Host {
    fn new() -> Self {
        let layout = layout();
        let memories = [0, 1, 2].map(|_| NodeMemory::create("suite", &layout).unwrap());
        let incarnations = [Incarnation(1); PEERS];
        let mut host = Self {
            ends: Vec::new(),
            processes: (0..PEERS).map(|_| process()).collect(),
            memories,
            layout,
            incarnations,
            began: std::time::Instant::now(),
        };
        for me in 0..PEERS {
            let end = host.end(me);
            host.ends.push(end);
        }
        for me in 0..PEERS {
            for peer in (0..PEERS).filter(|&peer| peer != me) {
                host.connect(me, peer);
                host.ends[me].admit(Peer(peer as u16), Incarnation(1)).unwrap();
            }
        }
        host
    }

    fn end(&self, me: usize) -> ShmFabric {
        let own = OwnMemory::map(&self.layout, &self.memories[me].grant_owner().unwrap()).unwrap();
        ShmFabric::new(
            Peer(me as u16),
            self.incarnations[me],
            self.layout.clone(),
            own,
            Wait::Yield,
        )
    }

    fn connect(&mut self, me: usize, peer: usize) {
        let grant = self.memories[peer].grant(&self.layout, Peer(me as u16)).unwrap();
        let memory = RemoteMemory::map(&self.layout, Peer(me as u16), &grant).unwrap();
        let process = Pidfd::from_child(&self.processes[peer]).unwrap();
        self.ends[me].connect(Peer(peer as u16), memory, Some(process));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Harness for Host {
    type Fabric = ShmFabric;

    fn at(&mut self, peer: Peer) -> &mut ShmFabric {
        &mut self.ends[peer.index()]
    }

    fn now(&mut self) -> Instant {
        Instant(self.began.elapsed().as_nanos() as u64)
    }

    fn lose(&mut self, peer: Peer) {
        self.processes[peer.index()].kill().unwrap();
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        let me = peer.index();
        let _ = self.processes[me].kill();
        self.processes[me].wait().unwrap();
        self.processes[me] = process();
        self.incarnations[me] = self.incarnations[me].next();
        self.ends[me] = self.end(me);
        for other in (0..PEERS).filter(|&other| other != me) {
            self.connect(me, other);
            self.connect(other, me);
        }
        self.incarnations[me]
    }
}

weft_core::fabric_conformance!(Host::new());

//! The endpoints of the conformance suite over shared memory, each watched through a process that
//! can die. For the tests and for `weft conform`.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use weft_core::fabric::conformance::{Harness, PEERS, layout};
use weft_core::fabric::{Fabric, Layout};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use super::{NodeMemory, OwnMemory, RemoteMemory, SegmentError, ShmFabric, Wait};
use crate::clock::now_ns;
use crate::process::{Pidfd, ProcessError};

/// Why there are no endpoints.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No memory.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A process cannot be watched.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// No process was started that an endpoint is watched through.
    #[error("`cat` cannot be started: {0}")]
    Start(#[source] io::Error),
}

/// Three endpoints in this process, over memory of their own.
#[derive(Debug)]
pub struct Host {
    layout: Layout,
    memories: Vec<NodeMemory>,
    ends: Vec<ShmFabric>,
    processes: Vec<Child>,
    incarnations: [Incarnation; PEERS],
}

/// A process that ends when it is killed, or when this one has ended.
fn process() -> Result<Child, HostError> {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(HostError::Start)
}

impl Host {
    /// Endpoints that have admitted each other.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn new() -> Result<Self, HostError> {
        let layout = layout();
        let memories = (0..PEERS).map(|_| NodeMemory::create("suite", &layout));
        let mut host = Self {
            memories: memories.collect::<Result<_, _>>()?,
            ends: Vec::new(),
            processes: Vec::new(),
            layout,
            incarnations: [Incarnation(1); PEERS],
        };
        for me in 0..PEERS {
            host.processes.push(process()?);
            let end = host.end(me)?;
            host.ends.push(end);
        }
        for me in 0..PEERS {
            for peer in (0..PEERS).filter(|&peer| peer != me) {
                host.connect(me, peer)?;
                let admitted = host.ends[me].admit(Peer(peer as u16), Incarnation(1));
                admitted.expect("nothing was fenced");
            }
        }
        Ok(host)
    }

    /// Two of the endpoints.
    ///
    /// # Panics
    /// When they are one, or there are not as many.
    pub fn both(&mut self, one: usize, other: usize) -> (&mut ShmFabric, &mut ShmFabric) {
        let ends = self.ends.get_disjoint_mut([one, other]);
        let [one, other] = ends.expect("two endpoints of the suite");
        (one, other)
    }

    fn end(&self, me: usize) -> Result<ShmFabric, HostError> {
        let own = OwnMemory::map(&self.layout, &self.memories[me].grant_owner()?)?;
        let (peer, incarnation) = (Peer(me as u16), self.incarnations[me]);
        Ok(ShmFabric::new(peer, incarnation, self.layout.clone(), own, Wait::Yield))
    }

    fn connect(&mut self, me: usize, peer: usize) -> Result<(), HostError> {
        let grant = self.memories[peer].grant(&self.layout, Peer(me as u16))?;
        let memory = RemoteMemory::map(&self.layout, Peer(me as u16), &grant)?;
        let process = Pidfd::from_child(&self.processes[peer])?;
        self.ends[me].connect(Peer(peer as u16), memory, Some(process));
        Ok(())
    }

    fn begin_again(&mut self, me: usize) -> Result<(), HostError> {
        self.end_process(me);
        self.processes[me] = process()?;
        self.incarnations[me] = self.incarnations[me].next();
        self.ends[me] = self.end(me)?;
        for other in (0..PEERS).filter(|&other| other != me) {
            self.connect(me, other)?;
            self.connect(other, me)?;
        }
        Ok(())
    }

    fn end_process(&mut self, me: usize) {
        // One that has ended already is what is wanted.
        let _ = self.processes[me].kill();
        let _ = self.processes[me].wait();
    }
}

/// Set when dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for me in 0..self.processes.len() {
            self.end_process(me);
        }
    }
}

/// The suite tells failure by panics; those of the harness name what the system refused.
impl Harness for Host {
    type Fabric = ShmFabric;

    fn at(&mut self, peer: Peer) -> &mut ShmFabric {
        &mut self.ends[peer.index()]
    }

    fn now(&mut self) -> Instant {
        Instant(now_ns())
    }

    /// From a thread each.
    fn observe(
        &mut self,
        (one, other): (Peer, Peer),
        times: u32,
        mut act: impl FnMut(&mut ShmFabric, Instant) + Send,
        mut look: impl FnMut(&mut ShmFabric) + Send,
    ) {
        let (acting, looking) = self.both(one.index(), other.index());
        let (started, ended) = (Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                // Also when `act` panics: the other thread must not look forever.
                let _end = SetOnDrop(&ended);
                started.wait();
                (0..times).for_each(|_| act(acting, Instant(now_ns())));
            });
            started.wait();
            for turn in 0_u32.. {
                look(looking);
                if turn >= times && ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
    }

    fn lose(&mut self, peer: Peer) {
        let process = &mut self.processes[peer.index()];
        process.kill().expect("a process that was started ends");
        // How soon a killed process is dead is the scheduler's, and no rule's.
        process.wait().expect("it is a child of this process");
    }

    fn revive(&mut self, peer: Peer) -> Incarnation {
        let begun = self.begin_again(peer.index());
        begun.unwrap_or_else(|error| panic!("a new endpoint: {error}"));
        self.incarnations[peer.index()]
    }
}

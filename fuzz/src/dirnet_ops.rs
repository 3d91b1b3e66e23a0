//! A component and an I'm-Alive Task, and whatever others say to them.
//!
//! ```text
//! each operation: 66 bytes │ what │ from whom │ 64 bytes: a frame, a heartbeat, a span of time │
//! ```
//!
//! Nothing may panic, more outputs than an input can have included. Since a random frame is hardly
//! ever one of the present term and of a living member, most are made to be: what is in them stays
//! as it came. What decodes must encode to a frame that decodes to the same.

use weft_core::checksum::crc32c;
use weft_core::dirnet::{
    BEAT_LEN, Beat, Component, ComponentIncarnation, Config, FRAME_LEN, Frame, ImAliveTask, Kept,
    Limits, Members, Output, Part, Post, Profile, Progress, RestartLimit, Seat, Spawned, Timing,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

const NODES: u16 = 4;
const ME: Rank = Rank(0);
const OPS_MAX: usize = 200;
const OP_LEN: usize = 2 + FRAME_LEN;

struct Node {
    component: Component<4, 2>,
    task: ImAliveTask,
    now: Instant,
    heard: u32,
}

impl Node {
    fn new() -> Self {
        let profile = Profile::new(Timing::LAN).expect("it keeps the rules");
        let limit = |s: u64| RestartLimit { max: 3, within: Duration::from_millis(s * 1_000) };
        let limits = Limits { restarts: limit(10), resets: limit(100) };
        let parts = [Part::Manager, Part::Backup, Part::Backup, Part::Agent];
        let config = Config::new(ME, &parts, profile, 1, limits).expect("legal");
        let (now, boot) = (Instant(0), Incarnation(1));
        let others: Members = (0..NODES).map(Rank).filter(|rank| *rank != ME).collect();
        let incarnation = ComponentIncarnation { boot, generation: 0 };
        let mut node = Self {
            component: Component::new(now, config, incarnation, 2, Kept::default()),
            task: ImAliveTask::new(Post { me: ME, boot, others, profile }),
            now,
            heard: 0,
        };
        node.drain();
        node
    }

    /// Carries out what the two want, as far as it comes back to them.
    fn drain(&mut self) {
        let mut fences = Vec::new();
        while let Some(output) = self.component.poll_output() {
            if let Output::Fence { node, boot } = output {
                fences.push((node, boot));
            }
        }
        for (node, boot) in fences {
            self.component.handle_fenced(self.now, node, boot);
            while self.component.poll_output().is_some() {}
        }
        let mut is_to_spawn = false;
        while let Some(output) = self.task.poll_output() {
            is_to_spawn |= matches!(output, Output::Spawn { .. });
        }
        if is_to_spawn {
            self.task.handle_spawned(self.now, Spawned::Runs);
            while self.task.poll_output().is_some() {}
        }
    }

    fn step(&mut self, what: u8, from: u8, bytes: &[u8; FRAME_LEN]) {
        let from = Rank(u16::from(from) % (NODES + 1));
        match what % 8 {
            0 => self.hear(from, Frame::decode(bytes).ok()),
            1..4 => self.hear(from, self.likely(from, Seat::Component, bytes)),
            4 => self.hear(from, self.likely(from, Seat::ImAliveTask, bytes)),
            5 => self.beat(from, bytes),
            6 => self.pass(u64::from(bytes[0]) << (bytes[1] % 24)),
            _ => self.component.handle_gone(self.now, from),
        }
        self.drain();
    }

    /// The frame in `bytes` as a living member of the present term would say it.
    fn likely(&self, from: Rank, seat: Seat, bytes: &[u8; FRAME_LEN]) -> Option<Frame> {
        let mut bytes = *bytes;
        // Anything but a seat would be refused for that alone.
        bytes[1] = seat as u8;
        let frame = Frame::decode(&bytes).ok()?;
        let incarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
        let term = self.component.term();
        Some(Frame { sender: from, term, incarnation, sequence: self.heard + 1, ..frame })
    }

    fn hear(&mut self, from: Rank, frame: Option<Frame>) {
        let Some(frame) = frame else { return };
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        self.heard += 1;
        // What is refused is counted there.
        let _ = self.component.handle_message(self.now, from, &frame);
        self.drain();
        let _ = self.task.handle_message(self.now, from, &frame, Progress::default());
    }

    fn beat(&mut self, from: Rank, bytes: &[u8; FRAME_LEN]) {
        let Some(cell) = bytes.first_chunk::<BEAT_LEN>() else { return };
        assert!(Beat::decode(cell, crc32c).is_none_or(|beat| beat.encode(crc32c) == *cell));
        let mut sealed = *cell;
        sealed[BEAT_LEN - 8..BEAT_LEN - 4].fill(0);
        let crc = crc32c(&sealed[..BEAT_LEN - 4]);
        sealed[BEAT_LEN - 4..].copy_from_slice(&crc.to_le_bytes());
        if let Some(beat) = Beat::decode(&sealed, crc32c) {
            let _ = self.component.handle_heartbeat(self.now, from, &beat);
        }
    }

    fn pass(&mut self, span: u64) {
        self.now = self.now.after(Duration(span));
        self.component.handle_timeout(self.now);
        self.task.handle_timeout(self.now, self.component.progress());
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let mut node = Node::new();
    for op in bytes.as_chunks::<OP_LEN>().0.iter().take(OPS_MAX) {
        let [what, from, frame @ ..] = op;
        node.step(*what, *from, frame);
    }
}

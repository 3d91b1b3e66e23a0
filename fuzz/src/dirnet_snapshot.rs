//! What a node finds where it had saved its database: any bytes, and any change of a good one.
//!
//! Restoring must not panic; what is accepted is saved as the same again, and a component that
//! begins with it lives. The input is tried as it came, and as the entries behind a length, a
//! count and a checksum that hold. Taken for changes of a good snapshot, none is accepted.

use std::sync::LazyLock;

use weft_core::checksum::crc32c;
use weft_core::dirnet::{
    Change, Component, ComponentIncarnation, Config, Database, Kept, Limits, Output, Part, Profile,
    RestartLimit, SNAPSHOT_LEN_MAX, Timing,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

const NODES: u16 = 3;
const HEAD: usize = 8;

type Three = Database<3, 2>;

/// What a component has saved.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut component = begun(1, [&[], &[]]);
    for at_us in 0..20 {
        // With the others unknown, nothing but the own entry changes.
        let _ = component.handle_change(Instant(0), error(at_us));
        drain(&mut component, Instant(0));
    }
    saved(component.database())
});

fn saved(database: &Three) -> Vec<u8> {
    database.save(NODES, &mut [0; SNAPSHOT_LEN_MAX]).to_vec()
}

fn error(at_us: u64) -> Change {
    Change::TaskError { task: 1, kind: 9, at_us, alpha: None }
}

fn begun(boot: u32, snapshots: [&[u8]; 2]) -> Component<3, 2> {
    let profile = Profile::new(Timing::LAN).expect("it keeps the rules");
    let limit = |s: u64| RestartLimit { max: 3, within: Duration::from_millis(s * 1_000) };
    let limits = Limits { restarts: limit(10), resets: limit(100) };
    let parts = [Part::Manager, Part::Backup, Part::Backup];
    let config = Config::new(Rank(0), &parts, profile, 1, limits).expect("legal");
    let incarnation = ComponentIncarnation { boot: Incarnation(boot), generation: 0 };
    let kept = Kept { snapshots, ..Kept::default() };
    let mut component = Component::new(Instant(0), config, incarnation, 2, kept);
    drain(&mut component, Instant(0));
    component
}

fn drain(component: &mut Component<3, 2>, now: Instant) {
    let mut fences = Vec::new();
    while let Some(output) = component.poll_output() {
        if let Output::Fence { node, boot } = output {
            fences.push((node, boot));
        }
    }
    for (node, boot) in fences {
        component.handle_fenced(now, node, boot);
        while component.poll_output().is_some() {}
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    restore(bytes);
    let mut sealed = vec![0; HEAD];
    sealed.extend(NODES.to_le_bytes());
    sealed.extend(bytes);
    let body = u32::try_from(sealed.len() - HEAD).unwrap_or(u32::MAX);
    sealed[4..HEAD].copy_from_slice(&body.to_le_bytes());
    let checksum = crc32c(&sealed[4..]);
    sealed[..4].copy_from_slice(&checksum.to_le_bytes());
    restore(&sealed);
    change(bytes);
}

fn restore(bytes: &[u8]) {
    if let Ok(database) = Three::restore(NODES, bytes) {
        assert_eq!(Three::restore(NODES, &saved(&database)), Ok(database));
    }
    // One of a later incarnation than any that the input may name.
    let mut component = begun(u32::MAX, [bytes, &SOUND]);
    for step in 1..=20 {
        let now = Instant(step * 100_000_000);
        component.handle_timeout(now);
        drain(&mut component, now);
        // An entry that has no such task refuses.
        let _ = component.handle_change(now, error(step));
        drain(&mut component, now);
    }
}

/// Takes the input for changes of a good one: places and what is flipped there, and a new end.
fn change(changes: &[u8]) {
    let sound = &*SOUND;
    let mut changed = sound.clone();
    let (ends, flips) = changes.split_at(changes.len() % 3);
    for flip in flips.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([flip[0], flip[1]])) % sound.len();
        changed[at] ^= flip[2];
    }
    if let Some(end) = ends.first() {
        changed.truncate(usize::from(*end) * sound.len() / 256);
    }
    let is_changed = changed != *sound;
    assert_eq!(Three::restore(NODES, &changed).is_err(), is_changed);
}

//! A node's decoders of foreign bytes, as functions that panic or return nothing: for the fuzz
//! targets, which see nothing else of a node. The program itself does not call them.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weft_core::checksum::crc32c;
use weft_core::dirnet::{Database, Term};
use weft_core::ids::{Incarnation, Peer, Rank};

use super::chronicle::{Chronicle, Entry};
use super::evidence::{Copied, Evidence};
use super::incarnation::{Incarnations, Lives};
use super::kept::{KeptTerm, open_term};
use super::link::FromComponent;
use super::saved::SavedDatabase;
use super::tasks::Note;

/// The number of nodes of the cluster, and of tasks of each.
const NODES: u16 = 3;
const TASKS: usize = 2;

/// A message from a component.
pub fn component_frame(bytes: &[u8]) {
    let Ok(frame) = serde_json::from_slice::<FromComponent>(bytes) else { return };
    let said = serde_json::to_vec(&frame).expect("it was understood");
    let heard: FromComponent = serde_json::from_slice(&said).expect("it was said");
    assert_eq!(serde_json::to_vec(&heard).expect("it was understood"), said);
    match frame {
        FromComponent::Note(entry) => keep(&[entry.clone(), entry]),
        FromComponent::Receiving(mut places) => {
            places.note_dealt_with(0, &[u64::MAX; 4], |origin| u64::from(origin.0));
            places.retain(|client| client % 2 == 0);
            places.give_back(2, Some(Peer(0)));
            assert_eq!(places.after().len(), places.len());
        }
        _ => {}
    }
}

/// Entries for the chronicle, a line each.
pub fn entries(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let entries: Vec<Entry> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    keep(&entries);
    let mut evidence = Evidence::default();
    for entry in &entries {
        evidence.keep(Copied { entry: entry.clone(), noted_ns: entry.at_ns });
    }
    let (mut after_ns, mut seen) = (0, 0);
    loop {
        let page = evidence.about(None, after_ns, 2);
        let Some(last) = page.last() else { break };
        assert!(last.entry.at_ns > after_ns, "a page that goes back");
        (after_ns, seen) = (last.entry.at_ns, seen + page.len());
    }
    assert!(seen <= entries.len(), "an entry twice");
}

/// Keeps the node's own entries.
fn keep(entries: &[Entry]) {
    let mut chronicle = Chronicle::default();
    let mut last = 0;
    for entry in entries {
        let kept = chronicle.note(entry.clone());
        assert!(kept.at_ns >= last && !kept.what.to_string().is_empty());
        last = kept.at_ns;
    }
    assert!(chronicle.about(None, 0, usize::MAX).len() <= entries.len());
}

/// One of a node's note files at `path`; `which` selects the note, and whether its checksum is
/// corrected first.
///
/// # Panics
/// When the note is misread, or `path` cannot be written.
pub fn note(path: &Path, which: u8, bytes: &[u8]) {
    let is_mended = which & 4 != 0;
    let mut bytes = bytes.to_vec();
    match which % 4 {
        0 => {}
        1 if is_mended && bytes.len() == 12 => {
            let crc = crc32c(&bytes[..8]).to_le_bytes();
            bytes[8..].copy_from_slice(&crc);
        }
        2 if is_mended => bytes = [format!("{:08x}\n", crc32c(&bytes)).as_bytes(), &bytes].concat(),
        _ => {}
    }
    put(path, &bytes);
    match which % 4 {
        0 => incarnation(path),
        1 => term(path),
        2 => tasks(path),
        _ => database(path),
    }
}

fn put(path: &Path, bytes: &[u8]) {
    let _before = fs::remove_file(path);
    let mut open = fs::OpenOptions::new();
    let file = open.write(true).create_new(true).mode(0o600).open(path);
    std::io::Write::write_all(&mut file.expect("it can be made"), bytes).expect("it has room");
}

fn incarnation(path: &Path) {
    let Ok(mut incarnations) = Incarnations::open(path) else { return };
    let raised = Incarnation(7);
    incarnations.raise(raised);
    let Ok(next) = incarnations.next() else { return };
    drop(incarnations);
    let again = Incarnations::open(path).expect("it was written");
    assert!(!again.are_forgotten() && again.lives() == Lives::Some && next > raised);
}

fn term(path: &Path) {
    for lives in [Lives::Some, Lives::None] {
        let Ok(file) = open_term(path, lives) else { continue };
        let Ok((kept, _)) = KeptTerm::adopt(OwnedFd::from(file)) else {
            panic!("it was found whole")
        };
        let term = Term { epoch: 9, claimant: Rank(1) };
        kept.keep(term).expect("it has room");
        let file = open_term(path, Lives::Some).expect("it was kept");
        let (_, found) = KeptTerm::adopt(OwnedFd::from(file)).expect("it was kept");
        assert_eq!(found, Some(term));
    }
}

fn tasks(path: &Path) {
    let Ok(Some(note)) = Note::load(path) else { return };
    note.save(path).expect("it has room");
    assert_eq!(Note::load(path).expect("it was saved"), Some(note));
}

fn database(path: &Path) {
    type Three = Database<{ NODES as usize }, TASKS>;
    let file = || fs::OpenOptions::new().read(true).write(true).open(path).expect("it is there");
    let Ok((mut saved, found)) = SavedDatabase::adopt(file().into()) else { return };
    let restored: Vec<Three> =
        found.iter().filter_map(|bytes| Three::restore(NODES, bytes).ok()).collect();
    let Some(newest) = restored.first() else { return };
    saved.save(NODES, newest).expect("it has room");
    let (_, found) = SavedDatabase::adopt(file().into()).expect("it was saved");
    assert!(Three::restore(NODES, &found[0]).is_ok_and(|found| found == *newest));
}

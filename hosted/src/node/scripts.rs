//! The recovery scripts that a node holds: the one in force, and the one that is to replace it.
//!
//! ```text
//!   manager's node ── frames, 4 KiB each ──▶ other nodes: verified, saved, then said to be held
//!                  ◀── wanted ──────────────  one that lacks the script in force
//! ```
//!
//! A frame may be lost; the manager offers the script again to those that lack it, and who lacks
//! the one in force asks again. What arrives is believed only once the verifier accepts it and it
//! may succeed the script in force.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weft_core::recovery::{Expected, IMAGE_MAX, Rcode, Rejected, Unlike, verify};

use crate::bootstrap::SCRIPT_LEN_MAX;
use crate::payload::Payload;
use crate::sealed;

/// The bytes of a script in one frame.
const PART_LEN: usize = 4_096;
const HEAD_LEN: usize = 16;
/// The scripts that a node holds besides the one that it uses: the next one, and the one in force
/// if it lacked it.
pub(super) const NEXT_MAX: usize = 2;
/// In the place of a part's offset: the script itself is asked for.
const WANTED: u32 = u32::MAX;

const _: () = assert!(HEAD_LEN + PART_LEN == SCRIPT_LEN_MAX);

/// Why an image is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotHeld {
    /// The cluster has no script that it could replace.
    NoScript,
    Rejected(Rejected),
    Unlike(Unlike),
}

/// The digest of `image`; 0 for what is none.
pub(super) fn digest_of(image: &[u8]) -> u64 {
    Rcode::new_checked(image).map_or(0, |image| image.digest())
}

/// Whether `next` may replace `image` in a running cluster.
pub(super) fn check(image: &[u8], next: &[u8]) -> Result<(), NotHeld> {
    let any = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(image, &any).map_err(|_| NotHeld::NoScript)?;
    // Its timing is that of the script in force, or the cluster file's: both were checked.
    let next = verify(next, &any).map_err(NotHeld::Rejected)?;
    program.check_successor(&next).map_err(NotHeld::Unlike)
}

/// What a frame of another node was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptFrame {
    /// A part, or nonsense.
    Nothing,
    /// The last part.
    Image(Vec<u8>),
    /// It lacks the script with this digest.
    Wanted(u64),
}

/// What is saved: the script that the cluster began with, for another one has other successors.
#[derive(Debug, Serialize, Deserialize)]
struct SavedScript {
    base: u64,
    images: Vec<Payload>,
}

/// The scripts of one node.
#[derive(Debug)]
pub(super) struct Scripts {
    path: PathBuf,
    base: u64,
    /// In force first; none in a cluster without a script.
    images: Vec<Vec<u8>>,
    /// For each node, the script that arrives from it.
    arriving: BTreeMap<u16, (u64, Vec<u8>)>,
}

impl Scripts {
    /// Those that an earlier supervisor has saved, for a cluster that began with `image`.
    pub(super) fn open(path: PathBuf, image: Option<&Vec<u8>>) -> Self {
        let base = image.map_or(0, |image| digest_of(image));
        let mut images: Vec<Vec<u8>> = image.into_iter().cloned().collect();
        match load(&path) {
            Ok(Some(saved)) if saved.base == base && base != 0 => {
                let saved = saved.images.into_iter().map(|Payload(image)| image);
                let mut saved = saved.filter(|it| check(&images[0], it).is_ok());
                if let Some(in_force) = saved.next() {
                    images = [in_force].into_iter().chain(saved.take(NEXT_MAX)).collect();
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "which script is in force is asked of others"),
        }
        Self { path, base, images, arriving: BTreeMap::new() }
    }

    /// The script in force as far as this node knows.
    pub(super) fn in_force(&self) -> Option<&Vec<u8>> {
        self.images.first()
    }

    /// Those besides it, the one that came last at the end.
    pub(super) fn others(&self) -> &[Vec<u8>] {
        self.images.get(1..).unwrap_or_default()
    }

    /// Holds a script besides the one in force, in the place of the oldest such.
    pub(super) fn hold(&mut self, image: Vec<u8>) -> Result<(), NotHeld> {
        let in_force = self.images.first().ok_or(NotHeld::NoScript)?;
        check(in_force, &image)?;
        if *in_force != image {
            self.images.retain(|other| *other != image);
            self.images.push(image);
            if self.images.len() > 1 + NEXT_MAX {
                self.images.remove(1);
            }
            self.save();
        }
        Ok(())
    }

    /// The script with `digest` is in force, and `next` is still held besides it; returns whether
    /// the former is held.
    pub(super) fn put_in_force(&mut self, digest: u64, next: Option<u64>) -> bool {
        let Some(at) = self.images.iter().position(|it| digest_of(it) == digest) else {
            return false;
        };
        self.images.swap(0, at);
        let others = self.images.split_off(1);
        self.images.extend(others.into_iter().filter(|it| Some(digest_of(it)) == next));
        self.save();
        true
    }

    fn of(&self, digest: u64) -> Option<&Vec<u8>> {
        self.images.iter().find(|image| digest_of(image) == digest)
    }

    /// The frames that bring the script with `digest`; none if it is not held.
    pub(super) fn frames(&self, digest: u64) -> Vec<Vec<u8>> {
        let Some(image) = self.of(digest) else { return Vec::new() };
        let frame = |(part, at): (&[u8], u32)| {
            let len = u32::try_from(image.len()).unwrap_or(u32::MAX);
            [&head(digest, at, len)[..], part].concat()
        };
        image.chunks(PART_LEN).zip((0..).step_by(PART_LEN)).map(frame).collect()
    }

    /// The frame that asks for the script with `digest`.
    pub(super) fn ask(digest: u64) -> Vec<u8> {
        head(digest, WANTED, 0).to_vec()
    }

    /// Handles a frame of node `from`. Parts arrive in their order, or are of no use.
    pub(super) fn handle_frame(&mut self, from: u16, frame: &[u8]) -> ScriptFrame {
        let Some((head, part)) = frame.split_first_chunk::<HEAD_LEN>() else {
            return ScriptFrame::Nothing;
        };
        let [digest @ .., a, b, c, d, e, f, g, h] = *head;
        let digest = u64::from_le_bytes(digest);
        let (at, len) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if at == WANTED {
            return ScriptFrame::Wanted(digest);
        }
        let (at, len) = (at as usize, len as usize);
        if at == 0 {
            self.arriving.insert(from, (digest, Vec::new()));
        }
        let arriving = self.arriving.get_mut(&from).filter(|(of, bytes)| {
            *of == digest && bytes.len() == at && at + part.len() <= len && len <= IMAGE_MAX
        });
        let Some((_, bytes)) = arriving else { return ScriptFrame::Nothing };
        bytes.extend_from_slice(part);
        if bytes.len() < len {
            return ScriptFrame::Nothing;
        }
        let image = self.arriving.remove(&from).map(|(_, bytes)| bytes).unwrap_or_default();
        if digest_of(&image) == digest { ScriptFrame::Image(image) } else { ScriptFrame::Nothing }
    }

    fn save(&self) {
        let images = self.images.iter().cloned().map(Payload).collect();
        let saved = serde_json::to_vec(&SavedScript { base: self.base, images });
        let done = saved.map_err(io::Error::from).and_then(|it| sealed::save(&self.path, &it));
        if let Err(error) = done {
            // The others hold it.
            tracing::error!(%error, "the recovery scripts cannot be saved");
        }
    }
}

fn head(digest: u64, at: u32, len: u32) -> [u8; HEAD_LEN] {
    let mut head = [0; HEAD_LEN];
    head[..8].copy_from_slice(&digest.to_le_bytes());
    head[8..12].copy_from_slice(&at.to_le_bytes());
    head[12..].copy_from_slice(&len.to_le_bytes());
    head
}

fn load(path: &std::path::Path) -> io::Result<Option<SavedScript>> {
    let json = sealed::load(path)?;
    Ok(json.map(|json| serde_json::from_slice(&json)).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use weft_core::recovery::{Header, Instruction, Role, TimeoutName, seal};

    /// A script for one node that differs from others by `source` and `words`.
    fn script(source: u64, more: &[Instruction]) -> Vec<u8> {
        let role = Instruction::Role { node: 0, role: Role::Manager };
        let words = [&[role], more, &[Instruction::Code, Instruction::End]].concat();
        let count = u16::try_from(words.len()).unwrap();
        let header = Header { words: count, nodes: 1, source, ..Header::default() };
        let mut image = header.to_bytes().to_vec();
        words.iter().for_each(|word| image.extend(word.encode().to_bytes()));
        seal(&mut image);
        image
    }

    fn carry(from: &Scripts, to: &mut Scripts, digest: u64) -> Option<Vec<u8>> {
        let mut frames = from.frames(digest).into_iter();
        frames.find_map(|frame| match to.handle_frame(0, &frame) {
            ScriptFrame::Image(image) => Some(image),
            ScriptFrame::Nothing | ScriptFrame::Wanted(_) => None,
        })
    }

    #[test]
    fn rl12_what_a_node_holds_and_uses_outlives_its_supervisor() {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.scripts");
        let (first, second, third) = (script(1, &[]), script(2, &[]), script(3, &[]));
        let mut scripts = Scripts::open(path.clone(), Some(&first));
        assert_eq!(scripts.in_force(), Some(&first));
        scripts.hold(second.clone()).unwrap();
        assert!(scripts.put_in_force(digest_of(&second), None));
        scripts.hold(third.clone()).unwrap();
        assert!(!scripts.put_in_force(9, None), "it is not held");
        let again = Scripts::open(path.clone(), Some(&first));
        assert_eq!((again.in_force(), again.others()), (Some(&second), &[third.clone()][..]));
        // Of a cluster that begins with another script, all begins again.
        assert_eq!(Scripts::open(path, Some(&third)).in_force(), Some(&third));
    }

    /// The next script is held while the one in force, which was lacking, arrives; one that arrives
    /// again counts as the last.
    #[test]
    fn rl12_two_scripts_are_held_besides_the_one_in_force() {
        let scratch = Scratch::new();
        let all: Vec<_> = (1..=4).map(|source| script(source, &[])).collect();
        let digests: Vec<_> = all.iter().map(|image| digest_of(image)).collect();
        let mut scripts = Scripts::open(scratch.path().join("a"), Some(&all[0]));
        for image in [&all[1], &all[2], &all[1], &all[0]] {
            scripts.hold(image.clone()).unwrap();
        }
        assert_eq!(scripts.others(), [all[2].clone(), all[1].clone()]);
        scripts.hold(all[3].clone()).unwrap();
        assert_eq!(scripts.others(), [all[1].clone(), all[3].clone()]);
        assert!(scripts.put_in_force(digests[3], Some(digests[1])));
        assert_eq!((scripts.in_force(), scripts.others()), (Some(&all[3]), &all[1..2]));
        assert!(scripts.put_in_force(digests[1], None) && scripts.others().is_empty());
    }

    #[test]
    fn rl12_what_may_not_succeed_is_not_held() {
        let scratch = Scratch::new();
        let mut scripts = Scripts::open(scratch.path().join("a"), Some(&script(1, &[])));
        let send = Instruction::Timeout { name: TimeoutName::Send, us: 40_000 };
        let unlike = scripts.hold(script(2, &[send]));
        assert!(matches!(unlike, Err(NotHeld::Unlike(_))), "{unlike:?}");
        let mut damaged = script(2, &[]);
        damaged[9] ^= 1;
        assert!(matches!(scripts.hold(damaged), Err(NotHeld::Rejected(_))));
        assert!(scripts.others().is_empty());
        let mut without = Scripts::open(scratch.path().join("b"), None);
        assert_eq!(without.hold(script(2, &[])), Err(NotHeld::NoScript));
    }

    #[test]
    fn rl12_a_script_arrives_whole_or_not_at_all() {
        let scratch = Scratch::new();
        let first = script(1, &[]);
        let long: Vec<_> = (0..700).map(|task| (task % 250) as u8).collect();
        let long: Vec<_> = long[..250].iter().map(|task| (*task, *task / 16)).collect();
        let words: Vec<_> = long
            .iter()
            .map(|(task, _)| Instruction::Task { task: *task, node: 0, index: *task, name: 0 })
            .collect();
        let mut image = script(2, &words);
        // As many bytes as several frames hold.
        image.resize(3 * PART_LEN, 0);
        let (mut from, mut to) = (
            Scripts::open(scratch.path().join("a"), Some(&first)),
            Scripts::open(scratch.path().join("b"), Some(&first)),
        );
        from.images.push(script(3, &words[..1]));
        let small = digest_of(&from.images[1]);
        assert_eq!(carry(&from, &mut to, small), Some(from.images[1].clone()));
        assert!(from.frames(8).is_empty(), "it is not held");
        assert_eq!(to.handle_frame(1, &Scripts::ask(7)), ScriptFrame::Wanted(7));
        // A part that is missing, of another script, too long, or no frame at all.
        let part = |digest, at, len: u32, bytes: usize| {
            [&head(digest, at, len)[..], &vec![0; bytes]].concat()
        };
        for frames in [
            vec![part(5, 0, 100, 50), part(5, 60, 100, 40)],
            vec![part(5, 0, 100, 50), part(6, 50, 100, 50)],
            vec![part(5, 0, 100, 101)],
            vec![part(5, 0, u32::MAX - 1, 10)],
            vec![part(5, 0, 100, 100)],
            vec![vec![1, 2, 3]],
        ] {
            for frame in frames {
                assert_eq!(to.handle_frame(1, &frame), ScriptFrame::Nothing);
            }
        }
    }
}

//! The image of one entry: its encoding, sent from node to node in parts.
//!
//! ```text
//!  standing (20) │ incarnation (8) │ seq (4) │ role status tasks (3) │ reboots (4) │ errors (4)
//!  last order judged: epoch (4) claimant (2) evaluation (4) index (2)
//!  script held (8) │ script used: epoch (4) claimant (2) number (2) digest (8)
//!  per task:  status (1) phase (1) errors (2) alpha (2) answered (2) kind (2)
//!  per error that is kept:  task (1) kind (2) time (8)
//! ```
//!
//! The receiver verifies the checksum of the whole image before it decodes it, and every count
//! before it uses it. The errors are distinguished: a wrong checksum is repaired by another
//! request; invalid counts are the sender's fault.

use super::record::ERRORS;
use super::{
    ComponentIncarnation, ImagePart, Record, ScriptVersion, Standing, Task, TaskError, Term,
};
use crate::checksum::crc32c;
use crate::ids::{Incarnation, OrderId, Rank};

/// Bytes of the image of an entry with the maximum number of tasks.
pub(super) const IMAGE_LEN_MAX: usize = 79 + 10 * TASKS_MAX + 11 * ERRORS;
/// The maximum number of tasks of a node.
pub const TASKS_MAX: usize = 16;
/// The maximum number of parts of an image.
pub const PARTS_MAX: usize = IMAGE_LEN_MAX.div_ceil(ImagePart::LEN);

const IMAGE_SPACE: usize = PARTS_MAX * ImagePart::LEN;

/// Why an image is not a valid entry. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageError {
    /// The parts belong to different images, or were corrupted.
    Checksum,
    /// More parts, tasks or errors than the maximum, or fewer bytes than they need.
    Count,
    /// A field holds an invalid value.
    Field,
    /// It was saved in the format of another version of Weft.
    Format,
}

/// The bytes of an image, or those that have arrived so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    bytes: [u8; IMAGE_SPACE],
    len: usize,
}

impl Image {
    const EMPTY: Self = Self { bytes: [0; IMAGE_SPACE], len: 0 };

    /// Encodes an entry.
    #[must_use]
    pub fn of<const TASKS: usize>(standing: Standing, record: &Record<TASKS>) -> Self {
        const { assert!(TASKS <= TASKS_MAX, "an image has room for 16 tasks") };
        let mut image = Self::EMPTY;
        for word in standing.words() {
            image.put(&word.to_le_bytes());
        }
        image.put_life(record.incarnation);
        image.put(&record.seq.to_le_bytes());
        image.put(&[record.role, record.status, record.task_count]);
        image.put(&record.reboots.to_le_bytes());
        image.put(&record.error_count.to_le_bytes());
        let OrderId { term, evaluation, index } = record.judged;
        image.put(&term.epoch.to_le_bytes());
        image.put(&term.claimant.0.to_le_bytes());
        image.put(&evaluation.to_le_bytes());
        image.put(&index.to_le_bytes());
        image.put(&record.script_held.to_le_bytes());
        let ScriptVersion { term, number, digest } = record.script_used;
        image.put(&term.epoch.to_le_bytes());
        image.put(&term.claimant.0.to_le_bytes());
        image.put(&number.to_le_bytes());
        image.put(&digest.to_le_bytes());
        for task in record.tasks() {
            image.put(&[task.status, task.phase]);
            for number in [task.errors, task.alpha, task.answered, task.kind] {
                image.put(&number.to_le_bytes());
            }
        }
        for error in record.errors() {
            image.put(&[error.task]);
            image.put(&error.kind.to_le_bytes());
            image.put(&error.at_us.to_le_bytes());
        }
        image
    }

    /// The parts of the image of `node`'s entry.
    pub fn parts(&self, node: Rank) -> impl Iterator<Item = ImagePart> {
        let count = self.len.div_ceil(ImagePart::LEN);
        let used = &self.bytes[..count * ImagePart::LEN];
        let checksum = crc32c(used);
        used.chunks_exact(ImagePart::LEN).zip(0..).map(move |(chunk, index)| {
            let mut bytes = [0; ImagePart::LEN];
            bytes.copy_from_slice(chunk);
            let count = u8::try_from(count).unwrap_or(u8::MAX);
            ImagePart { node, index, count, checksum, bytes }
        })
    }

    /// The bytes without the zeros that pad the last part.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn put_life(&mut self, incarnation: ComponentIncarnation) {
        self.put(&incarnation.boot.0.to_le_bytes());
        self.put(&incarnation.generation.to_le_bytes());
    }
}

/// Reassembles the parts of one image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assembly {
    image: Image,
    node: Rank,
    checksum: u32,
    count: u8,
    /// One bit for each part that has arrived.
    arrived: u32,
}

const _: () = assert!(PARTS_MAX < 32);

impl Assembly {
    /// No part has arrived.
    pub const EMPTY: Self =
        Self { image: Image::EMPTY, node: Rank(0), checksum: 0, count: 0, arrived: 0 };

    /// Whether `part` belongs to the image in reassembly.
    #[must_use]
    pub fn continues(&self, part: &ImagePart) -> bool {
        (self.node, self.checksum, self.count) == (part.node, part.checksum, part.count)
    }

    /// Adds a part; returns the entry once the last part has arrived. A part of another image
    /// discards what has arrived so far.
    ///
    /// # Errors
    /// [`ImageError`]; everything that had arrived is discarded.
    pub fn add<const TASKS: usize>(
        &mut self,
        part: &ImagePart,
    ) -> Result<Option<(Standing, Record<TASKS>)>, ImageError> {
        if usize::from(part.count) > PARTS_MAX || part.index >= part.count {
            return Err(ImageError::Count);
        }
        if !self.continues(part) {
            let (node, checksum, count) = (part.node, part.checksum, part.count);
            *self = Self { node, checksum, count, ..Self::EMPTY };
        }
        let at = usize::from(part.index) * ImagePart::LEN;
        self.image.bytes[at..at + ImagePart::LEN].copy_from_slice(&part.bytes);
        self.arrived |= 1 << part.index;
        if self.arrived.count_ones() < u32::from(self.count) {
            return Ok(None);
        }
        let len = usize::from(self.count) * ImagePart::LEN;
        let entry = if crc32c(&self.image.bytes[..len]) == self.checksum {
            entry(&self.image.bytes[..len])
        } else {
            Err(ImageError::Checksum)
        };
        *self = Self::EMPTY;
        entry.map(Some)
    }
}

/// Decodes the entry from `bytes`, whose checksum was verified.
pub(super) fn entry<const TASKS: usize>(
    bytes: &[u8],
) -> Result<(Standing, Record<TASKS>), ImageError> {
    Source { bytes }.entry()
}

/// The bytes of an image that are still to be read.
struct Source<'a> {
    bytes: &'a [u8],
}

impl Source<'_> {
    fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], ImageError> {
        let (taken, left) = self.bytes.split_first_chunk().ok_or(ImageError::Count)?;
        self.bytes = left;
        Ok(*taken)
    }

    fn incarnation(&mut self) -> Result<ComponentIncarnation, ImageError> {
        let boot = Incarnation(u32::from_le_bytes(self.take()?));
        Ok(ComponentIncarnation { boot, generation: u32::from_le_bytes(self.take()?) })
    }

    fn standing(&mut self) -> Result<Standing, ImageError> {
        let mut words = [0; 5];
        for word in &mut words {
            *word = u32::from_le_bytes(self.take()?);
        }
        Standing::from_words(words).ok_or(ImageError::Field)
    }

    fn entry<const TASKS: usize>(mut self) -> Result<(Standing, Record<TASKS>), ImageError> {
        let standing = self.standing()?;
        let incarnation = self.incarnation()?;
        let seq = u32::from_le_bytes(self.take()?);
        let [role, status, task_count] = self.take()?;
        let reboots = u32::from_le_bytes(self.take()?);
        let error_count = u32::from_le_bytes(self.take()?);
        if usize::from(task_count) > TASKS {
            return Err(ImageError::Count);
        }
        let epoch = u32::from_le_bytes(self.take()?);
        let term = Term { epoch, claimant: Rank(u16::from_le_bytes(self.take()?)) };
        let evaluation = u32::from_le_bytes(self.take()?);
        let judged = OrderId { term, evaluation, index: u16::from_le_bytes(self.take()?) };
        let mut record =
            Record { incarnation, seq, role, status, task_count, judged, ..Record::default() };
        record.script_held = u64::from_le_bytes(self.take()?);
        let epoch = u32::from_le_bytes(self.take()?);
        let term = Term { epoch, claimant: Rank(u16::from_le_bytes(self.take()?)) };
        let number = u16::from_le_bytes(self.take()?);
        let digest = u64::from_le_bytes(self.take()?);
        record.script_used = ScriptVersion { term, number, digest };
        (record.reboots, record.error_count) = (reboots, error_count);
        for index in 0..usize::from(task_count) {
            let [status, phase] = self.take()?;
            let mut numbers = [0; 4];
            for number in &mut numbers {
                *number = u16::from_le_bytes(self.take()?);
            }
            let [errors, alpha, answered, kind] = numbers;
            record.tasks[index] = Task { status, phase, errors, alpha, answered, kind };
        }
        let kept = error_count.min(ERRORS as u32);
        for number in error_count - kept..error_count {
            let [task] = self.take()?;
            let kind = u16::from_le_bytes(self.take()?);
            let at_us = u64::from_le_bytes(self.take()?);
            if task >= task_count {
                return Err(ImageError::Field);
            }
            record.errors.set(number, TaskError { task, kind, at_us });
        }
        // Zero padding shorter than one part may follow.
        if self.bytes.len() >= ImagePart::LEN || self.bytes.iter().any(|byte| *byte != 0) {
            return Err(ImageError::Count);
        }
        Ok((standing, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::Change;
    use std::vec::Vec;

    const INCARNATION: ComponentIncarnation =
        ComponentIncarnation { boot: Incarnation(3), generation: 1 };

    fn full<const TASKS: usize>() -> Record<TASKS> {
        let mut record = Record::new(INCARNATION, 1, u8::try_from(TASKS).unwrap());
        for seq in 1..=20 {
            let task = u8::try_from(seq % TASKS as u32).unwrap();
            let change = Change::TaskError { task, kind: 9, at_us: u64::from(seq), alpha: None };
            record.apply(INCARNATION, seq, change).unwrap();
        }
        record
    }

    fn add_all(parts: &[ImagePart]) -> Result<Option<(Standing, Record<16>)>, ImageError> {
        let mut assembly = Assembly::EMPTY;
        let (last, first) = parts.split_last().unwrap();
        for part in first {
            assert_eq!(assembly.add::<16>(part), Ok(None));
        }
        assembly.add(last)
    }

    #[test]
    fn g23_an_entry_arrives_whole_in_any_order_of_its_parts() {
        let (standing, record) = (Standing::up(INCARNATION), full::<16>());
        let mut parts: Vec<_> = Image::of(standing, &record).parts(Rank(2)).collect();
        assert!(parts.len() > 2 && parts.len() <= PARTS_MAX);
        assert_eq!(add_all(&parts), Ok(Some((standing, record))));
        parts.reverse();
        assert_eq!(add_all(&parts), Ok(Some((standing, record))));
    }

    #[test]
    fn g23_a_damaged_image_is_refused() {
        let mut parts: Vec<_> =
            Image::of(Standing::up(INCARNATION), &full::<16>()).parts(Rank(2)).collect();
        parts[1].bytes[3] ^= 1;
        assert_eq!(add_all(&parts), Err(ImageError::Checksum));
    }

    #[test]
    fn g23_counts_that_cannot_be_are_refused() {
        let record = full::<16>();
        let parts: Vec<_> = Image::of(Standing::up(INCARNATION), &record).parts(Rank(2)).collect();
        let mut assembly = Assembly::EMPTY;
        for part in &parts[..parts.len() - 1] {
            assert_eq!(assembly.add::<4>(part), Ok(None));
        }
        assert_eq!(assembly.add::<4>(&parts[parts.len() - 1]), Err(ImageError::Count));
        let most = ImagePart { count: u8::MAX, ..parts[0] };
        let mut assembly = Assembly::EMPTY;
        assert_eq!(assembly.add::<16>(&most), Err(ImageError::Count));
        let past = ImagePart { index: 3, count: 3, ..parts[0] };
        assert_eq!(assembly.add::<16>(&past), Err(ImageError::Count));
    }

    /// Sets every byte of a valid image to every value, with a matching checksum.
    #[test]
    fn g23_no_image_panics_and_what_is_accepted_can_be_said_again() {
        let image = Image::of(Standing::up(INCARNATION), &full::<4>());
        let parts: Vec<_> = image.parts(Rank(1)).collect();
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes).collect();
        for at in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok((standing, record)) = entry::<4>(&changed) {
                    let again = Image::of(standing, &record);
                    assert_eq!(&again.bytes[..again.len], &changed[..again.len], "{at} {value}");
                }
            }
        }
    }
}

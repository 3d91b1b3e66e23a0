//! Files of tensors: `.npy` holds one, `.safetensors` any number with names.
//!
//! ```text
//!   file ── header, checked whole ──▶ [ name, shape, place ] ── one at a time ──▶ sealed memory
//!   received ──▶ header ──▶ bytes, one after the other ──▶ Draft, which becomes a file at its end
//! ```
//!
//! Every length is checked against the file before anything of it is used. A `.safetensors` file
//! travels as its [`manifest`] and one value a tensor, so that what arrives is the same file.

pub mod manifest;
pub mod npy;
pub mod safetensors;

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::SealedTensor;
use crate::explain::{Code, Explain};
use crate::regular_file;
use crate::shm::{SealedDraft, SegmentError};
use weft_core::rendezvous::{BadShape, Shape};

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// Which kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One array of numpy.
    Npy,
    /// Tensors with names.
    Safetensors,
}

impl Kind {
    /// What the name of a file says that it is.
    ///
    /// # Errors
    /// [`TensorFileError::Kind`].
    pub fn of(path: &Path) -> Result<Self, TensorFileError> {
        match path.extension().and_then(|it| it.to_str()) {
            Some("npy") => Ok(Self::Npy),
            Some("safetensors") => Ok(Self::Safetensors),
            Some(_) | None => Err(TensorFileError::Kind),
        }
    }
}

/// A tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name; empty in a file that has none.
    pub name: String,
    /// What it is.
    pub shape: Shape,
    /// Where its bytes begin.
    pub offset: u64,
}

/// A file of tensors that was opened, and whose header is whole.
#[derive(Debug)]
pub struct TensorFile {
    file: File,
    /// The header of a `.safetensors` file, without its length.
    pub header: Vec<u8>,
    /// Its tensors, in the order of their bytes.
    pub entries: Vec<Entry>,
}

/// Why a file is not read, or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFileError {
    /// Its name has neither ending.
    #[error("its name ends with neither .npy nor .safetensors")]
    Kind,
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// There is no memory for a tensor of it.
    #[error("there is no memory for its tensor: {0}")]
    Memory(#[from] SegmentError),
    /// It is no file of that kind.
    #[error("it does not begin as such a file does")]
    Magic,
    /// A later version of the format.
    #[error("it is of version {0}.{1} of the format, and 1.0 to 3.0 are known")]
    Version(u8, u8),
    /// The header is longer than it may be.
    #[error("its header has {len} bytes, and may have {limit}")]
    LongHeader {
        /// What the file says.
        len: u64,
        /// The most.
        limit: u64,
    },
    /// The file is shorter or longer than its header says.
    #[error("it has {found} bytes, and its header says {expected}")]
    Length {
        /// By the header.
        expected: u64,
        /// Of the file.
        found: u64,
    },
    /// The header is not what it has to be.
    #[error("its header is refused: {0}")]
    Header(npy::HeaderError),
    /// The header is no JSON, or its offsets overlap, have holes or do not fit the shapes.
    #[error("its header is malformed: {0}")]
    Json(#[from] serde_json::Error),
    /// Two tensors have one name.
    #[error("two of its tensors have the name {0:?}")]
    Duplicate(String),
    /// Elements that no tensor has here.
    #[error("the elements of {name:?} are {dtype}, which is not supported")]
    Dtype {
        /// The tensor.
        name: String,
        /// The type, as the file says it.
        dtype: String,
    },
    /// Too many dimensions, or too many bytes.
    #[error("the shape of {name:?} is refused: {why}")]
    Shape {
        /// The tensor.
        name: String,
        /// Why.
        why: BadShape,
    },
    /// A file of that kind has no such elements.
    #[error("a .{kind} file cannot hold elements of type {dtype}")]
    NotHeld {
        /// The ending.
        kind: &'static str,
        /// The type.
        dtype: &'static str,
    },
}

impl Explain for TensorFileError {
    fn code(&self) -> Code {
        match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                Code::InputMissing
            }
            Self::Unreadable(_) => Code::InputUnreadable,
            Self::Memory(_) => Code::Memory,
            _ => Code::TensorFile,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Kind => "name a file that ends with .npy or .safetensors",
            Self::Unreadable(_) => "name a readable file",
            Self::Memory(_) => "send it from a host with more memory, or in parts",
            Self::Magic | Self::Length { .. } | Self::Json(_) | Self::LongHeader { .. } => {
                "write it again, with `numpy.save` or `safetensors.numpy.save_file`"
            }
            Self::Version(..) => "write it again with `numpy.save`",
            Self::Header(why) => why.cure(),
            Self::Duplicate(_) => "give each tensor a name of its own",
            Self::Dtype { .. } => "convert it to a type of 1, 2, 4, 8 or 16 bytes that weft knows",
            Self::Shape { .. } => "use at most eight dimensions, and fewer than 2^64 bytes",
            Self::NotHeld { kind: "npy", .. } => "write a .safetensors file",
            Self::NotHeld { .. } => "write a .npy file",
        }
        .to_owned()
    }
}

impl TensorFile {
    /// Opens the file that a user named, and reads its header.
    ///
    /// # Errors
    /// [`TensorFileError`].
    pub fn open(path: &Path) -> Result<Self, TensorFileError> {
        let kind = Kind::of(path)?;
        let mut file = regular_file::read_named(path)?;
        let len = file.metadata()?.len();
        let (header, entries) = match kind {
            Kind::Npy => (Vec::new(), vec![npy::read(&mut file, len)?]),
            Kind::Safetensors => safetensors::read(&mut file, len)?,
        };
        Ok(Self { file, header, entries })
    }

    /// One of its tensors, copied into sealed memory.
    ///
    /// # Errors
    /// [`TensorFileError`].
    pub fn load(&mut self, entry: &Entry) -> Result<SealedTensor, TensorFileError> {
        let mut draft = SealedDraft::create("weft-tensor", entry.shape.bytes())?;
        self.read(entry, |chunk| draft.write_all(chunk))?;
        Ok(SealedTensor::open(entry.shape, draft.finish()?)?)
    }

    /// The manifest of a file with names. All of it is read once: its tensors follow the manifest,
    /// and together they may be longer than the memory.
    ///
    /// # Errors
    /// [`TensorFileError`].
    pub fn manifest(&mut self) -> Result<Vec<u8>, TensorFileError> {
        let mut digests = Vec::with_capacity(self.entries.len());
        for entry in self.entries.clone() {
            let mut digest = manifest::Digest::new();
            self.read(&entry, |chunk| {
                digest.update(chunk);
                Ok(())
            })?;
            digests.push(digest.finish());
        }
        Ok(manifest::encode(&self.header, &digests))
    }

    /// Reads the bytes of one of its tensors, a chunk at a time.
    fn read(
        &mut self,
        entry: &Entry,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), TensorFileError> {
        self.file.seek(SeekFrom::Start(entry.offset))?;
        let mut left = entry.shape.bytes();
        let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            self.file.read_exact(&mut chunk[..len])?;
            take(&chunk[..len])?;
            left -= len as u64;
        }
        Ok(())
    }
}

/// Reads a header of `len` bytes, which is at most `limit` and lies within a file of `file_len`.
fn read_header(
    file: &mut impl Read,
    (at, len): (u64, u64),
    (limit, file_len): (u64, u64),
) -> Result<Vec<u8>, TensorFileError> {
    if len > limit {
        return Err(TensorFileError::LongHeader { len, limit });
    }
    let expected = at + len;
    if expected > file_len {
        return Err(TensorFileError::Length { expected, found: file_len });
    }
    let mut header = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact(&mut header)?;
    Ok(header)
}

#[cfg(test)]
mod tests;

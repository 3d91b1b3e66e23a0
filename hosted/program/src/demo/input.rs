//! The lines that are streamed: text files of the user's, or the repository's own.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use weft::explain::{Code, Explain};

/// The longest input in bytes.
const LEN_MAX: u64 = 1 << 30;

/// Files of the repository, as they were when this program was built.
const OWN: [(&str, &str); 8] = [
    ("README.md", include_str!("../../../../README.md")),
    ("ARCHITECTURE.md", include_str!("../../../../ARCHITECTURE.md")),
    ("LICENSE-APACHE", include_str!("../../../../LICENSE-APACHE")),
    ("core/src/mailbox/owner.rs", include_str!("../../../../core/src/mailbox/owner.rs")),
    ("core/src/mailbox/outbox.rs", include_str!("../../../../core/src/mailbox/outbox.rs")),
    ("core/src/mailbox/inquiry.rs", include_str!("../../../../core/src/mailbox/inquiry.rs")),
    ("core/src/endpoint/mod.rs", include_str!("../../../../core/src/endpoint/mod.rs")),
    ("hosted/src/node/supervisor.rs", include_str!("../../../src/node/supervisor.rs")),
];
/// Text, as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextInput {
    names: Vec<String>,
    lines: Vec<String>,
}

/// Why a file cannot be streamed.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is no such file.
    #[error("there is no file {path}")]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// It is not text.
    #[error("{path} is not text: byte {offset} is not UTF-8 or is zero")]
    Binary {
        /// The path.
        path: PathBuf,
        /// The byte at which that is seen.
        offset: usize,
    },
    /// It cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is longer than a gibibyte.
    #[error("{path} is longer than 1 GiB")]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// No file holds a line.
    #[error("the input holds no line")]
    Empty,
}

impl Explain for InputError {
    fn code(&self) -> Code {
        match self {
            Self::Missing { .. } => Code::InputMissing,
            Self::Binary { .. } => Code::InputBinary,
            Self::Unreadable { .. } | Self::TooLong { .. } => Code::InputUnreadable,
            Self::Empty => Code::InputMissing,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Missing { .. } => "check the path, or leave `--input` out".to_owned(),
            Self::Binary { .. } => "give a file of UTF-8 text".to_owned(),
            Self::Unreadable { .. } => "give a regular file that you may read".to_owned(),
            Self::TooLong { .. } => "give a part of it".to_owned(),
            Self::Empty => "give a file with at least one line".to_owned(),
        }
    }
}

impl TextInput {
    /// The repository's own files.
    #[must_use]
    pub fn own() -> Self {
        let names = OWN.iter().map(|(name, _)| (*name).to_owned()).collect();
        let texts = OWN.iter().map(|(_, text)| *text);
        Self { names, lines: texts.flat_map(str::lines).map(str::to_owned).collect() }
    }

    /// The lines of `paths`, in order.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn read(paths: &[PathBuf]) -> Result<Self, InputError> {
        let (mut names, mut lines) = (Vec::new(), Vec::new());
        for path in paths {
            let text = read_text(path)?;
            names.push(path.display().to_string());
            lines.extend(text.lines().map(str::to_owned));
        }
        if lines.is_empty() { Err(InputError::Empty) } else { Ok(Self { names, lines }) }
    }

    /// The lines, without their ends. The streams go over them again and again.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Where they are from.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

fn read_text(path: &Path) -> Result<String, InputError> {
    let path_buf = || path.to_owned();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => InputError::Missing { path: path_buf() },
        _ => InputError::Unreadable { path: path_buf(), source },
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    // The length of anything else says nothing, and a FIFO may never open.
    if !metadata.is_file() && !metadata.is_dir() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(unreadable(error));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // It may grow meanwhile.
    file.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(InputError::TooLong { path: path_buf() });
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(InputError::Binary { path: path_buf(), offset });
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        InputError::Binary { path: path_buf(), offset }
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;
    use crate::scratch::Scratch;

    fn file(bytes: &[u8]) -> (Scratch, Vec<PathBuf>) {
        let scratch = Scratch::new();
        let path = scratch.path().join("input.txt");
        fs::write(&path, bytes).unwrap();
        (scratch, vec![path])
    }

    #[test]
    fn lines_come_in_order_with_or_without_a_last_end() {
        let (_scratch, paths) = file(b"one\n\nthree");
        let input = TextInput::read(&paths).unwrap();
        assert_eq!(input.lines(), ["one", "", "three"]);
    }

    #[test]
    fn what_is_not_text_is_refused_at_its_byte() {
        let (_scratch, paths) = file(b"ab\0c");
        let zero = TextInput::read(&paths).unwrap_err();
        assert!(matches!(zero, InputError::Binary { offset: 2, .. }), "{zero}");
        let (_scratch, paths) = file(b"abc\xFF");
        let wild = TextInput::read(&paths).unwrap_err();
        assert!(matches!(wild, InputError::Binary { offset: 3, .. }), "{wild}");
    }

    #[test]
    fn a_missing_file_a_directory_and_an_empty_file_are_told_apart() {
        let (scratch, paths) = file(b"");
        assert!(matches!(TextInput::read(&paths), Err(InputError::Empty)));
        let missing = vec![scratch.path().join("nothing")];
        assert!(matches!(TextInput::read(&missing), Err(InputError::Missing { .. })));
        let directory = vec![scratch.path().to_owned()];
        assert!(matches!(TextInput::read(&directory), Err(InputError::Unreadable { .. })));
    }

    #[test]
    fn what_may_have_no_end_is_refused_unread() {
        let scratch = Scratch::new();
        let fifo = scratch.path().join("fifo");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [PathBuf::from("/dev/zero"), fifo] {
            let refused = TextInput::read(&[path]).unwrap_err();
            assert!(matches!(refused, InputError::Unreadable { .. }), "{refused}");
        }
    }
}

//! The key that all nodes of a cluster share.
//!
//! A file of 64 hexadecimal digits that belongs to the user that runs the nodes, or to root, and
//! that no other user may read. `weft key FILE` makes one. Every holder of the key is a member.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::explain::{Code, Explain};
use crate::regular_file;

/// The key of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Key::LEN]);

impl Key {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// The public key of nodes that were ordered to run without one. It hides their messages from
    /// passive listeners only.
    pub const INSECURE: Self = Self([0; Self::LEN]);

    /// Reads a key from its file.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Unreadable { path: path.to_owned(), source };
        let file = regular_file::read(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        let owner = about.uid();
        if owner != 0 && owner != geteuid().as_raw() {
            return Err(KeyError::Foreign { path: path.to_owned(), owner });
        }
        let mode = about.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        let longest = 2 * Self::LEN as u64 + 64;
        file.take(longest).read_to_string(&mut text).map_err(unreadable)?;
        let key = from_hex(text.trim()).ok_or(KeyError::Malformed { path: path.to_owned() })?;
        if key == Self::INSECURE {
            Err(KeyError::Malformed { path: path.to_owned() })
        } else {
            Ok(key)
        }
    }

    /// Draws a key and writes it to a new file that only this user may read.
    ///
    /// # Errors
    /// [`KeyError::Exists`], [`KeyError::Unwritable`].
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let unwritable = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => KeyError::Unwritable { path: path.to_owned(), source },
        };
        let mut bytes = [0; Self::LEN];
        getrandom(&mut bytes[..], GetRandomFlags::empty())
            .map_err(|errno| unwritable(errno.into()))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut open = OpenOptions::new();
        let mut file =
            open.write(true).create_new(true).mode(0o600).open(path).map_err(unwritable)?;
        let written = writeln!(file, "{text}").and_then(|()| file.sync_all());
        if written.is_err() {
            // A file with half a key would be refused as existing.
            let _ = fs::remove_file(path);
        }
        written.map_err(unwritable)?;
        Ok(Self(bytes))
    }

    pub(super) const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

/// Does not show the bytes.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn from_hex(text: &str) -> Option<Key> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let (pairs, []) = digits.as_deref()?.as_chunks::<2>() else { return None };
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    bytes.try_into().ok().map(Key)
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No key was given: between hosts no node takes part without one, unless ordered to.
    #[error("nodes on several hosts need a key, and none is named")]
    Missing,
    /// The file is not there or cannot be read.
    #[error("the key file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file belongs to another user, who could change it.
    #[error("the key file {path} belongs to user {owner}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may read the file.
    #[error("the key file {path} has mode {mode:03o}: others may read it")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file does not hold a key.
    #[error("the key file {path} does not hold a key")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The file exists already.
    #[error("{path} exists already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("the key file {path} cannot be written: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Explain for KeyError {
    fn code(&self) -> Code {
        match self {
            Self::Missing | Self::Exists { .. } => Code::Usage,
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Code::InputMissing
            }
            Self::Unreadable { .. } | Self::Malformed { .. } => Code::InputUnreadable,
            Self::Foreign { .. } | Self::Exposed { .. } => Code::Permission,
            Self::Unwritable { .. } => Code::Output,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Missing => "make one with `weft key FILE`, copy it to every host and name it in \
                              the cluster file below [network], or with --key; --insecure does \
                              without"
                .to_owned(),
            Self::Unreadable { .. } | Self::Malformed { .. } => {
                "name a file that `weft key FILE` made".to_owned()
            }
            Self::Foreign { path, .. } => format!("`chown` {} to this user", path.display()),
            Self::Exposed { path, .. } => format!("`chmod 600 {}`", path.display()),
            Self::Exists { .. } => "choose another name, or remove it first".to_owned(),
            Self::Unwritable { .. } => "choose a directory that this user may write to".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let scratch = Scratch::new();
        let path = scratch.path().join("key");
        let key = Key::create(&path).unwrap();
        assert_eq!(Key::load(&path).unwrap(), key);
        assert!(matches!(Key::create(&path), Err(KeyError::Exists { .. })));
        assert_eq!(format!("{key:?}"), "Key");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = Key::load(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { mode: 0o640, .. }), "{error}");
        assert!(error.cure().contains("chmod 600"), "{}", error.cure());
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused_and_holds_up_nobody() {
        let scratch = Scratch::new();
        let path = scratch.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let error = Key::load(&path).unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("key");
        let zeros = "0".repeat(64);
        for text in ["", "abc", &"0".repeat(63), &"g".repeat(64), &"1".repeat(200), &zeros] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let error = Key::load(&path).unwrap_err();
            assert!(matches!(error, KeyError::Malformed { .. }), "{text:?}: {error}");
        }
        let absent = Key::load(&scratch.path().join("none")).unwrap_err();
        assert_eq!(absent.code(), Code::InputMissing);
    }
}

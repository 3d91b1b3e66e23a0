//! Files that are opened without being led elsewhere, and without waiting.
//!
//! | function | for | a symbolic link | not there |
//! |---|---|---|---|
//! | [`read`] | notes, locks, keys | refused | an error |
//! | [`update`] | notes and locks that are kept open | refused | made, mode 0600 |
//! | [`replace`] | drafts that are renamed to their place | refused | made, mode 0600 |
//! | [`read_named`] | what a user names on the command line | followed | an error |
//!
//! Whatever is found must be a regular file: a FIFO would be waited for, and a device may have no
//! end. What is refused is [`ErrorKind::InvalidInput`], with [`NotRegular`] as its source.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a file of this program to be read.
///
/// # Errors
/// It cannot be opened, or [`NotRegular`].
pub fn read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), OFlags::NOFOLLOW, path)
}

/// Opens a file of this program to be read and written as it is; makes it if there is none.
///
/// # Errors
/// It cannot be opened or made, or [`NotRegular`].
pub fn update(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE);
    open(&mut options, OFlags::NOFOLLOW, path)
}

/// Opens a file of this program to be written from its beginning; makes it if there is none.
///
/// # Errors
/// It cannot be opened or made, or [`NotRegular`].
pub fn replace(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(PRIVATE);
    let file = open(&mut options, OFlags::NOFOLLOW, path)?;
    // Only now: what is refused is left as it is.
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file that a user named to be read, at the end of whatever links lead to it.
///
/// # Errors
/// It cannot be opened, or [`NotRegular`].
pub fn read_named(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), OFlags::empty(), path)
}

/// Only their owner may read what this program makes.
const PRIVATE: u32 = 0o600;

/// The standard library adds `O_CLOEXEC`.
fn open(options: &mut OpenOptions, follow: OFlags, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | follow;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let refused = |found| Err(io::Error::new(ErrorKind::InvalidInput, NotRegular { found }));
    match opened {
        Ok(file) => match Found::of(file.metadata()?.file_type()) {
            None => Ok(file),
            Some(found) => refused(found),
        },
        Err(error) => match Errno::from_io_error(&error) {
            // A link that is not followed, or a FIFO or a socket with no other end.
            Some(Errno::LOOP | Errno::NXIO) => {
                let found = path.symlink_metadata()?.file_type();
                Found::of(found).map_or(Err(error), refused)
            }
            _ => Err(error),
        },
    }
}

/// What was found where a regular file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A symbolic link, which is not followed.
    Link,
    /// A directory.
    Directory,
    /// A FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Found {
    fn of(kind: FileType) -> Option<Self> {
        if kind.is_file() {
            None
        } else if kind.is_symlink() {
            Some(Self::Link)
        } else if kind.is_dir() {
            Some(Self::Directory)
        } else if kind.is_fifo() {
            Some(Self::Pipe)
        } else if kind.is_socket() {
            Some(Self::Socket)
        } else {
            Some(Self::Device)
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Link => "a symbolic link",
            Self::Directory => "a directory",
            Self::Pipe => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// A path leads to something other than a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {} and no regular file", .found.name())]
pub struct NotRegular {
    /// What it is instead.
    pub found: Found,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    type Open = fn(&Path) -> io::Result<File>;
    const OWN: [Open; 3] = [read, update, replace];

    fn found(refused: io::Result<File>) -> Option<Found> {
        let error = refused.err()?;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        error.get_ref()?.downcast_ref::<NotRegular>().map(|it| it.found)
    }

    #[test]
    fn what_is_made_is_private_and_what_is_there_is_kept_or_replaced() {
        let scratch = Scratch::new();
        let path = scratch.path().join("note");
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::NotFound);
        for open in [update, replace] {
            let made = open(&path).unwrap().metadata().unwrap();
            assert_eq!(made.mode() & 0o777, 0o600);
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, "seven").unwrap();
        assert_eq!(update(&path).unwrap().metadata().unwrap().len(), 5);
        assert_eq!(replace(&path).unwrap().metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_link_is_followed_only_where_a_user_named_it() {
        let scratch = Scratch::new();
        let (target, link) = (scratch.path().join("target"), scratch.path().join("link"));
        fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        for open in OWN {
            assert_eq!(found(open(&link)), Some(Found::Link));
        }
        assert!(read_named(&link).is_ok());
        fs::remove_file(&target).unwrap();
        for open in OWN {
            assert_eq!(found(open(&link)), Some(Found::Link), "it leads nowhere");
        }
        assert_eq!(read_named(&link).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!target.exists(), "nothing was made through the link");
    }

    /// A FIFO whose other end is not open would be waited for.
    #[test]
    fn what_is_no_regular_file_is_refused_by_its_kind_at_once() {
        let scratch = Scratch::new();
        let fifo = scratch.path().join("fifo");
        mknodat(CWD, &fifo, Kind::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for open in [read, update, replace, read_named] {
            assert_eq!(found(open(&fifo)), Some(Found::Pipe));
            assert_eq!(found(open(Path::new("/dev/zero"))), Some(Found::Device));
        }
        for open in [read, read_named] {
            assert_eq!(found(open(scratch.path())), Some(Found::Directory));
        }
        // The system says it itself to who wants to write.
        for open in [update, replace] {
            assert_eq!(open(scratch.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        }
    }
}

//! Small files that are replaced as a whole and read only as they were written.
//!
//! ```text
//!   CRC-32C, 8 hexadecimal digits │ newline │ content
//! ```
//!
//! At most a megabyte. A kill leaves the old file or the new one. What a disk or a hand has changed
//! is not taken for what was written: its reader gets an error, never other content.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use weft_core::checksum::crc32c;

use crate::regular_file;

const SEAL_LEN: usize = 9;
const LEN_MAX: u64 = 1 << 20;

/// The content of the file at `path`; none if there is no file.
///
/// # Errors
/// It cannot be read; [`ErrorKind::InvalidData`] where it is not as it was saved. Either names it.
pub(crate) fn load(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let named = |kind, what| io::Error::new(kind, format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    // Of a longer one the seal does not hold.
    let read = regular_file::read(path).and_then(|it| it.take(LEN_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(error.kind(), error.to_string())),
    }
    let sealed = bytes.split_first_chunk();
    if sealed.is_none_or(|(digits, content)| *digits != seal(content)) {
        return Err(named(ErrorKind::InvalidData, "it is damaged".to_owned()));
    }
    bytes.drain(..SEAL_LEN);
    Ok(Some(bytes))
}

/// Replaces the file at `path`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn save(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = OsString::from(path);
    draft.push("-draft");
    let sealed = [&seal(content)[..], content].concat();
    if sealed.len() as u64 > LEN_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    regular_file::replace(Path::new(&draft))?.write_all(&sealed)?;
    fs::rename(&draft, path)
}

fn seal(content: &[u8]) -> [u8; SEAL_LEN] {
    let mut digits = [b'\n'; SEAL_LEN];
    digits[..8].copy_from_slice(format!("{:08x}", crc32c(content)).as_bytes());
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_comes_back_as_it_was_saved_last_and_nothing_lies_beside_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.tasks");
        assert_eq!(load(&path).unwrap(), None);
        for content in [&b"the first, which is longer"[..], b"", b"the last"] {
            save(&path, content).unwrap();
            assert_eq!(load(&path).unwrap().unwrap(), content);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_not_read_and_is_replaced_itself() {
        let scratch = Scratch::new();
        let (path, theirs) = (scratch.path().join("node-0.tasks"), scratch.path().join("theirs"));
        fs::write(&theirs, "precious").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let refused = load(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains("node-0.tasks: it is a symbolic link"), "{refused}");
        save(&path, b"ours").unwrap();
        assert_eq!(load(&path).unwrap().unwrap(), b"ours");
        std::os::unix::fs::symlink(&theirs, scratch.path().join("node-0.tasks-draft")).unwrap();
        assert!(save(&path, b"ours").is_err());
        assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    }

    #[test]
    fn a_damaged_file_is_refused_whatever_is_wrong_with_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.tasks");
        save(&path, b"four tasks").unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            for bytes in [&damaged[..], &whole[..at]] {
                fs::write(&path, bytes).unwrap();
                assert_eq!(load(&path).unwrap_err().kind(), ErrorKind::InvalidData, "{at}");
            }
        }
    }
}

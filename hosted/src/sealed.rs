//! Small files that are replaced as a whole and read only as they were written.
//!
//! ```text
//!   CRC-32C, 8 hexadecimal digits │ newline │ content
//! ```
//!
//! A kill leaves the old file or the new one. What a disk or a hand has changed is told from what
//! was written: its reader gets an error, never other content.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use weft_core::checksum::crc32c;

const SEAL_LEN: usize = 9;

/// The content of the file at `path`; none if there is no file.
///
/// # Errors
/// It cannot be read; [`ErrorKind::InvalidData`] where it is not as it was saved.
pub(crate) fn load(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let sealed = bytes.split_first_chunk();
    if sealed.is_none_or(|(digits, content)| *digits != seal(content)) {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("{} is damaged", path.display()),
        ));
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
    fs::write(&draft, [&seal(content)[..], content].concat())?;
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

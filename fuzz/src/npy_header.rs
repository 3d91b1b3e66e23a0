//! A `.npy` file: any bytes, no panic; what is accepted is within the file, and the header that is
//! written for its shape is read as that shape.

use weft::explain::Explain;
use weft::tensor::file::npy;

/// Reads `bytes` as a file.
pub fn run(bytes: &[u8]) {
    let len = bytes.len() as u64;
    match npy::read(&mut &*bytes, len) {
        Err(error) => assert!(!error.to_string().is_empty() && !error.cure().is_empty()),
        Ok(entry) => {
            assert_eq!(entry.offset + entry.shape.bytes(), len);
            let written = npy::header(entry.shape).expect("a type that was read");
            let whole = written.len() as u64 + entry.shape.bytes();
            let again = npy::read(&mut &written[..], whole).expect("it was written");
            assert_eq!(again.shape, entry.shape);
        }
    }
}

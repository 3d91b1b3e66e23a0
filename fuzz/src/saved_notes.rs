//! The notes that a node finds beyond its processes: the incarnation, the last term, the tasks and
//! the database.
//!
//! ```text
//! first byte: which note, and whether its seal is made right │ the file
//! ```
//!
//! Any bytes are refused or understood, without a panic, and what is saved over them is found
//! again.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A private folder of this process. Nothing of Weft may lie in /dev/shm, so not there.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("weft-fuzz-{}", std::process::id()));
    let _before = fs::remove_dir_all(&folder);
    fs::DirBuilder::new().mode(0o700).create(&folder).expect("it can be made");
    folder
});

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    weft::node::heard::note(&FOLDER.join("note"), *which, bytes);
}

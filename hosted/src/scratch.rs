//! A directory for one test, below the build directory and gone with the test.
//!
//! Not the system's temporary directory: that nothing of Weft appears there is a promise, and
//! tests that broke it would hide those who do. It is
//! found from the test program's own path, which is right under any target directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// An empty directory of mode 0700.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let test = env::current_exe().expect("the test program has a path");
        let profile = test.ancestors().nth(2).expect("tests run below target/<profile>/deps");
        // Short, because socket paths below it have 107 bytes.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = profile.join("tmp").join(format!("s{}-{count}", process::id()));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&path).expect("the build directory is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that fails to clean up has already said more important things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! A file that a command makes: there as a whole, or not at all.
//!
//! ```text
//!   begin ──▶ .NAME.PID beside the target ── write … ── finish ──▶ synced, renamed
//!     └─ cannot be made: refused before the work     └─ dropped before: removed
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::failure::Failure;
use crate::explain::Code;
use crate::process::start_thread;

/// A file on its way.
#[derive(Debug)]
pub(super) struct Draft {
    target: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
}

impl Draft {
    /// Begins a file that is going to replace `target`.
    pub(super) fn begin(target: &Path) -> Result<Self, Failure> {
        // A link stays one: what it names is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let refused = |error: io::Error| unwritable(&target, &error);
        match fs::metadata(&target) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(refused(io::Error::other("it is no regular file")));
            }
            Ok(_) => drop(OpenOptions::new().append(true).open(&target).map_err(refused)?),
            Err(_) => {}
        }
        let name = target.file_name().ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
        let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
        let path = target.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(refused)?;
        Ok(Self { target, path, file: BufWriter::new(file) })
    }

    /// As [`Self::begin`], for a command that a signal ends: nothing is left then either.
    pub(super) fn begin_interruptible(target: &Path) -> Result<Self, Failure> {
        let draft = Self::begin(target)?;
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| {
            let cause = format!("signals cannot be listened for: {error}");
            Failure::of(Code::Internal, cause, "`weft doctor` shows what is missing")
        })?;
        let path = draft.path.clone();
        let listening = start_thread("weft-signals", move || {
            for signal in signals.forever() {
                // It may be in its place by now.
                let _ = fs::remove_file(&path);
                // Ends the process, as the signal would have.
                let _ = emulate_default_handler(signal);
            }
        });
        listening.map_err(Failure::new)?;
        Ok(draft)
    }

    /// Writes what comes next.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| unwritable(&self.target, &error))
    }

    /// Puts what was written in its place.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let renamed = written.and_then(|()| fs::rename(&self.path, &self.target));
        renamed.map_err(|error| unwritable(&self.target, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Nothing is there any more under this name once it was put in its place.
        let _ = fs::remove_file(&self.path);
    }
}

fn unwritable(target: &Path, error: &io::Error) -> Failure {
    let cause = format!("{} cannot be written: {error}", target.display());
    Failure::of(
        Code::Output,
        cause,
        "give the path of a file that you may write, with room behind it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn names(scratch: &Scratch) -> Vec<String> {
        let entries = fs::read_dir(scratch.path()).expect("a directory");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.map(|entry| name(entry.expect("an entry"))).collect()
    }

    #[test]
    fn a_draft_replaces_its_target_as_a_whole_or_leaves_it_alone() {
        let scratch = Scratch::new();
        let target = scratch.path().join("story.svg");
        fs::write(&target, "old").expect("a file");
        drop(Draft::begin(&target).expect("it can be written"));
        assert_eq!(fs::read_to_string(&target).expect("a file"), "old");
        let mut draft = Draft::begin(&target).expect("it can be written");
        draft.write(b"ne").and_then(|()| draft.write(b"w")).expect("it can be written");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "old");
        draft.finish().expect("it can be written");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "new");
        assert_eq!(names(&scratch), ["story.svg"]);
    }

    #[test]
    fn what_cannot_become_a_file_is_refused_at_once() {
        let scratch = Scratch::new();
        let folder = scratch.path().to_owned();
        for target in
            [folder.clone(), folder.join("no/such"), PathBuf::from("/dev/full"), "/".into()]
        {
            let refused = Draft::begin(&target).expect_err("no file");
            assert_eq!(refused.code(), Code::Output, "{}", target.display());
        }
        assert_eq!(names(&scratch), [""; 0]);
    }
}

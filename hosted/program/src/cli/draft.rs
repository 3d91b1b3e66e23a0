//! A file that a command makes: there as a whole, or not at all.
//!
//! ```text
//!   begin ──▶ a file without a name ── write … ── finish ──▶ synced, named as the target
//!     └─ cannot be made: refused before the work     └─ dropped before: gone, however that was
//! ```
//!
//! Where the file system has no files without names, it is `.NAME.PID` beside the target, removed
//! unless the process is killed. A target that is there already is replaced by way of that name.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::failure::{Failure, cure_of_write};
use weft::explain::Code;
use weft::process::start_thread;

/// A file on its way.
#[derive(Debug)]
pub(super) struct Draft {
    target: PathBuf,
    /// The name that it has, or takes for a moment.
    path: PathBuf,
    form: DraftForm,
    file: BufWriter<File>,
}

/// Whether it can be seen before it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DraftForm {
    Nameless,
    Named,
}

impl Draft {
    /// Begins a file that is going to replace `target`.
    pub(super) fn begin(target: &Path) -> Result<Self, Failure> {
        // A link stays one: what it names is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let refused = |error: io::Error| unwritable(&target, &error);
        let replaced = fs::metadata(&target).ok();
        if let Some(metadata) = &replaced {
            if !metadata.is_file() {
                let cause =
                    format!("{} is not a regular file, so it cannot be replaced", target.display());
                let cure = "give the path of a regular file; what a command prints goes anywhere, \
                            with `>`";
                return Err(Failure::of(Code::Output, cause, cure));
            }
            drop(OpenOptions::new().append(true).open(&target).map_err(refused)?);
        }
        let name = target.file_name().ok_or_else(|| refused(ErrorKind::InvalidInput.into()))?;
        let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
        let path = target.with_file_name(name);
        let draft = match nameless(&target) {
            Some(file) => {
                Self { target, path, form: DraftForm::Nameless, file: BufWriter::new(file) }
            }
            None => Self::begin_named(target, path)?,
        };
        draft.take_after(replaced.as_ref())?;
        Ok(draft)
    }

    /// Gives the new file the permissions of the file that it replaces.
    fn take_after(&self, replaced: Option<&Metadata>) -> Result<(), Failure> {
        let Some(replaced) = replaced else { return Ok(()) };
        let set = self.file.get_ref().set_permissions(replaced.permissions());
        set.map_err(|error| unwritable(&self.target, &error))
    }

    fn begin_named(target: PathBuf, path: PathBuf) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| unwritable(&target, &error))?;
        Ok(Self { target, path, form: DraftForm::Named, file: BufWriter::new(file) })
    }

    /// As [`Self::begin`], for a command that a signal ends: nothing is left then either.
    pub(super) fn begin_interruptible(target: &Path) -> Result<Self, Failure> {
        let draft = Self::begin(target)?;
        if draft.form == DraftForm::Nameless {
            return Ok(draft);
        }
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
        written.and_then(|()| self.put()).map_err(|error| unwritable(&self.target, &error))
    }

    fn put(&mut self) -> io::Result<()> {
        if self.form == DraftForm::Nameless {
            match link(self.file.get_ref(), &self.target) {
                Err(Errno::EXIST) => link(self.file.get_ref(), &self.path)?,
                linked => return Ok(linked?),
            }
            self.form = DraftForm::Named;
        }
        fs::rename(&self.path, &self.target)
    }
}

/// An unnamed file in the folder of `target`, if the file system has such files and can name them.
fn nameless(target: &Path) -> Option<File> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(open(folder.unwrap_or(Path::new(".")), flags, mode).ok()?);
    fs::metadata(own_path(&file)).is_ok().then_some(file)
}

/// Names a file that has no name.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    linkat(CWD, own_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// By what name this process itself finds a file.
fn own_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.form == DraftForm::Named {
            // Nothing is there any more under this name once it was put in its place.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unwritable(target: &Path, error: &io::Error) -> Failure {
    let cause = format!("{} cannot be written: {error}", target.display());
    let cure = match error.kind() {
        ErrorKind::FileTooLarge => cure_of_write(error),
        _ => "give the path of a file that you may write, on a file system with enough free space",
    };
    Failure::of(Code::Output, cause, cure)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::Scratch;

    fn names(scratch: &Scratch) -> Vec<String> {
        let entries = fs::read_dir(scratch.path()).expect("a directory");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.map(|entry| name(entry.expect("an entry"))).collect()
    }

    /// Drafts of `target`, with and without a name.
    fn drafts(target: &Path) -> [Draft; 2] {
        let named = Draft::begin_named(target.to_owned(), target.with_file_name(".named"));
        [Draft::begin(target), named].map(|draft| draft.expect("it can be written"))
    }

    #[test]
    fn a_draft_replaces_its_target_as_a_whole_or_leaves_it_alone() {
        let scratch = Scratch::new();
        let target = scratch.path().join("story.svg");
        fs::write(&target, "old").expect("a file");
        drop(drafts(&target));
        let text = || fs::read_to_string(&target).expect("a file");
        for mut draft in drafts(&target) {
            let before = text();
            draft.write(b"ne").and_then(|()| draft.write(b"w")).expect("it can be written");
            assert_eq!(text(), before);
            draft.write(&[b'0' + draft.form as u8]).expect("it can be written");
            let written = format!("new{}", draft.form as u8);
            draft.finish().expect("it can be written");
            assert_eq!(text(), written);
        }
        assert_eq!(names(&scratch), ["story.svg"]);
    }

    #[test]
    fn who_may_read_a_file_stays_as_it_was() {
        let scratch = Scratch::new();
        let target = scratch.path().join("secret");
        fs::write(&target, "old").expect("a file");
        for mode in [0o600, 0o640] {
            fs::set_permissions(&target, Permissions::from_mode(mode)).expect("a file");
            let mut draft = Draft::begin(&target).expect("it can be written");
            draft.write(b"new").and_then(|()| draft.finish()).expect("it can be written");
            let is = fs::metadata(&target).expect("a file").permissions().mode();
            assert_eq!(is & 0o777, mode);
        }
    }

    #[test]
    fn a_draft_becomes_a_file_that_was_not_there() {
        let scratch = Scratch::new();
        let target = scratch.path().join("story.svg");
        for mut draft in drafts(&target) {
            draft.write(b"new").expect("it can be written");
            assert!(!target.exists());
            draft.finish().expect("it can be written");
            assert_eq!(fs::read_to_string(&target).expect("a file"), "new");
            fs::remove_file(&target).expect("it is there");
        }
        assert_eq!(names(&scratch), [""; 0]);
    }

    #[test]
    fn nothing_is_seen_of_a_draft_where_files_need_no_names() {
        let scratch = Scratch::new();
        let target = scratch.path().join("story.svg");
        let Some(_) = nameless(&target) else { return };
        let mut draft = Draft::begin_interruptible(&target).expect("it can be written");
        draft.write(b"new").expect("it can be written");
        assert_eq!(names(&scratch), [""; 0], "so nothing is left of who is killed");
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

//! Looking for a program as execvp does, so that a missing one is refused before it is needed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::explain::{Code, Explain};

/// A program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program {program} {why}")]
pub struct ProgramError {
    /// Its path or name as it was given.
    pub program: String,
    /// The reason.
    pub why: String,
}

impl Explain for ProgramError {
    fn code(&self) -> Code {
        Code::InputMissing
    }

    fn cure(&self) -> String {
        "give the path of an executable file, or the name of one in PATH".to_owned()
    }
}

/// The absolute path of `program`, a path or a name that is looked up in `PATH`.
///
/// # Errors
/// [`ProgramError`]: there is no such file, or it is not executable.
pub fn find_program(program: &str) -> Result<PathBuf, ProgramError> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.contains('/') {
        true => Some(PathBuf::from(program)),
        false => std::env::split_paths(&paths)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file()),
    };
    let missing = |why: &str| ProgramError { program: program.to_owned(), why: why.to_owned() };
    let path = found.ok_or_else(|| missing("is not found in PATH"))?;
    let metadata = path.metadata().map_err(|error| missing(&format!("cannot be run: {error}")))?;
    if !metadata.is_file() || access(&path, Access::EXEC_OK).is_err() {
        return Err(missing("is not an executable file"));
    }
    // A file that cannot be read can still be run, unless it is a script.
    if let Some(interpreter) = head(&path).ok().as_deref().and_then(interpreter)
        && access(&interpreter, Access::EXEC_OK).is_err()
    {
        return Err(missing(&format!("names an interpreter that cannot be run: {interpreter:?}")));
    }
    std::path::absolute(path).map_err(|error| missing(&error.to_string()))
}

/// As much of a file as the kernel reads to see how to run it.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut head)?;
    Ok(head)
}

/// The interpreter that the first line of a script names, behind `#!`.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let first = line.split(|byte| b" \t".contains(byte)).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_in_its_first_line() {
        let named = |text: &str| interpreter(text.as_bytes());
        assert_eq!(named("#! /bin/sh -e\nexit\n"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(named("#!/bin/sh\r\n"), Some(PathBuf::from("/bin/sh\r")));
        assert_eq!(named("# text\n"), None);
        assert_eq!(named("#!\n"), None);
    }

    #[test]
    fn a_program_is_found_by_path_or_by_name() {
        assert!(find_program("sh").is_ok_and(|path| path.is_absolute()));
        assert!(find_program("/bin/sh").is_ok());
        for (program, why) in [
            ("no-such-program", "is not found in PATH"),
            ("", "is not found in PATH"),
            ("/bin", "is not an executable file"),
            ("/etc/passwd", "is not an executable file"),
            ("/no/such", "cannot be run: No such file or directory (os error 2)"),
        ] {
            let error = find_program(program).expect_err(program);
            assert_eq!(error.why, why, "{program}");
        }
    }
}

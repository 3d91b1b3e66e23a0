//! Which directory holds the control sockets.
//!
//! | in this order | where |
//! |---|---|
//! | `$WEFT_RUNTIME_DIR` | as it is; refused, not skipped, if it cannot be used |
//! | `$XDG_RUNTIME_DIR` | `weft` below it, if it is there and this user's |
//! | `/run/user/<uid>` | the same without the variable, as under `su` or cron |
//! | uid 0 | `/run/weft` |
//! | `$XDG_STATE_HOME` | `weft/run` below it |
//! | `$HOME` | `.local/state/weft/run` below it |
//!
//! Of its own accord never below a directory that all users share: unless the user names one there,
//! as `mktemp -d` makes it, nothing of Weft appears in `/tmp` or `/dev/shm`. Relative paths are
//! skipped, as the XDG specification asks. The environment is read in one place, so the choice
//! itself is a function of plain values.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::error::RuntimeDirError;

/// What the choice depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `$WEFT_RUNTIME_DIR`.
    pub weft_runtime_dir: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`, if it is a directory of this user; a value left over from another
    /// user's session is none.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `/run/user/<uid>`, if it is a directory of this user.
    pub run_user_dir: Option<PathBuf>,
    /// `$XDG_STATE_HOME`.
    pub xdg_state_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// The effective user.
    pub uid: u32,
}

impl Environment {
    /// Reads the variables and looks at the directories that depend on the user.
    #[must_use]
    pub fn read() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let variable = |name| env::var_os(name).map(PathBuf::from);
        let own = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.is_dir() && found.uid() == uid)
        };
        Self {
            weft_runtime_dir: variable("WEFT_RUNTIME_DIR"),
            xdg_runtime_dir: variable("XDG_RUNTIME_DIR").filter(own),
            run_user_dir: Some(PathBuf::from(format!("/run/user/{uid}"))).filter(own),
            xdg_state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
            uid,
        }
    }
}

impl Environment {
    /// The directory that the user has named; an empty variable counts as unset, as everywhere.
    pub(super) fn given(&self) -> Option<&Path> {
        self.weft_runtime_dir.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// The directory for this environment; whether it can be used is not looked at.
///
/// # Errors
/// `$WEFT_RUNTIME_DIR` is relative, nothing is set, or only what is in a shared directory.
pub fn choose(environment: &Environment) -> Result<PathBuf, RuntimeDirError> {
    if let Some(path) = environment.given() {
        if !path.is_absolute() {
            return Err(RuntimeDirError::Relative { path: path.to_owned() });
        }
        return Ok(path.to_owned());
    }
    let root = Some(PathBuf::from("/run")).filter(|_| environment.uid == 0);
    let mut refused = RuntimeDirError::NoPlace;
    for (variable, base, below) in [
        ("XDG_RUNTIME_DIR", &environment.xdg_runtime_dir, "weft"),
        ("", &environment.run_user_dir, "weft"),
        ("", &root, "weft"),
        ("XDG_STATE_HOME", &environment.xdg_state_home, "weft/run"),
        ("HOME", &environment.home, ".local/state/weft/run"),
    ] {
        let Some(base) = base.as_ref().filter(|base| base.is_absolute()) else { continue };
        match shared_root(base) {
            None => return Ok(base.join(below)),
            Some(root) => {
                refused = RuntimeDirError::SharedBase { variable, base: base.clone(), root };
            }
        }
    }
    Err(refused)
}

/// The directory shared by all users that `path` is in or below, if it is.
pub(super) fn shared_root(path: &Path) -> Option<&'static str> {
    const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run/shm"];
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    SHARED.into_iter().find(|root| plain.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Explain;

    const NOTHING: Environment = Environment {
        weft_runtime_dir: None,
        xdg_runtime_dir: None,
        run_user_dir: None,
        xdg_state_home: None,
        home: None,
        uid: 1000,
    };

    type Change = fn(&mut Environment);

    #[test]
    fn the_order_is_the_documented_one() {
        let mut environment = Environment {
            weft_runtime_dir: Some("/srv/weft".into()),
            xdg_runtime_dir: Some("/run/user/1000".into()),
            run_user_dir: Some("/run/user/0".into()),
            xdg_state_home: Some("/home/w/state".into()),
            home: Some("/home/w".into()),
            uid: 0,
        };
        let steps: [(&str, Change); 6] = [
            ("/srv/weft", |e| e.weft_runtime_dir = None),
            ("/run/user/1000/weft", |e| e.xdg_runtime_dir = None),
            ("/run/user/0/weft", |e| e.run_user_dir = None),
            ("/run/weft", |e| e.uid = 1000),
            ("/home/w/state/weft/run", |e| e.xdg_state_home = None),
            ("/home/w/.local/state/weft/run", |e| e.home = None),
        ];
        for (chosen, remove) in steps {
            assert_eq!(choose(&environment).expect(chosen), Path::new(chosen));
            remove(&mut environment);
        }
        assert!(matches!(choose(&environment), Err(RuntimeDirError::NoPlace)));
    }

    #[test]
    fn a_given_directory_is_taken_wherever_it_is_unless_it_is_relative() {
        let given =
            |path: &str| choose(&Environment { weft_runtime_dir: Some(path.into()), ..NOTHING });
        for path in ["/srv/weft", "/tmp/tmp.Xq7", "/srv/../tmp/weft", "/var/tmp/x", "/dev/shm/w"] {
            assert_eq!(given(path).expect(path), Path::new(path));
        }
        assert!(matches!(given("weft"), Err(RuntimeDirError::Relative { .. })));
    }

    #[test]
    fn other_candidates_that_are_shared_or_relative_are_skipped() {
        let environment = Environment {
            weft_runtime_dir: Some("".into()),
            xdg_runtime_dir: Some("/tmp/runtime-w".into()),
            xdg_state_home: Some("state".into()),
            home: Some("/tmpfs/w".into()),
            ..NOTHING
        };
        let chosen = choose(&environment).expect("a home");
        assert_eq!(chosen, Path::new("/tmpfs/w/.local/state/weft/run"));
    }

    #[test]
    fn a_home_below_a_shared_directory_is_refused_with_that_reason() {
        let environment = Environment {
            xdg_state_home: Some("state".into()),
            home: Some("/var/tmp/w".into()),
            ..NOTHING
        };
        let refused = choose(&environment).expect_err("nothing else is set");
        let said = "HOME is /var/tmp/w, which is in /var/tmp, and all users share /var/tmp";
        assert_eq!(refused.to_string(), said);
        assert!(refused.cure().starts_with("set WEFT_RUNTIME_DIR"), "{}", refused.cure());
    }
}

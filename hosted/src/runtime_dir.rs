//! Where the control sockets of running clusters live.
//!
//! ```text
//! <runtime dir>/          0700, this user's; see `choose` for which one
//!   <cluster>/            0700, while the cluster runs
//!     lock                held by flock while a process of the cluster lives; its instance number
//!     cluster.toml        the cluster as it was started
//!     node-<rank>.sock    the control socket of each node
//! ```
//!
//! A cluster is alive while a process holds its `lock`, in whatever mode: the kernel lets go
//! of it when the last process ends, however it ends, so a cluster that was killed is seen to
//! be dead at once and no pid is ever compared. `weft up` holds the lock exclusively and owns
//! the name alone ([`RuntimeDir::claim`]). Nodes started by hand hold it shared, beside each
//! other but never beside an `up` ([`RuntimeDir::join`]).
//!
//! A process that looks at or changes a lock holds the *gate* meanwhile: a flock on the
//! runtime directory itself. Without it a look could be mistaken for an owner, two starts
//! could clear each other's files away, and a lock file could be unlinked under one who has
//! opened and not yet locked it.
//!
//! A directory that is chosen has nothing above it that others may replace. One that the user
//! names is taken wherever it is.
//!
//! Non-goal: guarding against other processes of the same user.

mod choice;
mod claim;
mod claim_error;
mod cluster_dir;
mod error;
mod find_error;
mod gate;
mod lock;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub use choice::{Environment, choose};
pub use claim::ClaimedDir;
pub use claim_error::ClaimError;
pub use cluster_dir::ClusterDir;
pub(crate) use cluster_dir::end_remains;
pub use error::RuntimeDirError;
pub use find_error::FindError;

use crate::cluster::ClusterName;
use gate::LockGate;
use lock::{Lock, Mode};

/// The directory of all running clusters of this user.
#[derive(Clone, Debug)]
pub struct RuntimeDir {
    path: PathBuf,
}

/// Whether any process of a cluster runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// A process holds the lock.
    Alive,
    /// The directory was left behind.
    Dead,
}

impl RuntimeDir {
    /// Opens the directory that the environment chooses; makes it if there is none.
    ///
    /// # Errors
    /// No place is left to choose, others may replace what is above it, or [`at`](Self::at) refuses
    /// it.
    pub fn open() -> Result<Self, RuntimeDirError> {
        let environment = Environment::read();
        let path = choose(&environment)?;
        // A user may name a private directory anywhere.
        if environment.given().is_some() {
            return Self::at(path);
        }
        check_above(&path)?;
        let dir = Self::at(path)?;
        // A link on the way may lead to where the chosen path does not.
        let real = dir.path.canonicalize().map_err(failed("resolve", &dir.path))?;
        match choice::shared_root(&real) {
            Some(root) => Err(RuntimeDirError::Shared { path: dir.path, root }),
            None => Ok(dir),
        }
    }

    /// Opens `path`; makes it, with mode 0700, if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or is a link, another user's, or open to others.
    pub fn at(mut path: PathBuf) -> Result<Self, RuntimeDirError> {
        // Without a slash or a dot at its end, by which the system would follow a link.
        path = path.components().collect();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        match made {
            // The check below reports what is there instead of a directory.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create", &path)(error));
            }
            Ok(()) | Err(_) => {}
        }
        check_private(&path)?;
        Ok(Self { path })
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a name for this process alone, as `weft up` does, and clears away what a killed
    /// cluster of that name left behind.
    ///
    /// # Errors
    /// A living cluster has the name, or the directory cannot be used.
    pub fn claim(&self, name: &ClusterName) -> Result<ClaimedDir, ClaimError> {
        let gate = LockGate::enter(&self.path)?;
        let dir = self.make(name)?;
        let Some(lock) = Lock::take(&dir, Mode::Exclusive)? else {
            return Err(ClaimError::NameInUse { name: name.clone() });
        };
        dir.clear(&gate)?;
        lock.draw_instance().map_err(failed("write", &dir.lock_file()))?;
        Ok(ClaimedDir::new(dir, lock)?)
    }

    /// Takes a name together with other nodes that were started by hand. The first of them
    /// clears away what a killed cluster left behind.
    ///
    /// # Errors
    /// A `weft up` has the name, or the directory cannot be used.
    pub fn join(&self, name: &ClusterName) -> Result<ClaimedDir, ClaimError> {
        let gate = LockGate::enter(&self.path)?;
        let dir = self.make(name)?;
        if let Some(alone) = Lock::take(&dir, Mode::Exclusive)? {
            dir.clear(&gate)?;
            alone.draw_instance().map_err(failed("write", &dir.lock_file()))?;
            alone.release();
        }
        let Some(lock) = Lock::take(&dir, Mode::Shared)? else {
            return Err(ClaimError::OneOwner { name: name.clone() });
        };
        Ok(ClaimedDir::new(dir, lock)?)
    }

    /// The directory of a living cluster.
    ///
    /// # Errors
    /// There is no such cluster, or it is dead.
    pub fn find(&self, name: &ClusterName) -> Result<ClusterDir, FindError> {
        let dir = ClusterDir::below(&self.path, name);
        let gate = LockGate::enter(&self.path)?;
        match dir.liveness(&gate)? {
            Some(Liveness::Alive) => {
                check_private(dir.path())?;
                Ok(dir)
            }
            Some(Liveness::Dead) => Err(FindError::Dead { name: name.clone() }),
            None => {
                drop(gate);
                let running = self.list()?.into_iter();
                let running = running.filter(|(_, liveness)| *liveness == Liveness::Alive);
                Err(FindError::NotRunning {
                    name: name.clone(),
                    dir: self.path.clone(),
                    running: running.map(|(name, _)| name).collect(),
                })
            }
        }
    }

    /// Clears away what a cluster left behind whose processes are all dead; returns where it was.
    ///
    /// # Errors
    /// [`ClaimError::NameInUse`], when it lives; [`ClaimError::Dir`].
    pub fn clear(&self, name: &ClusterName) -> Result<ClusterDir, ClaimError> {
        let claimed = self.claim(name)?;
        let dir = claimed.dir().clone();
        claimed.remove().map_err(ClaimError::Dir)?;
        Ok(dir)
    }

    /// All clusters that have a directory, in the order of their names.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn list(&self) -> Result<Vec<(ClusterName, Liveness)>, RuntimeDirError> {
        let gate = LockGate::enter(&self.path)?;
        let mut clusters = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed("list", &self.path))? {
            let entry = entry.map_err(failed("list", &self.path))?;
            let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let dir = ClusterDir::below(&self.path, &name);
            if let Some(liveness) = dir.liveness(&gate)? {
                clusters.push((name, liveness));
            }
        }
        clusters.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(clusters)
    }

    fn make(&self, name: &ClusterName) -> Result<ClusterDir, RuntimeDirError> {
        let dir = ClusterDir::below(&self.path, name);
        // Refused now, not when the last node comes up and finds its path a byte too long.
        dir.metrics_socket(crate::cluster::Cluster::NODES_MAX - 1)?;
        match DirBuilder::new().mode(0o700).create(dir.path()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                check_private(dir.path())?;
                dir.check_ours()?;
            }
            Err(error) => return Err(failed("create", dir.path())(error)),
        }
        Ok(dir)
    }
}

/// Refuses whatever is not a directory that this user alone may enter, read and write.
fn check_private(path: &Path) -> Result<(), RuntimeDirError> {
    const OPEN_TO_OTHERS: u32 = 0o077;
    let found = path.symlink_metadata().map_err(failed("inspect", path))?;
    let path = path.to_owned();
    if found.is_symlink() {
        return Err(RuntimeDirError::Link { path });
    }
    if !found.is_dir() {
        return Err(RuntimeDirError::NotDirectory { path });
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(RuntimeDirError::Foreign { path, owner: found.uid() });
    }
    if found.mode() & OPEN_TO_OTHERS != 0 {
        return Err(RuntimeDirError::Open { path, mode: found.mode() & 0o7777 });
    }
    Ok(())
}

/// Refuses a path whose directories others may replace: one of those above it that exist has a mode
/// by which others may rename what is in it. A group of the user alone, of the user's own number as
/// Debian makes it, is no other.
fn check_above(path: &Path) -> Result<(), RuntimeDirError> {
    const GROUP: u32 = 0o020;
    const OTHERS: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let there = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("/"));
    let real = there.canonicalize().map_err(failed("resolve", there))?;
    for above in real.ancestors() {
        let found = above.metadata().map_err(failed("inspect", above))?;
        let is_own_group = found.uid() == user && found.gid() == user;
        let by_others = if is_own_group { OTHERS } else { GROUP | OTHERS };
        if found.mode() & by_others != 0 && found.mode() & STICKY == 0 {
            let (path, above) = (path.to_owned(), above.to_owned());
            return Err(RuntimeDirError::Replaceable { path, above, mode: found.mode() & 0o7777 });
        }
    }
    Ok(())
}

/// Turns an error of the system into ours, once it is known what was tried where.
fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> RuntimeDirError + use<E> {
    let path = path.to_owned();
    move |error| RuntimeDirError::System { action, path, source: error.into() }
}

#[cfg(test)]
mod tests;

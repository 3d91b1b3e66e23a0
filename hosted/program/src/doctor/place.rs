//! The place of the control sockets: can it be used, and is anything left behind there?
//!
//! The runtime directory is opened as every command opens it, so what the doctor says is what
//! they will meet. One that is not there yet is not made: it is only asked whether it could
//! be. Clusters that were killed are named, because their files are what a user sees of them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::Finding;
use weft::cluster::ClusterName;
use weft::explain::Explain;
use weft::runtime_dir::{Environment, Liveness, RuntimeDir, RuntimeDirError, choose};

/// The runtime directory and the clusters in it.
pub(super) struct RuntimePlace {
    path: PathBuf,
    clusters: Vec<(ClusterName, Liveness)>,
}

pub(super) fn probe() -> Result<RuntimePlace, RuntimeDirError> {
    let path = choose(&Environment::read())?;
    if is_absent(&path) {
        check_can_be_made(&path)?;
        return Ok(RuntimePlace { path, clusters: Vec::new() });
    }
    let dir = RuntimeDir::open()?;
    let clusters = dir.list()?;
    Ok(RuntimePlace { path: dir.path().to_owned(), clusters })
}

pub(super) fn advise(place: &Result<RuntimePlace, RuntimeDirError>) -> Finding {
    const SUBJECT: &str = "runtime directory";
    let place = match place {
        Ok(place) => place,
        Err(error) => {
            return Finding::missing(SUBJECT, "cannot be used")
                .because(error.to_string())
                .cured_by(error.cure());
        }
    };
    let names = |wanted: Liveness| -> Vec<&str> {
        let chosen = place.clusters.iter().filter(|(_, liveness)| *liveness == wanted);
        chosen.map(|(name, _)| name.as_str()).collect()
    };
    let alive = names(Liveness::Alive);
    let dead = names(Liveness::Dead);
    let path = place.path.display();
    let found = match alive.as_slice() {
        [] => path.to_string(),
        alive => format!("{path}, running: {}", alive.join(", ")),
    };
    match dead.as_slice() {
        [] => Finding::good(SUBJECT, found),
        names => Finding::warning(SUBJECT, found)
            .because(format!("killed clusters left their files behind: {}", dead.join(", ")))
            .cured_by(removal(&place.path, names)),
    }
}

/// How the files of dead clusters are removed.
fn removal(path: &Path, names: &[&str]) -> String {
    let directories: Vec<_> = names.iter().map(|name| path.join(name)).collect();
    let directories: Vec<_> = directories.iter().map(|it| it.display().to_string()).collect();
    format!("run `rm -r {}`; a new cluster of the name removes them, too", directories.join(" "))
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn check_can_be_made(path: &Path) -> Result<(), RuntimeDirError> {
    // The root is always there.
    let nearest = path.ancestors().find(|level| !is_absent(level)).unwrap_or(path);
    access(nearest, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| RuntimeDirError::System {
        action: "create",
        path: path.to_owned(),
        source: errno.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn place(clusters: &[(&str, Liveness)]) -> RuntimePlace {
        let clusters = clusters.iter().map(|(name, liveness)| {
            let name = name.parse().expect("a legal name");
            (name, *liveness)
        });
        RuntimePlace { path: PathBuf::from("/run/weft"), clusters: clusters.collect() }
    }

    #[test]
    fn the_dead_are_warned_of_and_the_living_listed() {
        let unusable = Err(RuntimeDirError::NoPlace);
        for (place, verdict, found, cure) in [
            (Ok(place(&[])), Severity::Good, "/run/weft", ""),
            (Ok(place(&[("a", Liveness::Alive)])), Severity::Good, "/run/weft, running: a", ""),
            (
                Ok(place(&[
                    ("a", Liveness::Alive),
                    ("b", Liveness::Dead),
                    ("bench-7", Liveness::Dead),
                ])),
                Severity::Warning,
                "/run/weft, running: a",
                "rm -r /run/weft/b /run/weft/bench-7`",
            ),
            (unusable, Severity::Missing, "cannot be used", "WEFT_RUNTIME_DIR"),
        ] {
            let finding = advise(&place);
            assert_eq!((finding.verdict, finding.found.as_str()), (verdict, found));
            assert!(finding.cure.contains(cure), "{finding:?}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_told_before_it_is_tried() {
        let scratch = crate::scratch::Scratch::new();
        assert!(check_can_be_made(&scratch.path().join("a/b")).is_ok());
        assert!(is_absent(&scratch.path().join("a")));
        let file = scratch.path().join("file");
        std::fs::write(&file, "").expect("the directory is ours");
        let error = check_can_be_made(&file.join("weft")).expect_err("below a file");
        assert!(matches!(error, RuntimeDirError::System { action: "create", .. }), "{error}");
    }
}

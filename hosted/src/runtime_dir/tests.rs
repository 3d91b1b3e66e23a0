//! Runtime directories that are made, refused, claimed, shared and left behind.
//!
//! A killed cluster is imitated by the files it leaves, which is all that is left of one: the
//! kernel drops its lock. What inherits a lock is imitated by a second descriptor of the same
//! open file, which is what a child has.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::geteuid;

use super::*;
use crate::cluster::Cluster;
use crate::explain::{Code, Explain};
use crate::scratch::Scratch;

fn runtime_dir(scratch: &Scratch) -> RuntimeDir {
    RuntimeDir::at(scratch.path().join("run")).expect("the scratch directory is ours")
}

fn name(text: &str) -> ClusterName {
    text.parse().expect(text)
}

/// What `kill -9` of every process of cluster `t` leaves.
fn leave_behind(dir: &RuntimeDir) -> PathBuf {
    let path = dir.path().join("t");
    DirBuilder::new().mode(0o700).create(&path).expect("a new directory");
    for file in ["lock", "cluster.toml", "cluster.toml.77", "node-0.sock", "node-12.sock"] {
        fs::write(path.join(file), "").expect("a new file");
    }
    path
}

#[test]
fn a_new_directory_is_private() {
    let scratch = Scratch::new();
    let dir = RuntimeDir::at(scratch.path().join("a/b")).expect("two levels");
    for path in [dir.path(), dir.path().parent().expect("a")] {
        assert_eq!(path.metadata().expect("it was made").mode() & 0o777, 0o700);
    }
}

#[test]
fn what_others_could_tamper_with_is_refused() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name);
    fs::write(path("file"), "").expect("a file");
    symlink("/", path("link")).expect("a link");
    fs::create_dir(path("open")).expect("a directory");
    fs::set_permissions(path("open"), Permissions::from_mode(0o770)).expect("ours");

    let refused = |name| RuntimeDir::at(path(name)).expect_err(name);
    assert!(matches!(refused("file"), RuntimeDirError::NotDirectory { .. }));
    assert!(matches!(refused("link"), RuntimeDirError::Link { .. }));
    let open = refused("open");
    assert!(matches!(open, RuntimeDirError::Open { mode: 0o770, .. }));
    assert!(open.cure().contains("chmod 700"), "{}", open.cure());
    fs::set_permissions(path("open"), Permissions::from_mode(0o1777)).expect("ours");
    let shared = refused("open");
    assert!(!shared.cure().contains("chmod"), "{}", shared.cure());
    // The slash or the dot has the system follow the link.
    symlink(path("open"), path("way")).expect("a link");
    fs::set_permissions(path("open"), Permissions::from_mode(0o700)).expect("ours");
    for end in ["way", "way/", "way//", "way/.", "way/./"] {
        assert!(matches!(refused(end), RuntimeDirError::Link { .. }), "{end}");
    }
    for mode in [0o740, 0o710, 0o705, 0o701] {
        fs::set_permissions(path("open"), Permissions::from_mode(mode)).expect("ours");
        assert!(matches!(refused("open"), RuntimeDirError::Open { .. }), "{mode:o}");
    }
}

#[test]
fn a_path_below_a_directory_that_others_may_write_to_is_refused_with_its_mode() {
    let scratch = Scratch::new();
    let shared = scratch.path().join("shared");
    fs::create_dir_all(shared.join("home")).expect("two directories");
    if geteuid().is_root() {
        chown(&shared, None, Some(12345)).expect("root may");
    }
    let path = shared.join("home/.local/state/weft/run");
    let with_mode = |mode| {
        fs::set_permissions(&shared, Permissions::from_mode(mode)).expect("ours");
        check_above(&path)
    };
    for mode in [0o755, 0o700, 0o1777, 0o1775] {
        with_mode(mode).unwrap_or_else(|error| panic!("{mode:o}: {error}"));
    }
    let refused = with_mode(0o777).expect_err("others may rename home");
    let there = shared.canonicalize().expect("it is there");
    let (said, cure) = (refused.to_string(), refused.cure());
    let reason = format!("below {}, which has mode 0777", there.display());
    assert!(said.contains(&reason), "{said}");
    assert!(cure.contains(&format!("chmod go-w {}", there.display())), "{cure}");
    assert!(!shared.join("home/.local").exists(), "nothing is made below it");
    // A group of the user's own number is the user's own.
    let found = shared.metadata().expect("it is there");
    assert_eq!(with_mode(0o775).is_err(), found.gid() != found.uid());
}

#[test]
fn another_users_directory_is_refused() {
    let scratch = Scratch::new();
    let foreign = if geteuid().is_root() {
        chown(scratch.path(), Some(12345), None).expect("root may");
        scratch.path().to_owned()
    } else {
        PathBuf::from("/")
    };
    let error = RuntimeDir::at(foreign).expect_err("not ours");
    assert!(matches!(error, RuntimeDirError::Foreign { .. }), "{error}");
}

#[test]
fn a_claim_excludes_others_and_leaves_nothing() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    let claimed = dir.claim(&name("t")).expect("free");
    let cluster = Cluster::default_named(name("t"), 3).expect("3 nodes");
    claimed.publish(&cluster).expect("ours");

    for second in [dir.claim(&name("t")), dir.join(&name("t"))] {
        assert_eq!(second.expect_err("taken").code(), Code::NameInUse);
    }
    let found = dir.find(&name("t")).expect("alive");
    assert_eq!(Cluster::load(&found.cluster_file()).expect("published"), cluster);

    claimed.remove().expect("ours");
    assert_eq!(fs::read_dir(dir.path()).expect("ours").count(), 0);
    assert_eq!(dir.find(&name("t")).expect_err("gone").code(), Code::ClusterNotRunning);
}

#[test]
fn a_killed_cluster_is_dead_until_claimed() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    let path = leave_behind(&dir);
    let error = dir.find(&name("t")).expect_err("no process runs");
    assert_eq!(error.code(), Code::ClusterDead);
    assert!(error.cure().contains("weft down --name t"), "{}", error.cure());

    let claimed = dir.claim(&name("t")).expect("no process holds it");
    let left: Vec<_> = fs::read_dir(&path).expect("ours").flatten().collect();
    assert_eq!(left.len(), 1, "only the lock: {left:?}");
    drop(claimed);
    assert!(!path.exists());
}

#[test]
fn nodes_started_by_hand_share_a_directory() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    leave_behind(&dir);
    let first = dir.join(&name("t")).expect("no process holds it");
    let socket = first.dir().node_socket(0).expect("short");
    assert!(!socket.exists(), "cleared by the first");
    fs::write(&socket, "").expect("ours");

    let second = dir.join(&name("t")).expect("shared");
    assert!(socket.exists(), "not cleared by the second");
    assert_eq!(dir.claim(&name("t")).expect_err("in use").code(), Code::NameInUse);

    drop(first);
    assert!(dir.find(&name("t")).is_ok(), "the second keeps it alive");
    drop(second);
    assert_eq!(fs::read_dir(dir.path()).expect("ours").count(), 0);
}

#[test]
fn a_lock_lives_as_long_as_the_last_who_inherited_it() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    leave_behind(&dir);
    let cluster = ClusterDir::below(dir.path(), &name("t"));
    let lock = Lock::take(&cluster, Mode::Exclusive).expect("ours").expect("free");
    let inherited = std::os::fd::AsFd::as_fd(&lock).try_clone_to_owned().expect("a descriptor");
    drop(lock);
    assert!(dir.find(&name("t")).is_ok());
    drop(inherited);
    assert_eq!(dir.find(&name("t")).expect_err("dead").code(), Code::ClusterDead);
}

#[test]
fn a_directory_removed_by_hand_is_not_removed_twice() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    let old = dir.claim(&name("t")).expect("free");
    fs::remove_dir_all(old.dir().path()).expect("ours");
    let new = dir.claim(&name("t")).expect("free again");
    assert_ne!(old.instance(), new.instance());
    assert_eq!(new.dir().instance().expect("noted"), new.instance());
    assert!(matches!(old.check_kept(), Err(RuntimeDirError::Displaced { .. })));
    new.check_kept().expect("its own");
    old.remove().expect("nothing to do");
    assert!(dir.find(new.dir().name()).is_ok());
}

#[test]
fn files_of_others_are_never_removed() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    let precious = dir.path().join("t").join("node-0.sock");
    DirBuilder::new().mode(0o700).create(dir.path().join("t")).expect("a directory");
    fs::write(&precious, "thesis").expect("a file");
    let error = dir.claim(&name("t")).expect_err("no lock file in it");
    assert!(matches!(error, ClaimError::Dir(RuntimeDirError::NotCluster { .. })), "{error}");
    assert!(precious.exists());
    assert_eq!(dir.list().expect("ours"), []);
}

#[test]
fn files_of_others_are_named_once_those_of_the_cluster_are_gone() {
    let scratch = Scratch::new();
    let claimed = runtime_dir(&scratch).claim(&name("t")).expect("free");
    let dir = claimed.dir().clone();
    let write = |path| fs::write(path, "").expect("a directory of this user");
    write(dir.path().join("thesis"));
    assert_eq!(dir.left_by_others(), None, "its lock is there");
    claimed.remove().expect("the rest stays");
    assert_eq!(dir.left_by_others(), Some(vec!["thesis".to_owned()]));
    write(dir.incarnation_file(0));
    assert_eq!(dir.left_by_others(), None, "a node of the next one begins");
}

#[test]
fn the_list_tells_the_living_from_the_dead() {
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    leave_behind(&dir);
    let _alive = dir.claim(&name("a")).expect("free");
    let expected = [(name("a"), Liveness::Alive), (name("t"), Liveness::Dead)];
    assert_eq!(dir.list().expect("ours"), expected);

    let error = dir.find(&name("x")).expect_err("none");
    assert!(error.cure().ends_with("running are a"), "{}", error.cure());
}

#[test]
fn a_socket_path_beyond_the_limit_is_refused_at_the_claim() {
    let scratch = Scratch::new();
    let dir = RuntimeDir::at(scratch.path().join("x".repeat(100))).expect("a long name");
    let error = dir.claim(&name("t")).expect_err("too long");
    let ClaimError::Dir(RuntimeDirError::SocketPathTooLong { len, .. }) = error else {
        panic!("{error:?}");
    };
    assert!(len > cluster_dir::SOCKET_PATH_LEN_MAX);
    assert!(!dir.path().join("t").exists());
}

/// Claims, joins, looks and removals by many at once: no two hold it alone, and no
/// caller gets any other error than "in use".
#[test]
fn a_storm_of_claims_never_gives_a_name_twice() {
    const OWNER: usize = 1000;
    let scratch = Scratch::new();
    let dir = runtime_dir(&scratch);
    let inside = AtomicUsize::new(0);
    let start = Barrier::new(4);
    let storm = |seed: usize| {
        start.wait();
        for round in 0..100 {
            let (weight, claim) = match (seed + round) % 3 {
                0 => (OWNER, dir.claim(&name("t"))),
                _ => (1, dir.join(&name("t"))),
            };
            match claim {
                Ok(claimed) => {
                    let before = inside.fetch_add(weight, Ordering::SeqCst);
                    assert!(before == 0 || before < OWNER && weight == 1, "{before} {weight}");
                    assert!(dir.find(&name("t")).is_ok());
                    inside.fetch_sub(weight, Ordering::SeqCst);
                    claimed.remove().expect("ours");
                }
                Err(error) => assert_eq!(error.code(), Code::NameInUse, "{error}"),
            }
        }
    };
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || storm(seed));
        }
    });
    assert_eq!(fs::read_dir(dir.path()).expect("ours").count(), 0);
}

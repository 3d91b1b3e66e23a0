//! The kernel's features that shared memory between processes stands on.
//!
//! Each is used once, as the fabric uses it. The release is shown and not judged: features
//! are ported back, and filters take them away. What is
//! probed leaves nothing behind, not even a descriptor.

use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::PidfdFlags;
use rustix::thread::futex;

use super::Finding;

/// What the kernel calls itself and what it can do.
pub(super) struct Kernel {
    release: String,
    features: [Feature; 4],
}

/// A feature and the outcome of using it.
struct Feature {
    subject: &'static str,
    /// What cannot be done without it.
    purpose: &'static str,
    /// The release of Linux that brought it.
    since: &'static str,
    outcome: Result<(), Errno>,
}

impl Kernel {
    pub(super) fn probe() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let feature =
            |subject, purpose, since, outcome| Feature { subject, purpose, since, outcome };
        Self {
            release: release.trim().to_owned(),
            features: [
                feature(
                    "sealed memory",
                    "one process could truncate a segment that another has mapped",
                    "3.17",
                    seal_memory(),
                ),
                feature(
                    "descriptor passing",
                    "nodes cannot hand each other their segments",
                    "2.6.4",
                    pass_descriptor(),
                ),
                feature(
                    "process handles",
                    "a node could mistake another process for one that has died",
                    "5.3",
                    open_process_handle(),
                ),
                feature("futex", "a node that sleeps cannot be woken", "2.6", use_futex()),
            ],
        }
    }
}

pub(super) fn advise(kernel: &Kernel) -> Vec<Finding> {
    let release = if kernel.release.is_empty() { "unknown" } else { &kernel.release };
    let features = kernel.features.iter().map(|feature| match feature.outcome {
        Ok(()) => Finding::good(feature.subject, "works"),
        Err(errno) => Finding::missing(feature.subject, format!("fails: {errno}"))
            .because(feature.purpose)
            .cured_by(if errno == Errno::NOSYS {
                format!("use Linux {} or later", feature.since)
            } else {
                "allow it in the seccomp filter or security policy of this container".to_owned()
            }),
    });
    std::iter::once(Finding::good("kernel", release)).chain(features).collect()
}

/// Whether processes find themselves and their files below /proc.
pub(super) fn process_files() -> Finding {
    process_files_by("/proc/self/exe")
}

fn process_files_by(own: &str) -> Finding {
    const SUBJECT: &str = "/proc";
    match fs::metadata(own) {
        Ok(_) => Finding::good(SUBJECT, "mounted"),
        Err(error) => Finding::missing(SUBJECT, format!("cannot be read: {error}"))
            .because("a node uses it to start its component and to share memory")
            .cured_by("run `mount -t proc proc /proc`"),
    }
}

fn seal_memory() -> Result<(), Errno> {
    const LEN: u64 = 4096;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let memory =
        rustix::fs::memfd_create("weft-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::fallocate(&memory, FallocateFlags::empty(), 0, LEN)?;
    rustix::fs::fcntl_add_seals(&memory, seals)?;
    match rustix::fs::ftruncate(&memory, 0) {
        Err(Errno::PERM) => Ok(()),
        Err(other) => Err(other),
        Ok(()) => Err(Errno::NOTSUP),
    }
}

fn pass_descriptor() -> Result<(), Errno> {
    let (here, there) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let passed = [here.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err(Errno::NOBUFS);
    }
    rustix::net::sendmsg(&here, &[IoSlice::new(b"w")], &mut control, SendFlags::empty())?;

    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(
        &there,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let arrived: usize = control
        .drain()
        .map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.count(),
            _ => 0,
        })
        .sum();
    if arrived == 1 { Ok(()) } else { Err(Errno::NOTSUP) }
}

fn open_process_handle() -> Result<(), Errno> {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map(drop)
}

fn use_futex() -> Result<(), Errno> {
    let word = AtomicU32::new(1);
    futex::wake(&word, futex::Flags::empty(), 1)?;
    // The word has another value than the one to sleep on, so a working futex returns at once.
    match futex::wait(&word, futex::Flags::empty(), 0, None) {
        Ok(()) | Err(Errno::AGAIN) => Ok(()),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_failed_feature_is_missing_with_the_cure_that_fits_its_error() {
        let feature = |subject, outcome| Feature { subject, purpose: "p", since: "5.3", outcome };
        let kernel = Kernel {
            release: "4.19".to_owned(),
            features: [
                feature("works", Ok(())),
                feature("too old", Err(Errno::NOSYS)),
                feature("filtered", Err(Errno::PERM)),
                feature("denied", Err(Errno::ACCESS)),
            ],
        };
        let findings = advise(&kernel);
        for (index, subject, verdict, cure) in [
            (0, "kernel", Severity::Good, ""),
            (1, "works", Severity::Good, ""),
            (2, "too old", Severity::Missing, "Linux 5.3"),
            (3, "filtered", Severity::Missing, "seccomp"),
            (4, "denied", Severity::Missing, "security policy"),
        ] {
            let finding: &Finding = &findings[index];
            assert_eq!((finding.subject, finding.verdict), (subject, verdict));
            assert!(finding.cure.contains(cure), "{finding:?}");
        }
    }

    #[test]
    fn a_machine_without_proc_is_told_to_mount_it() {
        assert_eq!(process_files().verdict, Severity::Good);
        let finding = process_files_by("/no/such/place");
        assert_eq!(finding.verdict, Severity::Missing);
        assert_eq!(finding.cure, "run `mount -t proc proc /proc`");
    }

    #[test]
    fn probing_leaves_no_descriptor_open() {
        let kernel = Kernel::probe();
        // Other tests open and close files meanwhile, so many probes, not one, must not grow it.
        let count = || fs::read_dir("/proc/self/fd").expect("procfs").count();
        let before = count();
        for _ in 0..200 {
            drop(Kernel::probe());
        }
        assert!(count() < before + 100);
        assert!(!kernel.release.is_empty());
    }
}

//! A secret key in anonymous memory, so that it is handed from process to process by descriptor
//! and never lies in a message, a file or an argument.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{pread, pwrite};
use rustix::rand::{GetRandomFlags, getrandom};
use weft_core::neb::SigningKey;
use zeroize::Zeroizing;

use super::PublicKey;
use crate::shm::Segment;

const LEN: usize = 32;

/// The secret key of one supervisor.
pub struct SecretKey {
    memory: Segment,
    public: PublicKey,
}

/// Prints the public key only.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {}", self.public)
    }
}

impl SecretKey {
    /// Draws a key.
    ///
    /// # Errors
    /// What the system said: no memory, no random numbers.
    pub fn draw() -> io::Result<Self> {
        let memory = Segment::create("weft-signing", LEN).map_err(io::Error::other)?;
        let mut secret = Zeroizing::new([0; LEN]);
        if getrandom(&mut secret[..], GetRandomFlags::empty())? != LEN
            || pwrite(memory.writable_fd(), &secret[..], 0)? != LEN
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let public = PublicKey(SigningKey::from_bytes(&secret).verifying_key().to_bytes());
        Ok(Self { memory, public })
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The key as another process [takes](Self::adopt) it; it cannot change it.
    ///
    /// # Errors
    /// What the system said.
    pub fn grant(&self) -> io::Result<OwnedFd> {
        self.memory.read_only_fd().map_err(io::Error::other)
    }

    /// The key that another process has granted; overwritten when it is dropped.
    ///
    /// # Errors
    /// What the system said; [`io::ErrorKind::UnexpectedEof`] when it holds no key.
    pub fn adopt(granted: BorrowedFd<'_>) -> io::Result<SigningKey> {
        let mut secret = Zeroizing::new([0; LEN]);
        if pread(granted, &mut secret[..], 0)? != LEN {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(SigningKey::from_bytes(&secret))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_key_is_granted_to_be_used_and_not_to_be_changed() {
        let key = SecretKey::draw().unwrap();
        let granted = key.grant().unwrap();
        let adopted = SecretKey::adopt(granted.as_fd()).unwrap();
        assert_eq!(PublicKey(adopted.verifying_key().to_bytes()), key.public());
        assert!(pwrite(&granted, &[0; LEN], 0).is_err());
        assert_ne!(SecretKey::draw().unwrap().public(), key.public());
    }

    #[test]
    fn nothing_secret_is_shown() {
        let key = SecretKey::draw().unwrap();
        let adopted = SecretKey::adopt(key.grant().unwrap().as_fd()).unwrap();
        let secret: String = adopted.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = format!("{key:?}");
        assert!(!shown.contains(&secret) && shown.contains(&key.public().to_string()), "{shown}");
    }
}

//! The name of a value: `source;boot;destination;edge;frame`.
//!
//! Source and destination are peers in decimal digits, the boot of the source is in hexadecimal
//! digits or `-` (whichever runs), edge and frame are any text without `;`. A number has one
//! spelling, without leading zeros, so that two names are equal exactly when their bytes are.

use core::fmt;

use heapless::Vec;

use crate::ids::Peer;
use crate::wire::rendezvous::NAME_LEN_MAX;

/// A key, checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    name: Vec<u8, NAME_LEN_MAX>,
    source: Peer,
    boot: Option<u32>,
    destination: Peer,
}

/// Why a name is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadKey {
    /// It is longer than [`NAME_LEN_MAX`] bytes.
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// It has not exactly five parts.
    Parts,
    /// The source is no number of a peer.
    Source,
    /// The boot is neither `-` nor a hexadecimal number of 32 bits.
    Boot,
    /// The destination is no number of a peer.
    Destination,
    /// The edge is empty.
    NoEdge,
    /// The frame is empty.
    NoFrame,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the key is longer than 512 bytes",
            Self::NotText => "the key is not UTF-8",
            Self::Parts => "a key has five parts: source;boot;destination;edge;frame",
            Self::Source => "the source is no number of a peer without leading zeros",
            Self::Boot => "the boot is neither - nor a hexadecimal number without leading zeros",
            Self::Destination => "the destination is no number of a peer without leading zeros",
            Self::NoEdge => "the edge is empty",
            Self::NoFrame => "the frame is empty",
        })
    }
}

impl core::error::Error for BadKey {}

impl Key {
    /// The key of this name.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn parse(name: &[u8]) -> Result<Self, BadKey> {
        let bytes = Vec::from_slice(name).map_err(|_| BadKey::TooLong)?;
        let text = core::str::from_utf8(name).map_err(|_| BadKey::NotText)?;
        let mut parts = text.split(';');
        let mut next = || parts.next().ok_or(BadKey::Parts);
        let (source, boot, destination, edge, frame) =
            (next()?, next()?, next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(BadKey::Parts);
        }
        let source = number(source, 10).and_then(|it| u16::try_from(it).ok());
        let destination = number(destination, 10).and_then(|it| u16::try_from(it).ok());
        let key = Self {
            name: bytes,
            source: source.map(Peer).ok_or(BadKey::Source)?,
            boot: match boot {
                "-" => None,
                boot => Some(number(boot, 16).ok_or(BadKey::Boot)?),
            },
            destination: destination.map(Peer).ok_or(BadKey::Destination)?,
        };
        match (edge.is_empty(), frame.is_empty()) {
            (true, _) => Err(BadKey::NoEdge),
            (false, true) => Err(BadKey::NoFrame),
            (false, false) => Ok(key),
        }
    }

    /// The key of these parts.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn new(
        (source, boot): (Peer, Option<u32>),
        destination: Peer,
        (edge, frame): (&str, &str),
    ) -> Result<Self, BadKey> {
        use fmt::Write;
        let mut text = heapless::String::<NAME_LEN_MAX>::new();
        let written = match boot {
            Some(boot) => write!(text, "{source};{boot:x};{destination};{edge};{frame}"),
            None => write!(text, "{source};-;{destination};{edge};{frame}"),
        };
        written.map_err(|fmt::Error| BadKey::TooLong)?;
        Self::parse(text.as_bytes())
    }

    /// The whole name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Who sends the value.
    #[must_use]
    pub const fn source(&self) -> Peer {
        self.source
    }

    /// In which boot of it; none for whichever runs.
    #[must_use]
    pub const fn boot(&self) -> Option<u32> {
        self.boot
    }

    /// Who receives the value.
    #[must_use]
    pub const fn destination(&self) -> Peer {
        self.destination
    }
}

/// The number that `digits` spell, in its one spelling.
fn number(digits: &str, radix: u32) -> Option<u32> {
    // `from_str_radix` also takes a sign and capital letters.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    let is_shortest = digits == "0" || !digits.starts_with('0');
    (is_plain && is_shortest).then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;
    use std::string::String;
    use std::vec;

    /// RZ-3.
    #[test]
    fn a_key_has_five_parts_and_names_its_ends() {
        let key = Key::parse(b"1;2a;0;layer/weights:0;0:0").unwrap();
        assert_eq!((key.source(), key.boot(), key.destination()), (Peer(1), Some(0x2a), Peer(0)));
        let any = Key::new((Peer(1), None), Peer(0), ("edge", "0:0")).unwrap();
        assert_eq!((any.name(), any.boot()), (&b"1;-;0;edge;0:0"[..], None));
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_reason() {
        let cases: &[(&[u8], BadKey)] = &[
            (b"", BadKey::Parts),
            (b"1;-;0;edge", BadKey::Parts),
            (b"1;-;0;edge;0;0", BadKey::Parts),
            (b"1;-;0;;0", BadKey::NoEdge),
            (b"1;-;0;edge;", BadKey::NoFrame),
            (b";-;0;edge;0", BadKey::Source),
            (b"01;-;0;edge;0", BadKey::Source),
            (b"+1;-;0;edge;0", BadKey::Source),
            (b"65536;-;0;edge;0", BadKey::Source),
            (b"1;;0;edge;0", BadKey::Boot),
            (b"1;2A;0;edge;0", BadKey::Boot),
            (b"1;100000000;0;edge;0", BadKey::Boot),
            (b"1;-;x;edge;0", BadKey::Destination),
            (b"1;-;0;\xff;0", BadKey::NotText),
        ];
        for (name, why) in cases {
            assert_eq!(Key::parse(name), Err(*why), "{}", String::from_utf8_lossy(name));
        }
        let longest = vec![b'x'; NAME_LEN_MAX - 8];
        assert!(Key::parse(&[&b"1;-;0;e;"[..], &longest].concat()).is_ok());
        assert_eq!(Key::parse(&[&b"1;-;0;ed;"[..], &longest].concat()), Err(BadKey::TooLong));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(name in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Key::parse(&name);
        }

        #[test]
        fn the_parts_of_a_key_give_the_key(
            source: u16, boot: Option<u32>, destination: u16, edge in "[^;]{1,60}",
        ) {
            let ends = (Peer(source), boot);
            let key = Key::new(ends, Peer(destination), (&edge, "0:0")).unwrap();
            prop_assert_eq!((key.source(), key.boot()), ends);
            prop_assert_eq!(key.destination(), Peer(destination));
            prop_assert_eq!(Key::parse(key.name()), Ok(key));
            let two_parts = format!("{edge};{edge}");
            let refused = Key::new(ends, Peer(destination), (&two_parts, "0:0"));
            prop_assert_eq!(refused, Err(BadKey::Parts));
        }
    }
}

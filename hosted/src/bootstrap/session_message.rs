//! The messages of a session between nodes that have met, over any transport.

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use weft_core::dirnet::{FRAME_LEN, Term};
use weft_core::ids::{Incarnation, Rank};

use super::{
    AnnouncedIncarnation, Datagram, DatagramPort, Fenced, HandOver, NOTE_LEN_MAX, News, Offer,
    PairEnd, SCRIPT_LEN_MAX,
};
use crate::process::Pidfd;
use crate::signing::PublicKey;

/// One message of a session, in either direction.
#[derive(Debug, Serialize, Deserialize)]
pub enum SessionMessage {
    /// An incarnation of the sender has started; on one host with its process as descriptor.
    Alive {
        /// Its number.
        incarnation: u32,
        /// Its boot: the number of the boot's first incarnation.
        boot: u32,
        /// The name of its memory.
        memory: u64,
        /// The public key of its broadcasts.
        key: Option<PublicKey>,
    },
    /// An incarnation of the sender has ended.
    Dead {
        /// Its number.
        incarnation: u32,
    },
    /// The sender's end of the pair of an incarnation of itself and one of the receiver.
    Offer {
        /// The sender's incarnation.
        from: u32,
        /// The receiver's incarnation.
        to: u32,
        /// What the receiver needs to connect.
        end: PairEnd,
    },
    /// The sender has fenced an incarnation of the receiver.
    #[serde(rename = "ShutOut")]
    Fenced {
        /// Its number.
        incarnation: u32,
        /// The term of the decision, as epoch and claimant; none if no manager has decided.
        decided: Option<(u32, u16)>,
    },
    /// The sender has met the receiver with another memory.
    OtherMemory,
    /// The receiver is isolated by decision, since its boot that began with incarnation `boot`, and
    /// not admitted before it is released.
    Isolated {
        /// The first incarnation of that boot.
        boot: u32,
    },
    /// Isolations of the receiver since `boot` or before are over: a later incarnation may join.
    Released {
        /// The first incarnation of that boot.
        boot: u32,
    },
    /// Isolations of the sender since `boot` or before are over.
    Free {
        /// The first incarnation of that boot.
        boot: u32,
    },
    /// The sender is isolated since `boot`, as it has noted, and asks for its release.
    AskForRelease {
        /// The first incarnation of that boot.
        boot: u32,
    },
    /// A frame of the DIR net.
    Datagram(Datagram),
    /// The receiver's component hands a tensor over to the sender's.
    TensorWanted(HandOver),
    /// The answer; on one host with the tensor's sealed memory, if the sender keeps it.
    TensorHanded {
        /// Of what.
        which: HandOver,
        /// Whether its memory comes with this.
        is_there: bool,
    },
}

impl SessionMessage {
    pub(super) const fn alive(announced: &AnnouncedIncarnation) -> Self {
        let AnnouncedIncarnation { incarnation, boot, memory, key, .. } = *announced;
        Self::Alive { incarnation: incarnation.0, boot: boot.0, memory, key }
    }

    pub(super) const fn dead(incarnation: Incarnation) -> Self {
        Self::Dead { incarnation: incarnation.0 }
    }

    pub(super) fn offer(offer: &Offer) -> Self {
        Self::Offer { from: offer.from.0, to: offer.to.0, end: offer.end.clone() }
    }

    pub(super) fn fenced(fenced: Fenced) -> Self {
        let decided = fenced.decided.map(|term| (term.epoch, term.claimant.0));
        Self::Fenced { incarnation: fenced.up_to.0, decided }
    }

    /// Whether it makes no sense without a descriptor, where descriptors can travel.
    pub(super) const fn needs_descriptor(&self) -> bool {
        matches!(self, Self::Alive { .. } | Self::TensorHanded { is_there: true, .. })
    }

    /// The event that this message is to its receiver; none for a message that no node sends.
    /// `fd` is the descriptor that came with it.
    #[must_use]
    pub fn into_news(self, fd: Option<OwnedFd>) -> Option<News> {
        match self {
            Self::Alive { boot: 0, .. } | Self::Fenced { incarnation: 0 | u32::MAX, .. } => None,
            Self::Alive { incarnation, boot, .. } if boot > incarnation => None,
            Self::Alive { incarnation, boot, memory, key } => {
                let (incarnation, boot) = (Incarnation(incarnation), Incarnation(boot));
                let process = fd.map(Pidfd::from_fd).transpose().ok()?;
                Some(News::Alive(AnnouncedIncarnation { incarnation, boot, process, memory, key }))
            }
            Self::Dead { incarnation } => Some(News::Dead(Incarnation(incarnation))),
            Self::Offer { from, to, end } => {
                let (from, to) = (Incarnation(from), Incarnation(to));
                Some(News::Offered(Offer { from, to, end }))
            }
            // One of another length goes on to its receiver, which refuses and counts it; only
            // enough of it is kept to show that.
            Self::Datagram(mut datagram) => {
                let longest = match datagram.to {
                    DatagramPort::Component | DatagramPort::ImAliveTask => FRAME_LEN,
                    DatagramPort::Chronicle => NOTE_LEN_MAX,
                    DatagramPort::Script => SCRIPT_LEN_MAX,
                };
                datagram.bytes.0.truncate(longest + 1);
                Some(News::Datagram(datagram))
            }
            Self::Fenced { incarnation, decided } => {
                let term = |(epoch, claimant)| Term { epoch, claimant: Rank(claimant) };
                let (up_to, decided) = (Incarnation(incarnation), decided.map(term));
                Some(News::Fenced(Fenced { up_to, decided }))
            }
            Self::OtherMemory => Some(News::OtherMemory),
            Self::Isolated { boot } => Some(News::Isolated(Incarnation(boot))),
            Self::Released { boot } => Some(News::Released(Incarnation(boot))),
            Self::Free { boot } => Some(News::Free(Incarnation(boot))),
            Self::TensorWanted(which) => Some(News::TensorWanted(which)),
            Self::TensorHanded { which, is_there } => {
                Some(News::TensorHanded(which, fd.filter(|_| is_there)))
            }
            Self::AskForRelease { boot } => Some(News::AskedForRelease(Incarnation(boot))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;

    #[test]
    fn lives_that_cannot_be_are_no_news() {
        assert!(
            SessionMessage::Alive { incarnation: 0, boot: 0, memory: 0, key: None }
                .into_news(None)
                .is_none()
        );
        assert!(
            SessionMessage::Alive { incarnation: 1, boot: 2, memory: 0, key: None }
                .into_news(None)
                .is_none()
        );
        // And an incarnation that none could follow.
        for incarnation in [0, u32::MAX] {
            assert!(
                SessionMessage::Fenced { incarnation, decided: None }.into_news(None).is_none()
            );
        }
    }

    #[test]
    fn an_incarnation_is_fenced_with_what_decided_it() {
        for decided in [None, Some(Term { epoch: 3, claimant: Rank(2) })] {
            let word = Fenced { up_to: Incarnation(7), decided };
            let text = serde_json::to_string(&SessionMessage::fenced(word)).unwrap();
            let heard: SessionMessage = serde_json::from_str(&text).unwrap();
            assert!(matches!(heard.into_news(None), Some(News::Fenced(it)) if it == word));
        }
        let silent: SessionMessage =
            serde_json::from_str(r#"{"ShutOut":{"incarnation":7}}"#).unwrap();
        let undecided = Fenced { up_to: Incarnation(7), decided: None };
        assert!(matches!(silent.into_news(None), Some(News::Fenced(it)) if it == undecided));
    }

    #[test]
    fn a_datagram_of_any_length_reaches_whoever_judges_it_as_far_as_it_matters() {
        for (sent, kept) in [(0, 0), (63, 63), (64, 64), (65, 65), (9_000, 65)] {
            let datagram = Datagram { to: DatagramPort::Component, bytes: Payload(vec![0; sent]) };
            let news = SessionMessage::Datagram(datagram).into_news(None);
            let Some(News::Datagram(datagram)) = news else { panic!("{sent}: {news:?}") };
            assert_eq!(datagram.bytes.0.len(), kept, "{sent}");
        }
    }
}

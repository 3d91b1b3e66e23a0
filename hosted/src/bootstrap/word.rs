//! What nodes that have met say to each other, whatever carries it.

use serde::{Deserialize, Serialize};
use weft_core::dirnet::{FRAME_LEN, Term};
use weft_core::ids::{Incarnation, Rank};

use super::{Desk, Letter, Life, News, Offer, PairEnd, ShutOut};
use crate::node::evidence::NOTE_LEN_MAX;
use crate::process::Pidfd;
use crate::signing::PublicKey;

/// One word of a session, in either direction.
#[derive(Debug, Serialize, Deserialize)]
pub enum Word {
    /// A life of the speaker has begun; on one host with its process as descriptor.
    Alive {
        /// Which life.
        incarnation: u32,
        /// The first one since its node was started.
        boot: u32,
        /// Names its memory.
        memory: u64,
        /// What it signs broadcasts with.
        key: Option<PublicKey>,
    },
    /// A life of the speaker has ended.
    Dead {
        /// Which life.
        incarnation: u32,
    },
    /// The speaker's end of the pair of a life of itself and one of the listener.
    Offer {
        /// Which life of the speaker.
        from: u32,
        /// Which life of the listener.
        to: u32,
        /// What the listener needs to know.
        end: PairEnd,
    },
    /// The speaker has fenced a life of the listener.
    ShutOut {
        /// Which life.
        incarnation: u32,
        /// The reign that decided it, and whose that was.
        decided: Option<(u32, u16)>,
    },
    /// The speaker has met the listener with another memory.
    OtherMemory,
    /// The listener is isolated by decision, since the life that began with `boot`, and not let in
    /// before it is released.
    Isolated {
        /// Which life.
        boot: u32,
    },
    /// Isolations of the listener since `boot` or before are over: it may come back, as another
    /// life.
    Released {
        /// Which life.
        boot: u32,
    },
    /// Isolations of the speaker since `boot` or before are over.
    Free {
        /// Which life.
        boot: u32,
    },
    /// A frame of the DIR net.
    Letter(Letter),
}

impl Word {
    pub(super) const fn alive(life: &Life) -> Self {
        let Life { incarnation, boot, memory, key, .. } = *life;
        Self::Alive { incarnation: incarnation.0, boot: boot.0, memory, key }
    }

    pub(super) const fn dead(incarnation: Incarnation) -> Self {
        Self::Dead { incarnation: incarnation.0 }
    }

    pub(super) fn offer(offer: &Offer) -> Self {
        Self::Offer { from: offer.from.0, to: offer.to.0, end: offer.end.clone() }
    }

    pub(super) fn shut_out(word: ShutOut) -> Self {
        let decided = word.decided.map(|term| (term.epoch, term.claimant.0));
        Self::ShutOut { incarnation: word.life.0, decided }
    }

    /// What it means to the listener; nothing when no node says such a thing. `process` is the
    /// one that came with it.
    #[must_use]
    pub fn into_news(self, process: Option<Pidfd>) -> Option<News> {
        match self {
            Self::Alive { boot: 0, .. } | Self::ShutOut { incarnation: 0 | u32::MAX, .. } => None,
            Self::Alive { incarnation, boot, .. } if boot > incarnation => None,
            Self::Alive { incarnation, boot, memory, key } => {
                let (incarnation, boot) = (Incarnation(incarnation), Incarnation(boot));
                Some(News::Alive(Life { incarnation, boot, process, memory, key }))
            }
            Self::Dead { incarnation } => Some(News::Dead(Incarnation(incarnation))),
            Self::Offer { from, to, end } => {
                let (from, to) = (Incarnation(from), Incarnation(to));
                Some(News::Offered(Offer { from, to, end }))
            }
            // One of another length goes on to whoever refuses and counts it; no more of it is kept
            // than shows that.
            Self::Letter(mut letter) => {
                let longest = match letter.to {
                    Desk::Component | Desk::ImAliveTask => FRAME_LEN,
                    Desk::Chronicle => NOTE_LEN_MAX,
                };
                letter.bytes.0.truncate(longest + 1);
                Some(News::Letter(letter))
            }
            Self::ShutOut { incarnation, decided } => {
                let term = |(epoch, claimant)| Term { epoch, claimant: Rank(claimant) };
                let (life, decided) = (Incarnation(incarnation), decided.map(term));
                Some(News::ShutOut(ShutOut { life, decided }))
            }
            Self::OtherMemory => Some(News::OtherMemory),
            Self::Isolated { boot } => Some(News::Isolated(Incarnation(boot))),
            Self::Released { boot } => Some(News::Released(Incarnation(boot))),
            Self::Free { boot } => Some(News::Free(Incarnation(boot))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::control::Payload;

    #[test]
    fn lives_that_cannot_be_are_no_news() {
        assert!(
            Word::Alive { incarnation: 0, boot: 0, memory: 0, key: None }.into_news(None).is_none()
        );
        assert!(
            Word::Alive { incarnation: 1, boot: 2, memory: 0, key: None }.into_news(None).is_none()
        );
        // And one that no life could follow.
        for incarnation in [0, u32::MAX] {
            assert!(Word::ShutOut { incarnation, decided: None }.into_news(None).is_none());
        }
    }

    #[test]
    fn a_life_is_shut_out_with_what_decided_it() {
        for decided in [None, Some(Term { epoch: 3, claimant: Rank(2) })] {
            let word = ShutOut { life: Incarnation(7), decided };
            let told = serde_json::to_string(&Word::shut_out(word)).unwrap();
            let heard: Word = serde_json::from_str(&told).unwrap();
            assert!(matches!(heard.into_news(None), Some(News::ShutOut(it)) if it == word));
        }
        let silent: Word = serde_json::from_str(r#"{"ShutOut":{"incarnation":7}}"#).unwrap();
        let undecided = ShutOut { life: Incarnation(7), decided: None };
        assert!(matches!(silent.into_news(None), Some(News::ShutOut(it)) if it == undecided));
    }

    #[test]
    fn a_letter_of_any_length_reaches_whoever_judges_it_as_far_as_it_matters() {
        for (sent, kept) in [(0, 0), (63, 63), (64, 64), (65, 65), (9_000, 65)] {
            let letter = Letter { to: Desk::Component, bytes: Payload(vec![0; sent]) };
            let news = Word::Letter(letter).into_news(None);
            let Some(News::Letter(letter)) = news else { panic!("{sent}: {news:?}") };
            assert_eq!(letter.bytes.0.len(), kept, "{sent}");
        }
    }
}

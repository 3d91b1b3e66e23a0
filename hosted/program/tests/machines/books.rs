//! The journals of all machines and rounds as books.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::journal;
use crate::ledger::{Fate, Kind, Received, Sent, Stream, Tally};

/// Who a broadcast is to.
pub(crate) const ALL: u16 = u16::MAX;
/// More rounds than any test has.
const ROUNDS: u16 = 8;

/// A machine lost its memory in this round of the traffic, or right after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    machine: u16,
    round: u16,
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(machine, round)| {
            Some(Self { machine: machine.parse().ok()?, round: round.parse().ok()? })
        });
        numbers.ok_or_else(|| format!("{text:?} is not MACHINE:ROUND"))
    }
}

/// What was sent, and what one reader received of it.
struct Book {
    sent: Vec<Sent>,
    received: Received,
}

/// The memory that messages were put into is lost: they may have come, or not. A mailbox is its
/// owner's memory; a broadcast is, until others have it, its origin's.
fn doubt(sent: &mut Sent) {
    sent.fates.iter_mut().filter(|it| **it == Fate::Put).for_each(|it| *it = Fate::Unknown);
}

impl Book {
    fn is_complete(&self) -> bool {
        self.sent.iter().all(|Sent { stream, fates }| {
            let came = self.received.numbers(*stream);
            let mut put = (0..).zip(fates).filter(|(_, fate)| **fate == Fate::Put);
            put.all(|(number, _)| came.contains(&number))
        })
    }
}

pub(crate) struct Books {
    mailboxes: Book,
    /// Of each receiver.
    broadcasts: Vec<(u16, Book)>,
    losses: Vec<Loss>,
}

/// How the books balance.
pub(crate) struct Balance {
    mailboxes: Tally,
    broadcasts: Vec<(u16, Tally)>,
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { put, unknown, unknown_received, refused } = self.mailboxes;
        write!(f, "mailboxes: {put} of {put} put came, {unknown_received} of {unknown} unknown, ")?;
        write!(f, "none of {refused} refused; broadcasts:")?;
        for (receiver, Tally { put, unknown, unknown_received, .. }) in &self.broadcasts {
            write!(f, " to {receiver} {put} and {unknown_received} of {unknown} unknown,")?;
        }
        write!(f, " no origin in two ways")
    }
}

impl Books {
    pub(crate) fn read(folder: &Path, machines: u16, losses: &[Loss]) -> Self {
        let journal = |machine: u16, name: String| folder.join(format!("{machine}/traffic/{name}"));
        let is_lost = |machine: u16, round: u16| {
            losses.iter().any(|it| it.machine == machine && round <= it.round)
        };
        let mut mailboxes = Book { sent: Vec::new(), received: Received::default() };
        let mut casts = Vec::new();
        for (from, round) in (0..machines).flat_map(|from| (1..ROUNDS).map(move |it| (from, it))) {
            let kind = Kind::Client(round);
            for to in (0..machines).filter(|to| *to != from) {
                let stream = Stream { from, to, kind };
                let mut sent = journal::sent(&journal(from, format!("sent-{to}.{round}")), stream);
                if is_lost(to, round) {
                    doubt(&mut sent);
                }
                mailboxes.sent.push(sent);
            }
            let stream = Stream { from, to: ALL, kind };
            casts.push((
                from,
                round,
                journal::sent(&journal(from, format!("cast.{round}")), stream),
            ));
            let received = journal(from, format!("received.{round}"));
            journal::receive(&received, from, &mut mailboxes.received);
        }
        let broadcasts = (0..machines).map(|receiver| {
            let mut received = Received::default();
            for round in 1..ROUNDS {
                journal::receive(&journal(receiver, format!("heard.{round}")), ALL, &mut received);
            }
            let of_others = casts.iter().filter(|(from, ..)| *from != receiver);
            let sent = of_others.map(|(origin, round, sent)| {
                let mut sent = sent.clone();
                if is_lost(receiver, *round) || is_lost(*origin, *round) {
                    doubt(&mut sent);
                }
                sent
            });
            (receiver, Book { sent: sent.collect(), received })
        });
        let broadcasts = broadcasts.collect();
        Self { mailboxes, broadcasts, losses: losses.to_vec() }
    }

    /// Whether all that was put has come.
    pub(crate) fn are_complete(&self) -> bool {
        let all = self.broadcasts.iter().map(|(_, book)| book).chain([&self.mailboxes]);
        all.into_iter().all(|book| book.is_complete()) && self.disagreement().is_none()
    }

    /// Asserts what the module says.
    pub(crate) fn balance(&self) -> Balance {
        let tally = |book: &Book| book.received.balance(&book.sent);
        let mailboxes = tally(&self.mailboxes);
        let broadcasts = self.broadcasts.iter().map(|(receiver, book)| (*receiver, tally(book)));
        let broadcasts = broadcasts.collect();
        assert_eq!(self.disagreement(), None, "two survivors received different broadcasts");
        Balance { mailboxes, broadcasts }
    }

    /// A stream of which two machines received different messages, with both; of three machines
    /// that lost nothing. The broadcast is not a reliable one: an origin that is lost may have
    /// reached some members only.
    fn disagreement(&self) -> Option<String> {
        let is_survivor = |it: u16| self.losses.iter().all(|loss| loss.machine != it);
        let survivors: Vec<_> =
            self.broadcasts.iter().filter(|(receiver, _)| is_survivor(*receiver)).collect();
        for (first, one) in &survivors {
            for (second, other) in &survivors {
                let mut streams = one.sent.iter().map(|it| it.stream);
                let differing = streams.find(|stream| {
                    stream.from != *second
                        && is_survivor(stream.from)
                        && one.received.numbers(*stream) != other.received.numbers(*stream)
                });
                if let Some(stream) = differing {
                    return Some(format!("{stream:?} at {first} and {second}"));
                }
            }
        }
        None
    }
}

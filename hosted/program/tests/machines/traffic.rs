//! The traffic of one machine: to each other one, and to all; and what comes from them.
//!
//! The folder outside tells it when to go on to what: `calm` ends sending, which it confirms with
//! `silent`; `over` ends it. Each of these, and each journal, has the number of the round.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use weft::client::{Client, ClientError, Inbox, Listener, find};
use weft::node::control::{PutOutcome, Refused};

use crate::books::ALL;
use crate::journal::Journal;
use crate::ledger::{Kind, Sent, Stream};

/// How many messages one put has.
const BATCH: usize = 4;
/// The pause between two of them: emulated machines that share processors must not be full of
/// traffic, or their timers are late.
const PACE: Duration = Duration::from_millis(50);
/// How long an unreachable or full mailbox may hold up a put, and a reader may wait.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a node may be gone for. One that returns takes a while.
const ABSENCE: Duration = Duration::from_secs(120);

pub(crate) struct Traffic {
    folder: PathBuf,
    rank: u16,
    machines: u16,
    round: u16,
}

impl Traffic {
    pub(crate) fn new(folder: PathBuf, rank: u16, machines: u16, round: u16) -> Self {
        Self { folder, rank, machines, round }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{}", self.round))
    }

    fn is_said(&self, what: &str) -> bool {
        self.path(what).exists()
    }

    fn journal(&self, name: &str) -> Journal {
        Journal::create(&self.path(name))
    }

    /// Runs until it is over.
    pub(crate) fn run(&self) {
        std::fs::create_dir_all(&self.folder).expect("the folder outside");
        thread::scope(|scope| {
            let others = (0..self.machines).filter(|to| *to != self.rank);
            let mut writers: Vec<_> =
                others.map(|to| scope.spawn(move || self.put_to(to))).collect();
            writers.push(scope.spawn(|| self.broadcast()));
            scope.spawn(|| self.collect());
            scope.spawn(|| self.listen());
            for writer in writers {
                writer.join().expect("a writer");
            }
            std::fs::write(self.path("silent"), "").expect("the folder outside");
        });
    }

    /// A client of this machine's node, once it runs.
    fn client(&self) -> Client {
        let began = Instant::now();
        let name = "t".parse().expect("a name");
        loop {
            let connected = find(&name, TIMEOUT)
                .and_then(|(dir, cluster)| Client::connect(&dir, &cluster, self.rank, TIMEOUT));
            match connected {
                Ok(client) => return client,
                Err(error) if began.elapsed() > ABSENCE => panic!("no node: {error}"),
                Err(_) => thread::park_timeout(PACE),
            }
        }
    }

    /// Sends numbered messages until it is calm.
    fn write(
        &self,
        name: &str,
        to: u16,
        mut send: impl FnMut(&mut Client, &[&[u8]]) -> Result<PutOutcome, ClientError>,
    ) {
        let mut journal = self.journal(name);
        let mut sent = Sent::new(Stream { from: self.rank, to, kind: Kind::Client(self.round) });
        let mut client = self.client();
        while !self.is_said("calm") {
            let draft = sent.draft(BATCH);
            let messages: Vec<&[u8]> = draft.iter().map(Vec::as_slice).collect();
            journal.draft(BATCH);
            let outcome = match send(&mut client, &messages) {
                Ok(outcome) => outcome,
                Err(ClientError::Refused { reason, .. }) => match reason {
                    Refused::ComponentLost | Refused::TimedOut => all_unknown(),
                    _ => PutOutcome::default(),
                },
                Err(_) => {
                    client = self.client();
                    all_unknown()
                }
            };
            journal.note(&outcome);
            sent.note(BATCH, Ok(outcome)).expect("an outcome is no error");
            thread::park_timeout(PACE);
        }
    }

    fn put_to(&self, to: u16) {
        self.write(&format!("sent-{to}"), to, |client, messages| client.put(to, messages, TIMEOUT));
    }

    fn broadcast(&self) {
        self.write("cast", ALL, |client, messages| {
            let outcome = client.broadcast(u64::from(self.round), messages, TIMEOUT)?;
            Ok(PutOutcome { put: outcome.broadcast, ..PutOutcome::default() })
        });
    }

    fn collect(&self) {
        let mut journal = self.journal("received");
        let mut inbox = Inbox::new(self.client());
        while !self.is_said("over") {
            match inbox.receive(usize::MAX, TIMEOUT) {
                Ok(messages) => messages.iter().for_each(|it| {
                    journal.received(it.from, it.incarnation, &it.payload.0);
                }),
                Err(ClientError::Refused { .. }) => thread::park_timeout(PACE),
                Err(_) => inbox = Inbox::new(self.client()),
            }
        }
        // What was handed out last is in the journal.
        let _ = inbox.finish();
    }

    fn listen(&self) {
        let mut journal = self.journal("heard");
        let mut listener = None;
        while !self.is_said("over") {
            let begun = match listener.take() {
                None => Listener::begin(self.client(), TIMEOUT),
                Some(begun) => Ok(begun),
            };
            let heard = begun.and_then(|mut begun| {
                let heard = begun.listen(None, usize::MAX, TIMEOUT);
                if let Ok(heard) = &heard {
                    assert_eq!(heard.conflicts, [], "no machine lies");
                    for it in &heard.messages {
                        journal.received(it.origin, 0, &it.payload.0);
                        begun.note_dealt_with(it.origin, it.seq);
                    }
                }
                match heard {
                    Ok(_) | Err(ClientError::Refused { .. }) => listener = Some(begun),
                    Err(_) => {}
                }
                heard
            });
            if heard.is_err() {
                thread::park_timeout(PACE);
            }
        }
        // The next round's goes on behind what this one has in its journal.
        let _ = listener.map_or(Ok(()), Listener::end);
    }
}

fn all_unknown() -> PutOutcome {
    PutOutcome { unknown: BATCH, ..PutOutcome::default() }
}

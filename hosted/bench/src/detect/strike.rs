//! One fault at a cluster of processes: how it is struck, and how it ends.

use std::fs;
use std::path::PathBuf;

use super::fault::{DetectFault, Target};
use super::processes::PATIENCE;
use crate::error::BenchError;
use weft::client::{self, Client, ClientError};
use weft::launch::Launched;
use weft::node::control::{self, NodeOrder};
use weft::process::{Pid, Pidfd, Signal};

/// A fault, and the nodes that it concerns.
pub(super) struct DetectStrike<'a> {
    pub(super) launched: &'a Launched,
    pub(super) fault: DetectFault,
    pub(super) target: Target,
    pub(super) manager: u16,
    pub(super) victim: u16,
}

impl DetectStrike<'_> {
    /// Cuts the link under which the node will be struck; whether there is one.
    pub(super) fn prepare(&self) -> Result<bool, BenchError> {
        let is_under_cut =
            matches!(self.fault, DetectFault::KillUnderCut | DetectFault::NodeUnderCut);
        if is_under_cut {
            self.cut_both_ways(vec![self.manager])?;
        }
        Ok(is_under_cut)
    }

    /// Strikes.
    pub(super) fn strike(&self) -> Result<(), BenchError> {
        let mut client = self.connect(self.victim)?;
        match self.fault {
            DetectFault::Kill | DetectFault::KillUnderCut => client.kill()?,
            DetectFault::Hang => client.inject(control::Fault::Hang)?,
            DetectFault::Silence => client.inject(control::Fault::Silence)?,
            DetectFault::Node | DetectFault::NodeUnderCut => client.kill_node()?,
            DetectFault::Partition => self.cut_both_ways(self.others().collect())?,
            DetectFault::CutPair => self.cut_both_ways(self.pair())?,
            DetectFault::CutPairOneWay => self.cut(self.victim, self.pair())?,
            DetectFault::Deaf => {
                self.others().try_for_each(|other| self.cut(other, vec![self.victim]))?;
            }
            DetectFault::HungSupervisor => {
                let supervisor = Pid::from_raw(client.status()?.supervisor_pid);
                let supervisor = supervisor.map(Pidfd::open).transpose()?;
                supervisor.map(|it| it.signal(Signal::STOP)).transpose()?;
            }
            DetectFault::FailedStarts => {
                // No process can open a directory as the file that the note was.
                let [note, aside] = self.note();
                fs::rename(&note, aside).map_err(BenchError::Note)?;
                fs::create_dir(note).map_err(BenchError::Note)?;
                client.kill()?;
            }
            DetectFault::Isolation => {
                self.connect(self.manager)?.order_node(self.victim, NodeOrder::Isolate)?;
            }
        }
        Ok(())
    }

    /// Whether the fault lasts until it is mended.
    pub(super) const fn lasts(&self) -> bool {
        !matches!(
            self.fault,
            DetectFault::Kill
                | DetectFault::Hang
                | DetectFault::Silence
                | DetectFault::Node
                | DetectFault::HungSupervisor
        )
    }

    /// Ends a fault that lasts.
    pub(super) fn mend(&self) -> Result<(), BenchError> {
        match self.fault {
            DetectFault::FailedStarts => {
                let [note, aside] = self.note();
                fs::remove_dir(&note).map_err(BenchError::Note)?;
                fs::rename(aside, note).map_err(BenchError::Note)
            }
            DetectFault::Isolation => {
                Ok(self.connect(self.manager)?.order_node(self.victim, NodeOrder::Release)?)
            }
            _ => {
                let mut ranks = self.launched.ranks();
                ranks.try_for_each(|rank| self.order(rank, &control::Fault::Heal))
            }
        }
    }

    fn connect(&self, rank: u16) -> Result<Client, ClientError> {
        self.launched.connect(rank, PATIENCE)
    }

    fn others(&self) -> impl Iterator<Item = u16> {
        self.launched.ranks().filter(|rank| *rank != self.victim)
    }

    /// Two other nodes, with the manager if that is another one.
    fn pair(&self) -> Vec<u16> {
        let second = self.others().find(|rank| *rank != self.manager);
        let first = match self.target {
            Target::Backup => Some(self.manager),
            Target::Manager => self.others().last(),
        };
        first.into_iter().chain(second).collect()
    }

    fn note(&self) -> [PathBuf; 2] {
        let note = self.launched.dir().term_file(usize::from(self.victim));
        let aside = note.with_extension("aside");
        [note, aside]
    }

    fn cut_both_ways(&self, from: Vec<u16>) -> Result<(), BenchError> {
        from.iter().try_for_each(|other| self.cut(*other, vec![self.victim]))?;
        self.cut(self.victim, from)
    }

    /// Cuts the links from `node` to others.
    fn cut(&self, node: u16, from: Vec<u16>) -> Result<(), BenchError> {
        self.order(node, &control::Fault::Partition { from })
    }

    fn order(&self, rank: u16, fault: &control::Fault) -> Result<(), BenchError> {
        let ask = || self.connect(rank)?.inject(fault.clone());
        Ok(client::order_lasting(ask)?)
    }
}

//! The recovery script in its translated form: image, verifier, interpreter.
//!
//! ```text
//!   script ─▶ translator ─▶ image ─▶ verify ─▶ Program ─┐
//!             (hosted)      32 KiB   one pass           ├─▶ Rint::evaluate, step ─▶ poll_order
//!                      the database, frozen ─▶ Picture ─┘
//! ```
//!
//! A script is a list of guarded actions. Translated, it is an image of at most 3,000 words;
//! nothing in it is believed before [`verify`] accepts it, and what was accepted ends within as
//! many steps as it has words and cannot fail. [`Rint`], which has its name from the DIR net's
//! "r-code virtual machine", evaluates it on one frozen [`Picture`] of the replicated database and
//! gives at most [`ORDERS_MAX`] orders. The behaviours and their numbers are in `SPEC.md`.
//!
//! [`Evaluator`] is the manager's side: it evaluates when there is news, and repeats an order until
//! its node has judged it; [`DeclaredTask`] is the node's, and obeys each at most once. [`Reload`]
//! replaces the script of a cluster that runs. All of it at a component of the DIR net:
//! [`script`](crate::script).
//!
//! Out of scope: who manages, and how an order travels. Both belong to the DIR net, which this
//! module does not know.

mod alpha;
mod answered;
mod declared;
mod evaluator;
mod id_set;
mod image;
mod instruction;
mod limits;
pub(crate) mod mutants;
mod op;
mod order;
mod picture;
mod poll;
mod program;
mod rejected;
mod reload;
mod rint;
mod tally;
mod verify;
mod voter;
mod voting;

#[cfg(test)]
mod tests;

pub use crate::ids::OrderId;
pub use alpha::{AlphaCount, AlphaRule};
pub use answered::{Answered, Judgement};
pub use declared::{Declared, DeclaredTask, Mark};
pub use evaluator::{Evaluator, TaskOrder};
pub use id_set::IdSet;
pub use image::{Header, Rcode, seal};
pub use instruction::{Depth, Entity, Fact, Instruction, Subject, Target, Word};
pub use limits::*;
pub use mutants::MUTANTS;
pub use op::{
    Algorithm, Comparison, FactName, Fallback, Kind, Op, Role, Status, TimeoutName, Verb,
};
pub use order::{Order, Outcome, Placed, Trace};
pub use picture::{NodeFact, Picture, TaskFact, TaskState};
pub use poll::{Poll, VoteMember};
pub use program::{Program, Timeouts, VotingRule, Watchdog};
pub use rejected::{Reason, Rejected};
pub use reload::{Difference, HeldScript, Reload, ReloadStep, Unlike};
pub use rint::{Progress, Rint, RintError};
pub use tally::{Ballots, Tally, tally};
pub use verify::{Expected, verify};
pub use voter::{BALLOTS_MAX, VOTER_LEN, VoteRefused, Voter};
pub use voting::{Voting, VotingSeat};

//! Both sides of a turn: the leader measures, the follower answers.

use super::end::{BareEnd, SpinWait};
use super::error::VerbsBenchError;
use super::mail::{self, Mail};
use super::subject::{VerbsOp, VerbsSubject};
use super::word::{PATIENCE, VerbsTurn};
use crate::figure::Samples;

/// An endpoint's two fabrics.
#[derive(Debug)]
pub(super) struct FabricPair {
    pub(super) end: BareEnd,
    pub(super) mail: Mail,
}

/// A turn's count of operations, and the number of its first write.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnSpan {
    pub(super) iterations: u32,
    pub(super) first: u64,
}

impl TurnSpan {
    fn numbers(self) -> std::ops::Range<u64> {
        self.first..self.first + u64::from(self.iterations)
    }
}

impl FabricPair {
    /// The leader's side; the samples are nanoseconds an operation.
    pub(super) fn lead(
        &mut self,
        turn: VerbsTurn,
        course: TurnSpan,
        samples: &mut Samples,
    ) -> Result<(), VerbsBenchError> {
        self.end.vigil.begin(PATIENCE);
        match turn {
            VerbsTurn::Subject(VerbsSubject { what: VerbsOp::Bandwidth, bytes }) => {
                let begun = self.end.vigil.tick().0;
                self.end.stream(bytes, course.iterations, course.first)?;
                let span_ns = self.end.vigil.tick().0 - begun;
                samples.push(span_ns, u64::from(course.iterations));
                return Ok(());
            }
            VerbsTurn::Arrived { .. } => return Ok(()),
            VerbsTurn::Subject(_) | VerbsTurn::AddAndWrite => {}
        }
        let mut begun = self.end.vigil.tick().0;
        for number in course.numbers() {
            let parts = self.lead_one(turn, number)?;
            let now = self.end.vigil.tick().0;
            samples.push(now - begun, parts);
            begun = now;
        }
        Ok(())
    }

    /// One operation of the leader; returns how many of what is measured it was.
    fn lead_one(&mut self, turn: VerbsTurn, number: u64) -> Result<u64, VerbsBenchError> {
        let Self { end, mail } = self;
        match turn {
            VerbsTurn::Subject(VerbsSubject { what, bytes }) => match what {
                VerbsOp::Write | VerbsOp::Bandwidth => {
                    end.write(bytes, number)?;
                    end.await_write(bytes, number)?;
                    Ok(2)
                }
                VerbsOp::Read => end.read(bytes).map(|()| 1),
                VerbsOp::FetchAdd => end.add().map(|()| 1),
                VerbsOp::Mailbox => {
                    let vigil: &mut SpinWait = &mut end.vigil;
                    mail.put(vigil, bytes, number)?;
                    mail.await_message(vigil, bytes, number)?;
                    Ok(2)
                }
                VerbsOp::Broadcast | VerbsOp::Tree | VerbsOp::TensorRead | VerbsOp::TensorWrite => {
                    Err(VerbsBenchError::OutOfStep("a broadcast of two"))
                }
            },
            VerbsTurn::Arrived { .. } => Ok(1),
            VerbsTurn::AddAndWrite => {
                end.add()?;
                end.write(mail::stride(), number)?;
                end.await_write(mail::stride(), number)?;
                Ok(2)
            }
        }
    }

    /// The follower's side.
    pub(super) fn follow(
        &mut self,
        turn: VerbsTurn,
        course: TurnSpan,
    ) -> Result<(), VerbsBenchError> {
        let Self { end, mail } = self;
        end.vigil.begin(PATIENCE);
        match turn {
            VerbsTurn::Subject(VerbsSubject { what, bytes }) => match what {
                VerbsOp::Write => course.numbers().try_for_each(|number| {
                    end.await_write(bytes, number)?;
                    end.vigil.tick();
                    end.write(bytes, number)
                }),
                VerbsOp::Broadcast | VerbsOp::Tree | VerbsOp::TensorRead | VerbsOp::TensorWrite => {
                    Err(VerbsBenchError::OutOfStep("a broadcast of two"))
                }
                // The device answers.
                VerbsOp::Bandwidth | VerbsOp::Read | VerbsOp::FetchAdd => Ok(()),
                VerbsOp::Mailbox => course.numbers().try_for_each(|number| {
                    mail.await_message(&mut end.vigil, bytes, number)?;
                    end.vigil.tick();
                    mail.put(&mut end.vigil, bytes, number)
                }),
            },
            VerbsTurn::Arrived { bytes } => end.await_write(bytes, course.first),
            VerbsTurn::AddAndWrite => course.numbers().try_for_each(|number| {
                let bytes = mail::stride();
                end.await_write(bytes, number)?;
                end.vigil.tick();
                end.add()?;
                end.write(bytes, number)
            }),
        }
    }
}

//! Both sides of a turn: the leader measures, the follower answers.

use super::end::{End, Vigil};
use super::error::VerbsBenchError;
use super::mail::{self, Mail};
use super::subject::{Subject, What};
use super::word::{PATIENCE, Turn};
use crate::figure::Samples;

/// An endpoint's two fabrics.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) end: End,
    pub(super) mail: Mail,
}

/// A turn's count of operations, and the number of its first write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) iterations: u32,
    pub(super) first: u64,
}

impl Course {
    fn numbers(self) -> std::ops::Range<u64> {
        self.first..self.first + u64::from(self.iterations)
    }
}

impl Pair {
    /// The leader's side; the samples are nanoseconds an operation.
    pub(super) fn lead(
        &mut self,
        turn: Turn,
        course: Course,
        samples: &mut Samples,
    ) -> Result<(), VerbsBenchError> {
        self.end.vigil.begin(PATIENCE);
        match turn {
            Turn::Subject(Subject { what: What::Bandwidth, bytes }) => {
                let begun = self.end.vigil.tick().0;
                self.end.stream(bytes, course.iterations, course.first)?;
                let span_ns = self.end.vigil.tick().0 - begun;
                samples.push(span_ns, u64::from(course.iterations));
                return Ok(());
            }
            Turn::Arrived { .. } => return Ok(()),
            Turn::Subject(_) | Turn::AddAndWrite => {}
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
    fn lead_one(&mut self, turn: Turn, number: u64) -> Result<u64, VerbsBenchError> {
        let Self { end, mail } = self;
        match turn {
            Turn::Subject(Subject { what, bytes }) => match what {
                What::Write | What::Bandwidth => {
                    end.write(bytes, number)?;
                    end.await_write(bytes, number)?;
                    Ok(2)
                }
                What::Read => end.read(bytes).map(|()| 1),
                What::FetchAdd => end.add().map(|()| 1),
                What::Mailbox => {
                    let vigil: &mut Vigil = &mut end.vigil;
                    mail.put(vigil, bytes, number)?;
                    mail.await_message(vigil, bytes, number)?;
                    Ok(2)
                }
                What::Broadcast | What::Tree | What::TensorRead | What::TensorWrite => {
                    Err(VerbsBenchError::OutOfStep("a broadcast of two"))
                }
            },
            Turn::Arrived { .. } => Ok(1),
            Turn::AddAndWrite => {
                end.add()?;
                end.write(mail::stride(), number)?;
                end.await_write(mail::stride(), number)?;
                Ok(2)
            }
        }
    }

    /// The follower's side.
    pub(super) fn follow(&mut self, turn: Turn, course: Course) -> Result<(), VerbsBenchError> {
        let Self { end, mail } = self;
        end.vigil.begin(PATIENCE);
        match turn {
            Turn::Subject(Subject { what, bytes }) => match what {
                What::Write => course.numbers().try_for_each(|number| {
                    end.await_write(bytes, number)?;
                    end.vigil.tick();
                    end.write(bytes, number)
                }),
                What::Broadcast | What::Tree | What::TensorRead | What::TensorWrite => {
                    Err(VerbsBenchError::OutOfStep("a broadcast of two"))
                }
                // The device answers.
                What::Bandwidth | What::Read | What::FetchAdd => Ok(()),
                What::Mailbox => course.numbers().try_for_each(|number| {
                    mail.await_message(&mut end.vigil, bytes, number)?;
                    end.vigil.tick();
                    mail.put(&mut end.vigil, bytes, number)
                }),
            },
            Turn::Arrived { bytes } => end.await_write(bytes, course.first),
            Turn::AddAndWrite => course.numbers().try_for_each(|number| {
                let bytes = mail::stride();
                end.await_write(bytes, number)?;
                end.vigil.tick();
                end.add()?;
                end.write(bytes, number)
            }),
        }
    }
}

//! A member of a cluster: this process.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction};
use rustix::event::PollFlags;
use weft::clock::Deadline;
use weft::member::{
    BroadcastError, CallError, JoinError, Member as WeftMember, MemberEnded, MemberHandle,
    PutError, Rank, STOP_TIMEOUT, Taken, TakenBatch, TensorName,
};
use weft::readiness::{Readiness, await_events};

use crate::error::{OrRaise, Raise, refused};
use crate::event::{Event, View};
use crate::group::Group;
use crate::home::Home;
use crate::inbox::Inbox;
use crate::message::{Delivery, Message, bytes_of, release_all};
use crate::task::{Notice, vote_of};
use crate::tensor::{self, Offer, Tensor};
use crate::waiting::{seconds, wait, wait_for_room};

/// A member of a cluster: this process, one in a process. Any thread may use it.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Member {
    handle: Home<MemberHandle>,
    pub(crate) inbox: Inbox,
}

/// Takes over what the node that started this process hands to it, and returns once the cluster has
/// admitted it. A thread of its own moves the member on from here. Join before you import what
/// takes seconds: a process that has not joined within half of `dirnet.timing.clone_ms` is killed.
///
/// What was put is flushed when the interpreter exits, for 5 s at most.
#[pyfunction]
#[pyo3(signature = (timeout=10.0))]
pub(crate) fn join(py: Python<'_>, timeout: f64) -> PyResult<Py<Member>> {
    let timeout = seconds(py, timeout)?;
    let joined = py.detach(|| {
        let member = WeftMember::join_within(timeout)?;
        member.spawn().map_err(JoinError::from)
    });
    let handle = joined.map_err(|error| refused(py, &error))?;
    let member = Py::new(py, Member { handle: Home::new(handle), inbox: Inbox::default() })?;
    py.import("atexit")?.call_method1("register", (at_exit(py, &member)?,))?;
    Ok(member)
}

/// Flushes what was put; in a child that was forked, nothing.
fn at_exit<'py>(py: Python<'py>, member: &Py<Member>) -> PyResult<Bound<'py, PyCFunction>> {
    let member = member.clone_ref(py);
    PyCFunction::new_closure(py, None, None, move |arguments, _| {
        if let Ok(handle) = member.get().handle.get() {
            // What cannot be put within that time is lost, as in a program that is ended.
            arguments.py().detach(|| handle.flush(STOP_TIMEOUT).is_ok());
        }
    })
}

/// Whether a later attempt may find what this one did not.
/// A number that no rank can have, as one that no cluster has: it is refused like any such.
fn rank_of(number: &Bound<'_, PyAny>) -> PyResult<u16> {
    let is_beyond = |error: &PyErr| error.is_instance_of::<PyOverflowError>(number.py());
    number.extract().or_else(|error| if is_beyond(&error) { Ok(u16::MAX) } else { Err(error) })
}

fn is_lack_of_room(error: &CallError<PutError>) -> bool {
    matches!(error, CallError::Refused(PutError::Full { .. } | PutError::NotAMember))
}

impl Member {
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<&MemberHandle> {
        self.handle.get().or_raise(py)
    }
}

#[pymethods]
impl Member {
    /// The rank of this member.
    #[getter]
    fn rank(&self, py: Python<'_>) -> PyResult<u16> {
        Ok(self.handle(py)?.rank().0)
    }

    /// How many members the cluster has, running or not.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u16> {
        Ok(self.handle(py)?.size())
    }

    /// The name of the cluster.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.handle(py)?.name().to_owned())
    }

    /// The incarnation of this member: one higher for each start of a process at this node.
    #[getter]
    fn incarnation(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.handle(py)?.incarnation().0)
    }

    /// The longest message of the mailbox, in bytes.
    #[getter]
    fn message_len(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.handle(py)?.message_len())
    }

    /// The longest broadcast, in bytes.
    #[getter]
    fn broadcast_len(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.handle(py)?.broadcast_len())
    }

    /// The ranks that this member exchanges messages with now, its own included.
    #[getter]
    fn members(&self, py: Python<'_>) -> PyResult<Vec<u16>> {
        let handle = self.handle(py)?;
        let ranks = py.detach(|| handle.members()).or_raise(py)?;
        Ok(ranks.into_iter().map(|rank| rank.0).collect())
    }

    /// The view that this member shows; None before the first one.
    #[getter]
    fn view(&self, py: Python<'_>) -> PyResult<Option<View>> {
        let handle = self.handle(py)?;
        Ok(py.detach(|| handle.view()).or_raise(py)?.map(View))
    }

    /// Whether the membership may be another by now.
    #[getter]
    fn is_view_stale(&self, py: Python<'_>) -> PyResult<bool> {
        let handle = self.handle(py)?;
        py.detach(|| handle.is_view_stale()).or_raise(py)
    }

    /// The manager of the DIR net, once it is known.
    #[getter]
    fn manager(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        let handle = self.handle(py)?;
        Ok(py.detach(|| handle.manager()).or_raise(py)?.map(|rank| rank.0))
    }

    /// A descriptor that is readable while there is an event, a message, a broadcast or a delivery
    /// of a group to drain, and after the end: for asyncio and epoll. Do not read from it.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.handle(py)?.as_fd().as_raw_fd())
    }

    /// Waits until there is something to drain; whether there is by the end of the timeout.
    #[pyo3(signature = (timeout=1.0))]
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let waited = wait(py, timeout, |slice| {
            let ready = await_events(handle.as_fd(), PollFlags::IN, Deadline::after(slice));
            let is_ready = ready.is_ok_and(|ready| ready == Readiness::Ready);
            Ok::<_, MemberEnded>(is_ready.then_some(()))
        })?;
        Ok(waited.is_some())
    }

    /// Drains the events, oldest first.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        let handle = self.handle(py)?;
        let mut drained = Vec::new();
        loop {
            let next = py.detach(|| self.inbox.wait(handle, Duration::ZERO, |it| it.next()));
            match next {
                Ok(Some(event)) => drained.push(event),
                Ok(None) => return Ok(drained),
                Err(_) if !drained.is_empty() => return Ok(drained),
                Err(over) => return Err(over.raise(py)),
            }
        }
    }

    /// The next event, oldest first; None by the end of the timeout.
    #[pyo3(signature = (timeout=0.0))]
    fn next_event(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Event>> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        wait(py, timeout, |slice| self.inbox.wait(handle, slice, |it| it.next()))
    }

    /// Puts a message into the mailbox of a member, which may be this one. Waits for room, and for
    /// an incarnation of that member.
    #[pyo3(signature = (to, payload, timeout=5.0))]
    fn put(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = rank_of)] to: u16,
        payload: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<()> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let bytes = bytes_of(payload)?;
        wait_for_room(py, timeout, is_lack_of_room, |slice| handle.put(Rank(to), &bytes, slice))
    }

    /// Puts the first of the messages into the mailbox of a member, as many as there is room for,
    /// and returns how many: put the rest again. Waits until one was accepted.
    #[pyo3(signature = (to, payloads, timeout=5.0))]
    fn put_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = rank_of)] to: u16,
        payloads: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<usize> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let read = payloads.try_iter()?.map(|payload| bytes_of(&payload?));
        let read = read.collect::<PyResult<Vec<Vec<u8>>>>()?;
        let batch = || read.iter().map(Vec::as_slice);
        let put = |slice| handle.put_batch(Rank(to), batch(), slice);
        wait_for_room(py, timeout, is_lack_of_room, put)
    }

    /// Waits until all that was put is in the memory of its receivers; whether it is.
    #[pyo3(signature = (timeout=5.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let flush = |slice| handle.flush(slice).map(|flushed| flushed.then_some(()));
        Ok(wait(py, timeout, flush)?.is_some())
    }

    /// The next message of the own mailbox; None by the end of the timeout.
    #[pyo3(signature = (timeout=0.0))]
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Message>> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let taken = wait(py, timeout, |slice| handle.take(slice))?;
        taken.map(|taken| Message::new(py, handle.clone(), taken)).transpose()
    }

    /// The next messages of the own mailbox, at most so many, as soon as there is one; none by the
    /// end of the timeout.
    #[pyo3(signature = (most, timeout=0.0))]
    fn take_batch(&self, py: Python<'_>, most: usize, timeout: f64) -> PyResult<Vec<Message>> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let mut batch = TakenBatch::default();
        if most > 0 {
            wait(py, timeout, |slice| {
                let taken = handle.take_batch(&mut batch, most, slice);
                taken.map(|taken| (taken > 0).then_some(()))
            })?;
        }
        let message = |(sender, sequence, receipt, payload): (_, _, _, &[u8])| {
            let taken = Taken { sender, sequence, receipt, payload: payload.to_vec() };
            Message::new(py, handle.clone(), taken)
        };
        batch.iter().map(message).collect()
    }

    /// Releases messages in one call, as `Message.release` does one: all of them, or none.
    fn release_batch(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        let messages = messages.try_iter()?.map(|it| Ok(it?.cast_into::<Message>()?.unbind()));
        release_all(py, self.handle(py)?, &messages.collect::<PyResult<Vec<_>>>()?)
    }

    /// Broadcasts to all other members, and returns the number of the message. No two of them
    /// deliver different messages under it. Waits for room in the window.
    #[pyo3(signature = (payload, timeout=5.0))]
    fn broadcast(&self, py: Python<'_>, payload: &Bound<'_, PyAny>, timeout: f64) -> PyResult<u64> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let bytes = bytes_of(payload)?;
        let is_lack = |error: &CallError<BroadcastError>| {
            matches!(error, CallError::Refused(BroadcastError::WindowFull))
        };
        wait_for_room(py, timeout, is_lack, |slice| handle.broadcast(&bytes, slice))
    }

    /// The next broadcast of another member, which counts as delivered; None by the end of the
    /// timeout.
    #[pyo3(signature = (timeout=0.0))]
    fn deliver(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Delivery>> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let delivered = wait(py, timeout, |slice| handle.deliver(slice))?;
        Ok(delivered.map(|delivered| Delivery::of(py, &delivered)))
    }

    /// A broadcast that this or an earlier incarnation has delivered, while it is kept.
    fn delivered(&self, py: Python<'_>, origin: u16, seq: u64) -> PyResult<Option<Delivery>> {
        let handle = self.handle(py)?;
        let delivered = py.detach(|| handle.delivered(Rank(origin), seq)).or_raise(py)?;
        Ok(delivered.map(|delivered| Delivery::of(py, &delivered)))
    }

    /// Replaces the record of this member, which outlives the program and not its node.
    fn save(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let (handle, bytes) = (self.handle(py)?, bytes_of(record)?);
        py.detach(|| handle.save(&bytes)).or_raise(py)
    }

    /// The record that this or an earlier incarnation has saved.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let handle = self.handle(py)?;
        let saved = py.detach(|| handle.saved()).or_raise(py)?;
        Ok(saved.map(|record| PyBytes::new(py, &record)))
    }

    /// The group of that name in the cluster file.
    fn group(&self, py: Python<'_>, name: String) -> PyResult<Group> {
        let handle = self.handle(py)?;
        let found = py.detach(|| handle.with_group(&name, Duration::ZERO, |_| Some(())));
        found.or_raise(py)?;
        Ok(Group::new(handle.clone(), name))
    }

    /// Sends a tensor to a member, which may be this one: an array that has the buffer protocol or
    /// `__dlpack__`. It is copied, and waits for its receiver (event "consumed"). Waits for room.
    #[pyo3(signature = (to, edge, step, array, timeout=5.0))]
    fn send(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = rank_of)] to: u16,
        edge: &str,
        step: i64,
        array: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<Offer> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        tensor::send(handle, (Rank(to), TensorName { edge, step }), array, timeout)
    }

    /// Sends a dead tensor: its receiver learns that there is none.
    #[pyo3(signature = (to, edge, step, timeout=5.0))]
    fn send_dead(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = rank_of)] to: u16,
        edge: &str,
        step: i64,
        timeout: f64,
    ) -> PyResult<Offer> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        tensor::send_dead(py, handle, (Rank(to), TensorName { edge, step }), timeout)
    }

    /// Receives a tensor that a member sends, earlier or later; None if it is a dead one. Refused,
    /// and left at its source, where it is of another type than `dtype` or of another shape.
    #[pyo3(signature = (source, edge, step, timeout=5.0, *, dtype=None, shape=None))]
    fn receive(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = rank_of)] source: u16,
        edge: &str,
        step: i64,
        timeout: f64,
        dtype: Option<&str>,
        shape: Option<Vec<u64>>,
    ) -> PyResult<Option<Tensor>> {
        let (py, timeout) = (slf.py(), seconds(slf.py(), timeout)?);
        let expect = tensor::expect(dtype, shape).or_raise(py)?;
        let from = (Rank(source), TensorName { edge, step });
        tensor::receive(py, slf.get(), from, (expect, timeout))
    }

    /// Drops the tensors of a step that were sent here, and ends its receives, here and at members
    /// that wait for them.
    fn clean_step(&self, py: Python<'_>, step: i64) -> PyResult<()> {
        let handle = self.handle(py)?;
        py.detach(|| handle.clean_step(step)).or_raise(py)
    }

    /// As `clean_step`, as a failure. The first end of a step stands.
    fn abort_step(&self, py: Python<'_>, step: i64) -> PyResult<()> {
        let handle = self.handle(py)?;
        py.detach(|| handle.abort_step(step)).or_raise(py)
    }

    /// Votes in a round for a task of this node that is a version of an N-version task: a number,
    /// or bytes, which agree with the same bytes alone. The vote stands once this returns.
    fn vote(
        &self,
        py: Python<'_>,
        task: &str,
        round: u32,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (handle, vote) = (self.handle(py)?, vote_of(value)?);
        py.detach(|| handle.vote(task, round, vote)).or_raise(py)
    }

    /// Reports the phase of a task of this node: a number that the guard PHASE of a recovery script
    /// reads.
    fn report_phase(&self, py: Python<'_>, task: &str, phase: u8) -> PyResult<()> {
        let handle = self.handle(py)?;
        py.detach(|| handle.report_phase(task, phase)).or_raise(py)
    }

    /// What SEND and WARN of the recovery script have for a task of this node, and outcomes of
    /// votes, oldest first; none by the end of the timeout. What an incarnation was not returned,
    /// the next one gets.
    #[pyo3(signature = (task, timeout=0.0))]
    fn notices(&self, py: Python<'_>, task: &str, timeout: f64) -> PyResult<Vec<Notice>> {
        let (handle, timeout) = (self.handle(py)?, seconds(py, timeout)?);
        let come = wait(py, timeout, |slice| {
            let come = handle.notices(task, slice);
            come.map(|come| (!come.notices.is_empty()).then_some(come))
        })?;
        Ok(come.map(Notice::of_all).unwrap_or_default())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let handle = self.handle(py)?;
        let (name, rank, size) = (handle.name(), handle.rank().0, handle.size());
        Ok(format!("Member(name={name:?}, rank={rank}, size={size})"))
    }
}

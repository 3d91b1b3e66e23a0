//! Groups of members: messages of any length along trees, barriers and all-gathers.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weft::cluster::Topology;
use weft::member::{CallError, Group as WeftGroup, GroupDelivery as It, GroupError, MemberHandle};

use crate::error::{OrRaise, refused};
use crate::home::Home;
use crate::message::bytes_of;
use crate::waiting::{seconds, wait, wait_for_room};

/// A group of the cluster file, from `Member.group`.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Group {
    handle: Home<MemberHandle>,
    /// Its name in the cluster file.
    #[pyo3(get)]
    name: String,
}

/// What a member receives from one root, in its order; what does not belong to its kind is None.
#[pyclass(frozen, module = "weft")]
pub(crate) struct GroupDelivery {
    /// "part", "abandoned" or "root_lost".
    #[pyo3(get)]
    kind: &'static str,
    /// The sender.
    #[pyo3(get)]
    root: u16,
    /// The number of the message; of the last one, where the root is lost.
    #[pyo3(get)]
    seq: u64,
    /// The sender's tag.
    #[pyo3(get)]
    tag: Option<u64>,
    /// Where in the message the part begins.
    #[pyo3(get)]
    offset: Option<u64>,
    /// Bytes of the whole message.
    #[pyo3(get)]
    message_len: Option<u64>,
    /// Whether the message is whole with this part.
    #[pyo3(get)]
    is_last: Option<bool>,
    /// The bytes of the part.
    #[pyo3(get)]
    payload: Option<Py<PyBytes>>,
}

/// Whether a later attempt may find what this one did not.
fn is_lack_of_room(error: &CallError<GroupError>) -> bool {
    matches!(error, CallError::Refused(GroupError::WindowFull { .. } | GroupError::Opening))
}

/// Whether the call goes on where it is.
fn has_timed_out(error: &CallError<GroupError>) -> bool {
    matches!(error, CallError::Refused(GroupError::TimedOut))
}

impl Group {
    pub(crate) fn new(handle: MemberHandle, name: String) -> Self {
        Self { handle: Home::new(handle), name }
    }

    /// Attempts until there is room; the last lack of it is the failure.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        timeout: f64,
        act: impl Fn(&mut WeftGroup<'_>) -> Result<T, GroupError> + Send + Sync,
    ) -> PyResult<T> {
        let (handle, timeout) = (self.handle.get().or_raise(py)?, seconds(py, timeout)?);
        wait_for_room(py, timeout, is_lack_of_room, |slice| {
            let mut lack = GroupError::Opening;
            let done = handle.with_group(&self.name, slice, |group| match act(group) {
                Err(error @ (GroupError::WindowFull { .. } | GroupError::Opening)) => {
                    lack = error;
                    None
                }
                done => Some(done),
            })?;
            done.unwrap_or(Err(lack)).map_err(CallError::Refused)
        })
    }
}

#[pymethods]
impl Group {
    /// How the blocks of messages travel that this incarnation sends from now on: a word as for
    /// `group.topology` in the cluster file, such as "pipe".
    fn set_topology(&self, py: Python<'_>, topology: &str) -> PyResult<()> {
        let topology = topology.parse::<Topology>().map_err(|error| refused(py, &error))?;
        self.call(py, 0.0, |group| group.set_topology(topology))
    }

    /// Sends a message to all other members, whole or not at all, and returns its number. What is
    /// longer than the window must be begun.
    #[pyo3(signature = (payload, tag=0, timeout=5.0))]
    fn broadcast(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        tag: u64,
        timeout: f64,
    ) -> PyResult<u64> {
        let bytes = bytes_of(payload)?;
        self.call(py, timeout, |group| group.broadcast(tag, &bytes))
    }

    /// Begins a message of so many bytes, and returns its number.
    #[pyo3(signature = (length, tag=0, timeout=5.0))]
    fn begin(&self, py: Python<'_>, length: u64, tag: u64, timeout: f64) -> PyResult<u64> {
        self.call(py, timeout, |group| group.begin(tag, length))
    }

    /// Writes the next bytes of the message that was begun, and returns how many the window took.
    #[pyo3(signature = (payload, timeout=5.0))]
    fn write(&self, py: Python<'_>, payload: &Bound<'_, PyAny>, timeout: f64) -> PyResult<usize> {
        let bytes = bytes_of(payload)?;
        self.call(py, timeout, |group| group.write(&bytes))
    }

    /// The next delivery of any other member; None by the end of the timeout.
    #[pyo3(signature = (timeout=0.0))]
    fn receive(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<GroupDelivery>> {
        let (handle, timeout) = (self.handle.get().or_raise(py)?, seconds(py, timeout)?);
        let received = wait(py, timeout, |slice| {
            handle.with_group(&self.name, slice, |group| {
                let mut bytes = Vec::new();
                group.receive(&mut bytes).map(|delivery| (delivery, bytes))
            })
        })?;
        Ok(received.and_then(|(delivery, bytes)| GroupDelivery::of(py, delivery, &bytes)))
    }

    /// Waits until all members have entered the barrier; its number, from 1. An entry stands: a
    /// call after one that timed out waits for the same barrier.
    #[pyo3(signature = (timeout=5.0))]
    fn barrier(&self, py: Python<'_>, timeout: f64) -> PyResult<u64> {
        let (handle, timeout) = (self.handle.get().or_raise(py)?, seconds(py, timeout)?);
        let enter = |slice| handle.barrier(&self.name, slice);
        wait_for_room(py, timeout, has_timed_out, enter)
    }

    /// Gives bytes to all members, and returns what each has given, in the order of the group; None
    /// for one that was removed before it gave any.
    #[pyo3(signature = (payload, timeout=5.0))]
    fn all_gather(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<Vec<Option<Py<PyBytes>>>> {
        let (handle, timeout) = (self.handle.get().or_raise(py)?, seconds(py, timeout)?);
        let bytes = bytes_of(payload)?;
        let give = |slice| handle.all_gather(&self.name, &bytes, slice);
        let values = wait_for_room(py, timeout, has_timed_out, give)?;
        let bytes = |value: Vec<u8>| PyBytes::new(py, &value).unbind();
        Ok(values.into_iter().map(|value| value.map(bytes)).collect())
    }

    fn __repr__(&self) -> String {
        format!("Group({:?})", self.name)
    }
}

impl GroupDelivery {
    fn of(py: Python<'_>, delivery: It, bytes: &[u8]) -> Option<Self> {
        let of = |kind, root, seq| Self {
            kind,
            root,
            seq,
            tag: None,
            offset: None,
            message_len: None,
            is_last: None,
            payload: None,
        };
        Some(match delivery {
            It::Part { root, seq, tag, message_len, offset, is_last, .. } => Self {
                tag: Some(tag),
                offset: Some(offset),
                message_len: Some(message_len),
                is_last: Some(is_last),
                payload: Some(PyBytes::new(py, bytes).unbind()),
                ..of("part", root.0, seq)
            },
            It::RootLost { root, last } => of("root_lost", root.0, last),
            It::Abandoned { root, seq } => of("abandoned", root.0, seq),
            _ => return None,
        })
    }
}

#[pymethods]
impl GroupDelivery {
    fn __repr__(&self) -> String {
        format!("GroupDelivery(kind={:?}, root={}, seq={})", self.kind, self.root, self.seq)
    }
}

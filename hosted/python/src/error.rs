//! Errors of Weft as exceptions: `weft.Error`, and `weft.Ended` where nothing more can come.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use weft::explain::{Code, Explain, advice};
use weft::member::{CallError, MemberEnded};
use weft::shm::FanError;

const MODULE: &str = "weft._errors";

/// `weft.Error` with the code, the cause and the cure of `error`.
pub(crate) fn refused(py: Python<'_>, error: &(dyn Explain + 'static)) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (code, cure) = advice(error);
    raise(py, (&CLASS, "Error"), (code, error.to_string(), cure))
}

/// `weft.Ended`, likewise.
pub(crate) fn ended(py: Python<'_>, error: &(dyn Explain + 'static)) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (code, cure) = advice(error);
    raise(py, (&CLASS, "Ended"), (code, error.to_string(), cure))
}

fn raise(
    py: Python<'_>,
    (class, name): (&'static PyOnceLock<Py<PyType>>, &str),
    (code, cause, cure): (Code, String, String),
) -> PyErr {
    match class.import(py, MODULE, name) {
        Ok(class) => PyErr::from_type(class.clone(), (code.as_str(), cause, cure)),
        // The package is not whole.
        Err(error) => error,
    }
}

/// What becomes an exception.
pub(crate) trait Raise {
    fn raise(&self, py: Python<'_>) -> PyErr;
}

impl Raise for MemberEnded {
    fn raise(&self, py: Python<'_>) -> PyErr {
        ended(py, self)
    }
}

impl<E: Explain + 'static> Raise for CallError<E> {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Ended(over) => ended(py, over),
            Self::Refused(refusal) => refused(py, refusal),
        }
    }
}

impl Raise for FanError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::WriterEnded { .. } | Self::Closed => ended(py, self),
            error => refused(py, error),
        }
    }
}

/// The value, or the exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Raise> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.raise(py))
    }
}

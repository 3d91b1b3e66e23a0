//! How a command ended and what it printed.

use serde_json::Value;

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Said {
    /// None when a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// What it printed, for one that succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.status, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// The object on its last line, for one that succeeded.
    #[track_caller]
    pub(crate) fn object(self) -> Value {
        last_object(&self.done())
    }

    /// The object on each of its lines.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        objects(&self.out)
    }

    /// Asserts that it failed with this status and code, reported on standard error by an object
    /// with a cause and a cure; returns both, in one text.
    #[track_caller]
    pub(crate) fn refused(&self, status: i32, code: &str) -> String {
        let object = last_object(&self.err);
        let fields: Vec<&String> = object["error"].as_object().expect("error").keys().collect();
        assert_eq!(fields, ["cause", "code", "cure"]);
        let text = |field| object["error"][field].as_str().expect("a text");
        assert_eq!((text("code"), self.status), (code, Some(status)), "{object}");
        assert!(!text("cause").is_empty() && !text("cure").is_empty(), "{object}");
        format!("{}: {}", text("cause"), text("cure"))
    }
}

/// The object on each line of `text`.
#[track_caller]
pub(crate) fn objects(text: &str) -> Vec<Value> {
    text.lines().map(object).collect()
}

#[track_caller]
fn last_object(text: &str) -> Value {
    object(text.lines().last().unwrap_or_default())
}

#[track_caller]
fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in: {line}"))
}

//! How messages of the library are logged: on standard error, one line each.
//!
//! | `WEFT_LOG_FORMAT` | a line |
//! |---|---|
//! | `text`, or unset | `2026-… WARN weft::node: fenced by a peer rank=1`, for people |
//! | `json` | `{"time":"2026-…","level":"WARN","target":"weft::node","message":"…","rank":1}` |
//! | `logfmt` | `time=2026-… level=WARN target=weft::node message="fenced by a peer" rank=1` |
//!
//! A value of logfmt is quoted, and escaped as in JSON, unless it is a plain word. A field whose
//! name is one of the first three gets an underscore before it, so that no name occurs twice.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{self, FormatTime as _};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use serde_json::Value;

/// The variable that names the format.
pub(crate) const FORMAT_VARIABLE: &str = "WEFT_LOG_FORMAT";

/// A value of the variable that names no format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("WEFT_LOG_FORMAT is {0:?}, which is no format of the log")]
pub(crate) struct UnknownFormat(String);

/// Logs to standard error, at the level that WEFT_LOG names, in the format of the variable.
///
/// # Errors
/// There is no such format. The log is text then.
pub(crate) fn to_standard_error() -> Result<(), UnknownFormat> {
    let filter = EnvFilter::try_from_env("WEFT_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let named = std::env::var_os(FORMAT_VARIABLE).unwrap_or_default();
    match named.to_string_lossy().as_ref() {
        "json" => builder.event_format(LineFormat::Json).init(),
        "logfmt" => builder.event_format(LineFormat::Logfmt).init(),
        other => {
            builder.init();
            if !matches!(other, "" | "text") {
                return Err(UnknownFormat(other.to_owned()));
            }
        }
    }
    Ok(())
}

/// A format for programs: every event is one line of names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineFormat {
    Json,
    Logfmt,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut at = String::new();
        time::time().format_time(&mut Writer::new(&mut at))?;
        let mut line = LogLine { format: *self, text: String::new() };
        line.push("time", at);
        line.push("level", event.metadata().level().as_str());
        line.push("target", event.metadata().target());
        event.record(&mut line);
        match self {
            Self::Json => writeln!(writer, "{{{}}}", line.text),
            Self::Logfmt => writeln!(writer, "{}", line.text),
        }
    }
}

/// The names and values of a line so far.
struct LogLine {
    format: LineFormat,
    text: String,
}

impl LogLine {
    fn push(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let gap = match self.format {
            _ if self.text.is_empty() => "",
            LineFormat::Json => ",",
            LineFormat::Logfmt => " ",
        };
        self.text += gap;
        self.text += &match (self.format, &value) {
            (LineFormat::Json, value) => format!("{}:{value}", Value::from(name)),
            (LineFormat::Logfmt, Value::String(word)) if is_plain(word) => format!("{name}={word}"),
            (LineFormat::Logfmt, value) => format!("{name}={value}"),
        };
    }

    fn push_field(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            name @ ("time" | "level" | "target") => self.push(&format!("_{name}"), value),
            name => self.push(name, value),
        }
    }
}

/// Whether a word of logfmt needs no quotes.
fn is_plain(word: &str) -> bool {
    let needs_quotes = |it: char| it.is_whitespace() || it.is_control() || "=\"\\".contains(it);
    !word.is_empty() && !word.contains(needs_quotes)
}

impl Visit for LogLine {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push_field(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push_field(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push_field(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push_field(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push_field(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push_field(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::io::{self, Read as _};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    /// Values that would break a line that is not quoted.
    const HOSTILE: [&str; 9] =
        ["two words", "a=b", "\"", "\\", "one\ntwo", "\r", "\u{1b}[31m", "", "\u{2028}\u{85}"];

    /// The lines that `act` logs.
    fn logged(format: LineFormat, act: impl FnOnce()) -> Vec<String> {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let subscriber = tracing_subscriber::fmt().event_format(format);
        let subscriber = subscriber.with_writer(Arc::new(writer)).finish();
        tracing::subscriber::with_default(subscriber, act);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it is UTF-8");
        text.split_terminator('\n').map(str::to_owned).collect()
    }

    /// The words of a line of logfmt, by their names.
    fn parsed(mut rest: &str) -> BTreeMap<String, String> {
        let mut words = BTreeMap::new();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').expect("a name");
            let (value, after) = if after.starts_with('"') {
                let mut values = serde_json::Deserializer::from_str(after).into_iter::<String>();
                let value = values.next().expect("a value").expect("it is quoted as in JSON");
                (value, &after[values.byte_offset()..])
            } else {
                let end = after.find(' ').unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            };
            assert!(after.is_empty() || after.starts_with(' '), "{rest}");
            assert_eq!(words.insert(name.to_owned(), value), None, "{name} twice");
            rest = after.trim_start_matches(' ');
        }
        words
    }

    #[test]
    fn each_line_of_json_is_one_object_whatever_the_values_are() {
        for hostile in HOSTILE {
            let lines = logged(LineFormat::Json, || {
                tracing::error!(%hostile, text = hostile, rank = 7, level = hostile, "{hostile}");
            });
            assert_eq!(lines.len(), 1, "{lines:?}");
            let object: Value = serde_json::from_str(&lines[0]).expect("an object");
            for name in ["hostile", "text", "_level", "message"] {
                assert_eq!(object[name], hostile, "{name} in {object}");
            }
            assert_eq!((&object["level"], &object["rank"]), (&"ERROR".into(), &7.into()));
            assert!(object["time"].as_str().is_some_and(|it| it.ends_with('Z')), "{object}");
            assert_eq!(object["target"], module_path!());
        }
    }

    #[test]
    fn a_path_that_is_not_utf8_and_numbers_that_json_lacks_are_well_formed() {
        let path = Path::new(OsStr::from_bytes(b"a\xff\n"));
        let act =
            || tracing::error!(shown = %path.display(), ?path, nan = f64::NAN, big = u128::MAX);
        let lines = logged(LineFormat::Json, act);
        let object: Value = serde_json::from_str(&lines[0]).expect("an object");
        assert_eq!((lines.len(), &object["shown"]), (1, &"a\u{fffd}\n".into()), "{object}");
        assert_eq!((&object["nan"], &object["path"]), (&Value::Null, &r#""a\xFF\n""#.into()));
        assert_eq!(object["big"], u128::MAX.to_string());
    }

    #[test]
    fn values_of_logfmt_are_quoted_where_they_are_not_plain() {
        for hostile in HOSTILE {
            let act = || tracing::warn!(%hostile, plain = "word", rank = 7, is = true, "{hostile}");
            let lines = logged(LineFormat::Logfmt, act);
            assert_eq!(lines.len(), 1, "{lines:?}");
            let words = parsed(&lines[0]);
            assert_eq!((&*words["hostile"], &*words["message"]), (hostile, hostile));
            assert!(lines[0].ends_with(" plain=word rank=7 is=true"), "{}", lines[0]);
            assert!(lines[0].contains(" level=WARN target=weft_program::log"), "{}", lines[0]);
        }
    }
}

//! How the program ends when it does not succeed.

use std::io::{self, Write, stderr};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::json;

use super::output::Output;
use crate::doctor::Finding;
use weft::explain::{Code, Explain, advice};

/// An error on its way to the user.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Box<dyn Explain>);

impl Failure {
    pub(super) fn new(error: impl Explain + 'static) -> Self {
        Self(Box::new(error))
    }

    /// An error of the program itself, where no library error says it.
    pub(super) fn of(code: Code, cause: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(Plain { code, cause: cause.into(), cure: cure.into() })
    }

    /// The same, behind what was done before.
    pub(super) fn behind(self, done: &str) -> Self {
        let (cause, (code, cure)) = (self.0.to_string(), advice(&*self.0));
        Self::of(code, format!("{done}; but {cause}"), cure)
    }

    /// The same, with something to do after its cure.
    pub(super) fn with_cure(self, then: &str) -> Self {
        let (cause, (code, cure)) = (self.0.to_string(), advice(&*self.0));
        Self::of(code, cause, format!("{cure}, and {then}"))
    }

    pub(super) fn code(&self) -> Code {
        advice(&*self.0).0
    }

    /// Writes the error to standard error and returns the exit status.
    pub(super) fn report(&self, output: Output) -> ExitCode {
        let (cause, (code, cure)) = (self.0.to_string(), advice(&*self.0));
        let text = if output.is_json() {
            let error = json!({ "code": code.as_str(), "cause": cause, "cure": cure });
            format!("{}\n", json!({ "error": error }))
        } else {
            format!("weft: {cause}\n      {cure} [{}]\n", code.as_str())
        };
        // In one piece, since the nodes of a cluster share the launcher's standard error. If that
        // is closed, the exit status still says it.
        let _ = stderr().write_all(text.as_bytes());
        ExitCode::from(code.exit_status())
    }
}

/// What is found missing on this machine before anything is started.
pub(super) fn lacking((finding, code): (Finding, Code)) -> Failure {
    let Finding { subject, found, cause, cure, .. } = finding;
    Failure::of(code, format!("{subject}: {found}; {cause}"), cure)
}

/// Standard output did not take everything that it was to take.
pub(super) fn unwritable(error: &io::Error) -> Failure {
    let cause = format!("the result cannot be written to standard output: {error}");
    Failure::of(Code::Output, cause, cure_of_write(error))
}

/// What to do about a result that cannot be written.
pub(super) fn cure_of_write(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            "raise the limit on the size of files: `ulimit -f unlimited`"
        }
        _ => "make room for it, or send it elsewhere",
    }
}

/// Reports a wrong command line of `program` as clap words it; help and version are no errors.
pub(super) fn report_usage(error: &clap::Error, program: &clap::Command) -> ExitCode {
    let output = Output::new(std::env::args_os().any(|argument| argument == "--json"));
    if error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && error.use_stderr() {
        return usage(error, program).report(output);
    }
    match error.print() {
        Err(unwritten) if unwritten.kind() != io::ErrorKind::BrokenPipe && !error.use_stderr() => {
            unwritable(&unwritten).report(output)
        }
        // The exit status remains if the terminal is gone.
        Ok(()) | Err(_) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// As every other error: what clap says in a paragraph each, and where to read on.
fn usage(error: &clap::Error, program: &clap::Command) -> Failure {
    let text = error.render().to_string();
    let (mut cause, mut cures) = (Vec::new(), Vec::new());
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(tip) = paragraph.strip_prefix("tip: ") {
            cures.push(tip.to_owned());
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            cures.push(format!("usage: `{usage}`"));
        } else if !paragraph.is_empty() && !paragraph.starts_with("For more information") {
            cause.push(paragraph);
        }
    }
    let mut command = program;
    let mut path = program.get_name().to_owned();
    // No command has a name that is not UTF-8.
    let words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some(below) = command.find_subcommand(&word) else { break };
        path.push_str(&format!(" {}", below.get_name()));
        command = below;
    }
    cures.push(format!("see `{path} --help`"));
    let cause = in_words(error, &cause.join(" "));
    Failure::of(Code::Usage, cause.trim_start_matches("error: "), cures.join("; "))
}

/// What the standard library says of a word that is no number, in words of this program.
fn in_words(error: &clap::Error, cause: &str) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    let is_rank = RANKS.iter().any(|name| argument.contains(name));
    let whole = if is_rank { "not a node's number" } else { "not a whole number" };
    cause
        .replace("invalid digit found in string", whole)
        .replace("invalid float literal", "not a number")
}

/// What the help calls arguments that are ranks.
const RANKS: [&str; 8] =
    ["<RANK>", "[RANK]", "<NODE>", "[NODE]", "<TO>", "[TO]", "<FROM>", "<ORIGIN>"];

#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
struct Plain {
    code: Code,
    cause: String,
    cure: String,
}

impl Explain for Plain {
    fn code(&self) -> Code {
        self.code
    }

    fn cure(&self) -> String {
        self.cure.clone()
    }
}

//! How the program ends when it does not succeed.

use std::io::{self, ErrorKind, Write, stderr};
use std::process::ExitCode;

use serde_json::json;

use super::output::Output;
use crate::explain::{Code, Explain};

/// An error on its way to the user.
#[derive(Debug)]
pub(super) struct Failure(Box<dyn Explain>);

impl Failure {
    pub(super) fn new(error: impl Explain + 'static) -> Self {
        Self(Box::new(error))
    }

    /// An error of the program itself, where no library error says it.
    pub(super) fn of(code: Code, cause: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(Told { code, cause: cause.into(), cure: cure.into() })
    }

    pub(super) fn code(&self) -> Code {
        self.0.code()
    }

    /// Tells the user, and gives the exit status.
    pub(super) fn report(&self, output: Output) -> ExitCode {
        let (code, cause, cure) = (self.0.code(), self.0.to_string(), self.0.cure());
        // Nobody to tell if standard error is closed; the exit status says it as well.
        let _ = if output.is_json() {
            let error = json!({ "code": code.as_str(), "cause": cause, "cure": cure });
            writeln!(stderr(), "{}", json!({ "error": error }))
        } else {
            writeln!(stderr(), "weft: {cause}\n      {cure} [{}]", code.as_str())
        };
        ExitCode::from(code.exit_status())
    }
}

/// Standard output did not take everything that it was to take.
pub(super) fn unwritable(error: &io::Error) -> Failure {
    let cause = format!("the result cannot be written to standard output: {error}");
    Failure::of(Code::Output, cause, "make room for it, or send it elsewhere")
}

/// What is wrong with the command line, as clap tells it; help and version are no errors.
pub(super) fn report_usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if !error.use_stderr() || !json {
        return match error.print() {
            Err(unwritten) if unwritten.kind() != ErrorKind::BrokenPipe && !error.use_stderr() => {
                unwritable(&unwritten).report(Output::new(json))
            }
            // Nobody to tell if the terminal is gone.
            Ok(()) | Err(_) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        };
    }
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:")).map(str::trim);
    let cause = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let cause = cause.trim_start_matches("error: ");
    let failure = Failure::of(Code::Usage, cause, "see `weft --help`");
    failure.report(Output::new(true))
}

#[derive(Debug)]
struct Told {
    code: Code,
    cause: String,
    cure: String,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Told {}

impl Explain for Told {
    fn code(&self) -> Code {
        self.code
    }

    fn cure(&self) -> String {
        self.cure.clone()
    }
}

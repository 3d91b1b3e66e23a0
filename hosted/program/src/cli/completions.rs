//! `weft completions` and `weft man`: the command line for a shell, and for `man`.

use std::fs::create_dir_all;
use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use weft::explain::Code;

/// Arguments of `weft completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

/// Arguments of `weft man`.
#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The directory for a page of each command; it is made if it is not there.
    directory: PathBuf,
}

pub(super) fn run(arguments: &CompletionsArguments, output: Output) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "weft", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.finish(&json!({ "ok": true, "script": script }), &script);
}

pub(super) fn man(arguments: &ManArguments, output: Output) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let unwritable = |error: io::Error| {
        let cause = format!("{} cannot be written: {error}", directory.display());
        Failure::of(Code::Output, cause, "choose another directory, or make room there")
    };
    create_dir_all(directory).map_err(unwritable)?;
    clap_mangen::generate_to(super::Arguments::command(), directory).map_err(unwritable)?;
    let directory = directory.display().to_string();
    let text = format!("{directory}: the pages; read one with `man -l {directory}/weft.1`\n");
    output.finish(&json!({ "ok": true, "directory": directory }), &text);
    Ok(())
}

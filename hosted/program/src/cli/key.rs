//! `weft key`: a key for nodes on several hosts.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use weft::bootstrap::Key;

/// Arguments of `weft key`.
#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// The file to make; one that is there is left alone.
    file: PathBuf,
}

pub(super) fn run(arguments: &KeyArguments, output: Output) -> Result<(), Failure> {
    Key::create(&arguments.file).map_err(Failure::new)?;
    let file = arguments.file.display().to_string();
    let text = format!("{file}: a new key; copy it to every host, and name it below [network]\n");
    output.finish(&json!({ "ok": true, "file": file }), &text);
    Ok(())
}

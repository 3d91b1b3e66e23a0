//! `weft config`: the keys of the cluster file, explained, and its JSON schema.

use clap::{Args, Subcommand};
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use weft::cluster::{Cluster, ExplainedKey};

/// Arguments of `weft config`.
#[derive(Debug, Args)]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    what: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print what a key means, what it may be and its default; without a key, all keys.
    Explain {
        /// The key with its tables: mailbox.slots.
        key: Option<String>,
    },
    /// Print a JSON schema of the cluster file, for editors.
    Schema,
}

pub(super) fn run(arguments: &ConfigArguments, output: Output) -> Result<(), Failure> {
    match &arguments.what {
        ConfigCommand::Explain { key: Some(key) } => {
            let key = Cluster::explain_key(key).map_err(Failure::new)?;
            output.finish(&object(&key), &explained(&key));
        }
        ConfigCommand::Explain { key: None } => {
            let keys = Cluster::keys();
            let of = |key: &ExplainedKey| {
                let default =
                    key.default.as_ref().map_or_else(String::new, |it| format!(" = {it}"));
                format!("{}{default}\n", key.path)
            };
            let text: String = keys.iter().filter(|key| key.keys.is_empty()).map(of).collect();
            output.finish(&json!({ "keys": keys.iter().map(object).collect::<Vec<_>>() }), &text);
        }
        ConfigCommand::Schema => {
            let schema = Cluster::schema();
            output.finish(&schema, &format!("{schema:#}\n"));
        }
    }
    Ok(())
}

fn object(key: &ExplainedKey) -> serde_json::Value {
    let ExplainedKey { path, about, value, default, example, keys } = key;
    json!({
        "key": path, "about": about, "value": value, "default": default, "example": example,
        "keys": keys,
    })
}

fn explained(key: &ExplainedKey) -> String {
    let mut text = format!("{}: {}\n", key.path, key.value);
    for (what, value) in [("default", &key.default), ("example", &key.example)] {
        value.iter().for_each(|value| text.push_str(&format!("{what}: {value}\n")));
    }
    if !key.about.is_empty() {
        text.push_str(&format!("\n{}\n", wrapped(&key.about)));
    }
    if !key.keys.is_empty() {
        text.push_str(&format!("\nkeys: {}\n", key.keys.join(", ")));
    }
    text
}

/// The same in lines that fit a terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 80;
    let (mut lines, mut len) = (String::new(), 0);
    for word in text.split_whitespace() {
        let word_len = word.chars().count();
        let fits = len == 0 || len + 1 + word_len <= WIDTH;
        let gap = if len == 0 { "" } else { " " };
        lines.push_str(if fits { gap } else { "\n" });
        lines.push_str(word);
        len = if fits { len + gap.len() + word_len } else { word_len };
    }
    lines
}

//! `weft rl load`: replaces the script of a running cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::super::cluster_choice::ClusterChoice;
use super::super::failure::Failure;
use super::super::output::Output;
use super::{Check, refuse, surroundings, translate_file};
use weft::client::ClientError;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{Refused, ScriptLoaded};

/// How long to look for a manager, and how often.
const MANAGER_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of `weft rl load`.
#[derive(Debug, Args)]
pub(super) struct RlLoadArguments {
    /// The script.
    file: PathBuf,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &RlLoadArguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let file = &arguments.file;
    let translation = translate_file(file, Some(&surroundings(&running.cluster)))?;
    refuse(&translation, &Check { file: file.clone(), cluster: None, deny: None }, output)?;
    if !translation.diagnostics.is_empty() {
        output.say(translation.render().trim_end());
    }
    let image = translation.image.unwrap_or_default();
    let deadline = Deadline::after(MANAGER_WITHIN);
    let (manager, loaded) = loop {
        let manages = |rank: &u16| {
            let status = running.connect_now(*rank).and_then(|mut client| client.status());
            status.is_ok_and(|it| it.dirnet.is_some_and(|dirnet| dirnet.role == "manager"))
        };
        let manager = running.ranks().find(manages);
        let load = |rank| running.connect_now(rank)?.load_script(image.clone());
        match manager.map(load) {
            Some(Ok(loaded)) => break (manager.unwrap_or_default(), loaded),
            Some(Err(error)) if !is_passing(&error) || deadline.has_passed() => {
                return Err(Failure::new(error));
            }
            None if deadline.has_passed() => {
                let cause = "no node acts as manager, so the script in force stays".to_owned();
                let cure = "run `weft status` to see which nodes run, then try again";
                return Err(Failure::of(Code::Timeout, cause, cure));
            }
            // Another one takes over.
            Some(Err(_)) | None => std::thread::park_timeout(LOOK_EVERY),
        }
    };
    let ScriptLoaded { digest, late, is_new } = loaded;
    let done = if is_new { "in force" } else { "in force already" };
    let mut text = format!("script {digest}: {done}, by node {manager}, the manager\n");
    if !late.is_empty() {
        let late: Vec<String> = late.iter().map(u16::to_string).collect();
        text.push_str(&format!("not used yet by node {}\n", late.join(", ")));
    }
    let object = json!({
        "ok": true, "digest": digest, "manager": manager, "changed": is_new, "late": late
    });
    output.finish(&object, &text);
    Ok(())
}

/// Whether the next manager may do it. A component that was lost may have: then the next one says
/// that the script is in force already.
fn is_passing(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Refused { reason: Refused::NotManager | Refused::ComponentLost, .. }
    )
}

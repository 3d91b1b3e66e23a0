//! `weft rl`: translate and inspect recovery scripts.
//!
//! Diagnostics go to standard output, people's drawings and scripts' objects alike; a script that
//! has an error ends with the code `script`.

mod load;
mod simulate;
mod status;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::draft::Draft;
use super::failure::Failure;
use super::output::Output;
use weft::cluster::{Cluster, Part, Recovery};
use weft::explain::Code;
use weft::node::NodeError;
use weft::regular_file;
use weft_core::recovery::{Expected, IMAGE_MAX, Rejected, Role, TimeoutName, Timeouts, verify};
use weft_rl::code::DiagnosticCode;
use weft_rl::diagnostic::Diagnostic;
use weft_rl::source::{Sources, Span};
use weft_rl::{ClusterTask, SOURCE_MAX, Surroundings, Translation};

/// Arguments of `weft rl`.
#[derive(Debug, Args)]
pub(super) struct RlArguments {
    #[command(subcommand)]
    command: RlCommand,
}

#[derive(Debug, Subcommand)]
enum RlCommand {
    /// Show what is wrong with a script.
    Check(Check),
    /// Translate a script into an image.
    Build(Build),
    /// Show the words of an image, or a script that builds it.
    Dump {
        /// The image.
        image: PathBuf,

        /// Show a script: translated, it has the same words and strings. Lines, and so the digest,
        /// are other ones; comments and names of constants are not in an image.
        #[arg(long)]
        source: bool,
    },
    /// Run a script in a simulated cluster, and judge what a scenario expects of it.
    Run(simulate::RlRunArguments),
    /// Format scripts in place.
    ///
    /// Blanks and the case of keywords change, and nothing else. The words and strings of the image
    /// stay; lines may move, and the digest is that of another text, so a running cluster takes the
    /// image for a new script.
    Fmt {
        /// The scripts.
        #[arg(required = true)]
        files: Vec<PathBuf>,

        /// Change nothing, and fail if a script is not formatted.
        #[arg(long)]
        check: bool,
    },
    /// Explain the code of a diagnostic.
    Explain {
        /// The code, as RL0207.
        code: String,
    },
    /// Replace the script of a running cluster, at all nodes or at none.
    Load(load::RlLoadArguments),
    /// Show the script of a running cluster, and what its manager has done by it.
    Status(status::Status),
    /// Print the reference of the language.
    Reference,
}

#[derive(Debug, Args)]
struct Check {
    /// The script.
    file: PathBuf,

    /// The cluster file that it is for.
    #[arg(long)]
    cluster: Option<PathBuf>,

    /// What counts as an error.
    #[arg(long)]
    deny: Option<Denied>,
}

#[derive(Debug, Args)]
struct Build {
    #[command(flatten)]
    check: Check,

    /// The image to write.
    #[arg(short, long, value_name = "IMAGE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Denied {
    /// Warnings count as errors.
    Warnings,
}

pub(super) fn run(arguments: &RlArguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        RlCommand::Check(check) => {
            let translation = translate(check)?;
            refuse(&translation, check, output)?;
            show(&translation, &format!("{} has no error\n", check.file.display()), output);
            Ok(())
        }
        RlCommand::Build(build) => self::build(build, output),
        RlCommand::Dump { image, source } => dump(image, *source, output),
        RlCommand::Run(run) => simulate::run(run, output),
        RlCommand::Fmt { files, check } => {
            files.iter().try_for_each(|file| format(file, *check, output))
        }
        RlCommand::Explain { code } => explain(code, output),
        RlCommand::Load(load) => load::run(load, output),
        RlCommand::Status(status) => status::run(status, output),
        RlCommand::Reference => {
            output.finish(&json!({ "ok": true, "text": weft_rl::REFERENCE }), weft_rl::REFERENCE);
            Ok(())
        }
    }
}

/// At most `limit` bytes and one of `path`: one more shows that it is too long.
fn read_some(path: &Path, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::read_named(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same of a file that was named on the command line.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    read_some(path, limit).map_err(|error| {
        let code = match error.kind() {
            ErrorKind::NotFound => Code::InputMissing,
            _ => Code::InputUnreadable,
        };
        let cause = format!("{} cannot be read: {error}", path.display());
        Failure::of(code, cause, "name a regular file that you may read")
    })
}

fn read_script(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path, SOURCE_MAX)?).map_err(|wrong| {
        let (name, at) = (path.display(), wrong.utf8_error().valid_up_to());
        let code = DiagnosticCode::File.as_str();
        let cause = format!("{name} is not text in UTF-8 from byte {at} on ({code})");
        Failure::of(Code::InputBinary, cause, "save it as UTF-8, or name another file")
    })
}

fn translate(check: &Check) -> Result<Translation, Failure> {
    translate_file(&check.file, surroundings_of(check)?.as_ref())
}

fn translate_file(file: &Path, cluster: Option<&Surroundings>) -> Result<Translation, Failure> {
    let bytes = read(file, SOURCE_MAX)?;
    let mut reader = |path: &str, from: &str| {
        let path = Path::new(from).with_file_name(path);
        let bytes = read_some(&path, SOURCE_MAX).map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())?;
        Ok((path.display().to_string(), text))
    };
    let name = file.display().to_string();
    Ok(weft_rl::translate_bytes(&name, &bytes, cluster, &mut reader))
}

/// The image of a script of the program itself, by its name and its text.
pub(super) fn image_of(cluster: &Cluster, (name, text): (&str, &str)) -> Result<Vec<u8>, Failure> {
    let mut reader = |path: &str, _: &str| Err(format!("{path}: it includes no other"));
    let translation = weft_rl::translate(name, text, Some(&surroundings(cluster)), &mut reader);
    let refused = || Failure::of(Code::Internal, translation.render(), "report it");
    translation.image.clone().ok_or_else(refused)
}

/// Translates the script that a cluster file names, if it does: `cluster` has the image from then
/// on, and the roles and the timing that the script gives.
pub(super) fn install(
    cluster: &mut Cluster,
    cluster_file: Option<&Path>,
    output: Output,
) -> Result<(), Failure> {
    let Some(script) = &cluster.recovery.script else {
        // An image without a script is only found in the copy that a running cluster keeps.
        let verified = cluster.recovery.program(Some(cluster.nodes)).map(drop);
        verified.map_err(|rejected| Failure::new(NodeError::Image(rejected)))?;
        return cluster.recovery.check_tasks(&cluster.tasks).map_err(|foreign| {
            let cause = format!("recovery.image was built for another cluster: {foreign}");
            Failure::of(Code::Image, cause, "name the script as recovery.script: it is translated")
        });
    };
    let file = cluster_file.map_or_else(|| script.clone(), |it| super::node::beside(it, script));
    let translation = translate_file(&file, Some(&surroundings(cluster)))?;
    refuse(&translation, &Check { file: file.clone(), cluster: None, deny: None }, output)?;
    if !translation.diagnostics.is_empty() {
        output.say(translation.render().trim_end());
    }
    cluster.recovery = Recovery { image: translation.image, ..cluster.recovery.clone() };
    let recovery = cluster.recovery.clone();
    let refused = |rejected: Rejected| {
        let cause = format!("{}: {rejected}", file.display());
        Failure::of(Code::Image, cause, "report this: the translator's own image is refused")
    };
    let Some(program) = recovery.program(Some(cluster.nodes)).map_err(refused)? else {
        return Ok(());
    };
    let part = |node| match program.role(node)? {
        Role::Manager => Some(Part::Manager),
        Role::Backup => Some(Part::Backup),
        Role::Agent => Some(Part::Agent),
    };
    let nodes = 0..u8::try_from(cluster.nodes).unwrap_or(u8::MAX);
    cluster.dirnet.roles = nodes.map(part).collect::<Option<_>>().or(cluster.dirnet.roles.take());
    let timing = &mut cluster.dirnet.timing;
    for (name, value) in [
        (TimeoutName::Send, &mut timing.send_us),
        (TimeoutName::Receive, &mut timing.receive_us),
        (TimeoutName::Clear, &mut timing.clear_us),
        (TimeoutName::Alarm, &mut timing.alarm_us),
        (TimeoutName::Window, &mut timing.window_us),
        (TimeoutName::Candidate, &mut timing.candidate_us),
        (TimeoutName::Join, &mut timing.join_us),
    ] {
        *value = program.timeouts().us(name).map(u64::from).or(*value);
    }
    Ok(())
}

/// The cluster that a script is for, if one was named.
fn surroundings_of(check: &Check) -> Result<Option<Surroundings>, Failure> {
    let cluster = check.cluster.as_deref().map(Cluster::load).transpose();
    Ok(cluster.map_err(Failure::new)?.map(|cluster| surroundings(&cluster)))
}

fn surroundings(cluster: &Cluster) -> Surroundings {
    let role = |part: Part| match part {
        Part::Manager => Role::Manager,
        Part::Backup => Role::Backup,
        Part::Agent => Role::Agent,
    };
    let ranks = 0..u16::try_from(cluster.nodes).unwrap_or(u16::MAX);
    let tasks = cluster.tasks.iter().map(|task| ClusterTask {
        name: task.name.as_str().to_owned(),
        nodes: ranks
            .clone()
            .filter(|rank| task.runs_on(*rank))
            .filter_map(|rank| u8::try_from(rank).ok())
            .collect(),
        has_beat: task.beat_ms.is_some(),
    });
    let timing = &cluster.dirnet.timing;
    let mut set = Timeouts::default();
    for (name, us) in [
        (TimeoutName::Send, timing.send_us),
        (TimeoutName::Receive, timing.receive_us),
        (TimeoutName::Clear, timing.clear_us),
        (TimeoutName::Alarm, timing.alarm_us),
        (TimeoutName::Window, timing.window_us),
        (TimeoutName::Candidate, timing.candidate_us),
        (TimeoutName::Join, timing.join_us),
    ] {
        if let Some(us) = us.and_then(|us| u32::try_from(us).ok()) {
            set.set(name, us);
        }
    }
    Surroundings {
        nodes: u8::try_from(cluster.nodes).unwrap_or(u8::MAX),
        roles: cluster.dirnet.roles.as_ref().map(|parts| parts.iter().copied().map(role).collect()),
        tasks: tasks.collect(),
        timing: cluster.dirnet.timing(),
        set,
        calls: cluster.recovery.calls.keys().cloned().collect(),
    }
}

fn diagnostics_of(sources: &Sources, found: &[Diagnostic]) -> Vec<Value> {
    found.iter().map(|diagnostic| object(sources, diagnostic)).collect()
}

fn object(sources: &Sources, diagnostic: &Diagnostic) -> Value {
    let place = |span: &Span, label: &str| {
        let (line, column) = sources.line_column(span);
        let file = sources.locate(span).map_or("", |(file, _)| file.name.as_str());
        json!({ "file": file, "line": line, "column": column, "label": label })
    };
    let first = place(&diagnostic.span, &diagnostic.label);
    let (line, column) = (first["line"].clone(), first["column"].clone());
    let other = diagnostic.other.as_deref().map(|(span, label)| place(span, label));
    let places: Vec<Value> = [first].into_iter().chain(other).collect();
    json!({
        "code": diagnostic.code.as_str(), "warning": diagnostic.is_warning(),
        "line": line, "column": column,
        "message": diagnostic.message, "help": diagnostic.help, "places": places,
    })
}

/// Prints the diagnostics, and what was done.
fn show(translation: &Translation, done: &str, output: Output) {
    let objects = diagnostics_of(&translation.sources, &translation.diagnostics);
    let ok = !done.is_empty();
    output.finish(
        &json!({ "ok": ok, "diagnostics": objects, "more": translation.has_more }),
        &format!("{}{done}", translation.render()),
    );
}

/// An error of the script is one of the program; so is a warning, if they are denied.
fn refuse(translation: &Translation, check: &Check, output: Output) -> Result<(), Failure> {
    let found = translation.diagnostics.len();
    if translation.image.is_some() && (check.deny.is_none() || found == 0) {
        return Ok(());
    }
    show(translation, "", output);
    let plural = if found == 1 { "" } else { "s" };
    let name = check.file.display();
    let more = if translation.has_more { "more than " } else { "" };
    let cause = match &translation.image {
        Some(_) => format!("{name}: {more}{found} warning{plural}, and warnings were denied"),
        None => format!("{name}: {more}{found} finding{plural}"),
    };
    let cure = "correct the places that are shown; `weft rl explain CODE` says more";
    Err(Failure::of(Code::Script, cause, cure))
}

fn build(build: &Build, output: Output) -> Result<(), Failure> {
    let translation = translate(&build.check)?;
    refuse(&translation, &build.check, output)?;
    let image = translation.image.as_deref().unwrap_or_default();
    let name = build.output.display();
    if !may_become_image(&build.output) {
        let cause = format!("{name} is a file that is no image, so it is not replaced");
        return Err(Failure::of(Code::Output, cause, "name another file, or remove this one"));
    }
    write(&build.output, image)?;
    show(&translation, &format!("{name}: {} bytes\n", image.len()), output);
    Ok(())
}

/// Whether no other file is lost: a script that is named by mistake, above all.
fn may_become_image(path: &Path) -> bool {
    let Ok(file) = regular_file::read_named(path) else { return true };
    let mut head = Vec::new();
    let is_read = File::take(file, 4).read_to_end(&mut head).is_ok();
    is_read && (head.is_empty() || head == *b"WRL1")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut draft = Draft::begin(path)?;
    draft.write(bytes)?;
    draft.finish()
}

fn dump(path: &Path, as_source: bool, output: Output) -> Result<(), Failure> {
    let bytes = read(path, IMAGE_MAX)?;
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(&bytes, &expected).map_err(|rejected| {
        let cause = format!("{}: {rejected}", path.display());
        Failure::of(Code::Image, cause, "build it again with `weft rl build`")
    })?;
    if as_source {
        let Some(text) = weft_rl::decompile(&program) else {
            let cause = format!("{}: no script is translated to these words", path.display());
            return Err(Failure::of(Code::Image, cause, "see them without --source"));
        };
        output.finish(&json!({ "ok": true, "source": text }), &text);
        return Ok(());
    }
    let text = weft_rl::dump(&program);
    let lines: Vec<&str> = text.lines().collect();
    output.finish(&json!({ "ok": true, "words": lines }), &text);
    Ok(())
}

fn format(path: &Path, is_check: bool, output: Output) -> Result<(), Failure> {
    let text = read_script(path)?;
    let name = path.display().to_string();
    let formatted = weft_rl::format(&text).map_err(|wrong| {
        let mut sources = Sources::default();
        sources.add(&name, &text);
        let first = wrong.first().map(|it| {
            let (line, column) = sources.line_column(&it.span);
            format!("{line}:{column}: {} ({})", it.message, it.code.as_str())
        });
        let cause = format!("{name} is left unchanged, {}", first.unwrap_or_default());
        Failure::of(Code::Script, cause, format!("see them with `weft rl check {name}`"))
    })?;
    let is_changed = formatted != text;
    if is_check && is_changed {
        let cause = format!("{name} is not formatted");
        return Err(Failure::of(Code::Script, cause, format!("run `weft rl fmt {name}`")));
    }
    if is_changed {
        write(path, formatted.as_bytes())?;
    }
    let object = json!({ "ok": true, "file": name, "changed": is_changed });
    output.finish(
        &object,
        &format!("{name}: {}\n", if is_changed { "formatted" } else { "unchanged" }),
    );
    Ok(())
}

fn explain(code: &str, output: Output) -> Result<(), Failure> {
    let Some(found) = DiagnosticCode::from_text(code) else {
        let known: Vec<&str> = DiagnosticCode::ALL.iter().map(|code| code.as_str()).collect();
        let cause = format!("no diagnostic has the code {code}");
        return Err(Failure::of(Code::Usage, cause, format!("use one of {}", known.join(", "))));
    };
    let text = found.explanation();
    let object = json!({ "ok": true, "code": found.as_str(), "text": text });
    output.finish(&object, &format!("{}: {text}\n", found.as_str()));
    Ok(())
}

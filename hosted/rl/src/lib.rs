//! `rl`: translates recovery scripts into the images that the core verifies and runs.
//!
//! ```text
//!   text ─▶ token ─▶ parse ─▶ tree ─▶ resolve ─▶ generate ─▶ image ─▶ core's verifier
//!             └────────┴────────────────┴───────────┴─▶ diagnostics
//! ```
//!
//! A script that has an error gives no image; lints are warnings. Every image that is given has
//! passed the verifier. The language is described in `reference.md`.

pub mod code;
mod decompile;
pub mod diagnostic;
mod dump;
mod format;
mod generate;
mod lint;
mod parse;
mod resolve;
pub mod scenario;
pub mod source;
mod surroundings;
mod token;
mod tree;

#[cfg(test)]
mod tests;

pub use decompile::decompile;
pub use dump::dump;
pub use format::format;
pub use parse::{ERRORS_MAX, Reader, SOURCE_MAX};
pub use surroundings::{ClusterTask, Surroundings, with_timeouts};

use code::DiagnosticCode;
use diagnostic::Diagnostic;
use source::Sources;

/// The reference of the language.
pub const REFERENCE: &str = include_str!("reference.md");

/// What became of a script.
#[derive(Debug)]
pub struct Translation {
    /// The image, unless there is an error.
    pub image: Option<Vec<u8>>,
    /// Errors and warnings, by their place.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether there are more than these.
    pub has_more: bool,
    /// The texts that the diagnostics are about.
    pub sources: Sources,
}

impl Translation {
    /// All drawings, one behind the other.
    #[must_use]
    pub fn render(&self) -> String {
        let drawings = self.diagnostics.iter().map(|it| it.render(&self.sources));
        let drawn: String = drawings.map(|drawing| drawing + "\n\n").collect();
        let more = "and more: correct these first\n\n";
        if self.has_more { drawn + more } else { drawn }
    }
}

/// Translates the script `text` of the file `name` for a cluster; without one, names of the
/// cluster file cannot be looked up, and the script must give the roles.
#[must_use]
pub fn translate(
    name: &str,
    text: &str,
    cluster: Option<&Surroundings>,
    reader: &mut Reader<'_>,
) -> Translation {
    translate_as(name, text, cluster, reader, Judgement::Whole)
}

/// The same of a file: what is no text in UTF-8 is refused where it ceases to be one.
#[must_use]
pub fn translate_bytes(
    name: &str,
    bytes: &[u8],
    cluster: Option<&Surroundings>,
    reader: &mut Reader<'_>,
) -> Translation {
    let text = String::from_utf8_lossy(bytes);
    let wrong = std::str::from_utf8(bytes).err().filter(|_| bytes.len() <= SOURCE_MAX);
    let Some(wrong) = wrong else { return translate(name, &text, cluster, reader) };
    let (mut sources, at) = (Sources::default(), wrong.valid_up_to());
    sources.add(name, &text);
    let message = "the script is not text in UTF-8";
    let help = "save it as UTF-8; `weft rl dump` shows an image";
    let wrong = Diagnostic::new(DiagnosticCode::File, at..at, message, help);
    Translation { image: None, diagnostics: vec![wrong], has_more: false, sources }
}

/// Whether the timing is judged: an image does not say of which cluster it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// All is judged.
    Whole,
    /// The timing is left to the cluster.
    Left,
}

pub(crate) fn translate_as(
    name: &str,
    text: &str,
    cluster: Option<&Surroundings>,
    reader: &mut Reader<'_>,
    judgement: Judgement,
) -> Translation {
    let mut sources = Sources::default();
    let script = parse::parse(name, text, &mut sources, reader);
    let mut diagnostics = script.diagnostics;
    let mut image = None;
    if diagnostics.is_empty() {
        let (names, found) =
            resolve::resolve(&script.statements, &script.constants, cluster, judgement);
        diagnostics.extend(found);
        if diagnostics.iter().all(Diagnostic::is_warning) {
            let generated = generate::generate(&script.statements, &names, &sources);
            diagnostics.extend(generated.diagnostics);
            image = generated.image;
            if image.is_some() {
                diagnostics.extend(lint::lint(&script.statements, &names));
            }
        }
    }
    diagnostics.sort_by_key(|it| it.span.start);
    let has_more = diagnostics.len() > ERRORS_MAX;
    diagnostics.truncate(ERRORS_MAX);
    if !diagnostics.iter().all(Diagnostic::is_warning) {
        image = None;
    }
    Translation { image, diagnostics, has_more, sources }
}

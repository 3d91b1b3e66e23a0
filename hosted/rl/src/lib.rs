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

pub use dump::dump;
pub use format::format;
pub use parse::{ERRORS_MAX, Reader, SOURCE_MAX};
pub use surroundings::{ClusterTask, Surroundings, with_timeouts};

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
    let mut sources = Sources::default();
    let script = parse::parse(name, text, &mut sources, reader);
    let mut diagnostics = script.diagnostics;
    let mut image = None;
    if diagnostics.is_empty() {
        let (names, found) = resolve::resolve(&script.statements, &script.constants, cluster);
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

//! What the translator says about a script: a code, places, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::code::DiagnosticCode;
use crate::source::{Sources, Span};

/// A finding in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its stable code.
    pub code: DiagnosticCode,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What stands there; may be empty.
    pub label: String,
    /// Another place that belongs to it.
    pub other: Option<Box<(Span, String)>>,
    /// What to do.
    pub help: String,
}

impl Diagnostic {
    /// A finding with one place.
    pub fn new(
        code: DiagnosticCode,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (message, help) = (message.into(), help.into());
        Self { code, message, span, label: String::new(), other: None, help }
    }

    /// The same, with a label at its place.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same, with a second place.
    #[must_use]
    pub fn beside(mut self, span: Span, label: impl Into<String>) -> Self {
        self.other = Some(Box::new((span, label.into())));
        self
    }

    /// Whether the script is translated in spite of it.
    #[must_use]
    pub const fn is_warning(&self) -> bool {
        self.code.is_lint()
    }

    /// The drawing for people.
    #[must_use]
    pub fn render(&self, sources: &Sources) -> String {
        let level = if self.is_warning() { Level::WARNING } else { Level::ERROR };
        let title = level.primary_title(self.message.as_str()).id(self.code.as_str());
        let Some((file, within)) = sources.locate(&self.span) else {
            return Renderer::plain().render(&[Group::with_title(title)]);
        };
        if self.code == DiagnosticCode::File {
            // Of a text that is no script a line may be anything, and of any length.
            let (line, column) = sources.line_column(&self.span);
            let origin = Origin::path(file.name.as_str()).line(line).char_column(column);
            let group = title.element(origin);
            return Renderer::plain()
                .render(&[group.element(Level::HELP.message(self.help.as_str()))]);
        }
        let primary = AnnotationKind::Primary.span(within).label(self.label.as_str());
        let mut snippet = Snippet::source(file.text.as_str()).path(file.name.as_str());
        snippet = snippet.annotation(primary);
        if let Some((span, label)) = self.other.as_deref()
            && let Some((other, within)) = sources.locate(span)
            && other.name == file.name
        {
            let context = AnnotationKind::Context.span(within).label(label.as_str());
            snippet = snippet.annotation(context);
        }
        let mut group = title.element(snippet);
        if !self.help.is_empty() {
            group = group.element(Level::HELP.message(self.help.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

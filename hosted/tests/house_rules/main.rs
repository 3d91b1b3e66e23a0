//! The house rules that a machine can check, as a test of the workspace.
//!
//! ```text
//!   tree.rs    which files there are, which module each is, which are tests
//!   source.rs  one file as lines of code, comment and text, so that no rule reads a string as code
//!      ▲
//!   unsafety  layers  clocks  leftovers  layout  names  orders  top_level  documents  specs
//!   plain_words  queues  supplies
//! ```
//!
//! A rule is a function from a source, or from the whole tree, to findings. Each has two kinds of
//! test: one runs it over the workspace, the others feed it a bad snippet and demand a finding,
//! because a rule that cannot fail is no rule. A finding says where, what and how to mend it.
//!
//! What they do not do: parse. They look at words, with comments and strings set apart, and can be
//! misled by macros that build module declarations or unsafe code out of pieces.

mod clocks;
mod documents;
mod finding;
mod layers;
mod layout;
mod leftovers;
mod names;
mod orders;
mod plain_words;
mod queues;
mod source;
mod specs;
mod supplies;
mod threads;
mod top_level;
mod tree;
mod unsafety;

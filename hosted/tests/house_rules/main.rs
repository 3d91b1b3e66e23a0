//! The house rules that a machine can check, as a test of the workspace.
//!
//! ```text
//!   tree.rs    the files, the module of each, and which are tests
//!   source.rs  one file as lines of code, comment and text, so that no rule reads a string as code
//!      ▲
//!   unsafety  layers  clocks  leftovers  layout  names  orders  top_level  documents  specs
//!   plain_words  queues  supplies  counts
//! ```
//!
//! A rule is a function from a source, or from the whole tree, to findings. Each has two kinds of
//! test: one runs it over the workspace, the others feed it a bad snippet and require a finding,
//! because a rule that cannot fail is no rule. A finding gives the place, the breach and the cure.
//!
//! They do not parse. They match tokens, with comments and strings separated, and can be misled by
//! macros that build module declarations or unsafe code out of pieces.

mod clocks;
mod counts;
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

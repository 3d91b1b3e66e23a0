//! The DIR net as a whole: at least one test for each resolution, by its number.

mod cut;
mod detect;
mod handover;
mod heard;
mod heirs;
mod isolation;
mod join;
mod limits;
#[cfg(feature = "mutants")]
mod mutants;
mod net;
mod refuse;
mod restore;
mod rivals;
mod script;
mod stale;
mod succeed;
mod supervisor;
mod views;
mod witness;

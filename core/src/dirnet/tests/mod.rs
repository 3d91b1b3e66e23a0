//! The DIR net as a whole, one test or more for each resolution, by its number.

mod detect;
mod join;
mod net;
mod refuse;
mod succeed;

//! What an operator may have done with a whole node.

use serde::{Deserialize, Serialize};

/// What may be done with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeOrder {
    /// Shut it out everywhere, end its component and its tasks, and let no later life of it in.
    Isolate,
    /// Let it come back, as another life.
    Release,
}

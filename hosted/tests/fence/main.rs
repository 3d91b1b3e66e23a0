//! Fencing over shared memory: the two ways that the fabric documents, and death by itself.
//!
//! | the peer | what keeps it from this memory | file |
//! |---|---|---|
//! | is another process | it is killed and waited for, since its mappings cannot be taken away | `process` |
//! | cannot be killed, for it is this process | its gate is closed, its lane and its incarnation refused | `gate` |
//! | has died | its pidfd says so, and posts to it fail | `process` |

mod gate;
mod pair;
mod process;

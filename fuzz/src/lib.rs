//! The bodies of the fuzz targets, as functions from bytes to a panic or none.
//!
//! ```text
//!   fuzz_targets/NAME.rs          libFuzzer, for as long as one likes
//!                        ├──▶ NAME::run(bytes)
//!   hosted/tests/corpora.rs       every committed input of corpus/NAME, in the ordinary tests
//! ```
//!
//! | target | bytes are |
//! |---|---|
//! | `wire_slot` `wire_cell` `wire_broadcast` | what a peer left in memory |
//! | `wire_group` | a frame of a group, or the entry of a message |
//! | `wire_rendezvous` `tensor_key` | a message of the rendezvous, and the name in it |
//! | `rendezvous_ops` | messages of one member into two that exchange tensors |
//! | `npy_header` `safetensors_file` | a file of tensors |
//! | `group_frames` | frames of one member of a group, and what the others do |
//! | `endpoint_ops` | operations of two endpoints and a liar |
//! | `dirnet_ops` | what others say to a component and an I'm-Alive Task |
//! | `dirnet_snapshot` | what a node finds of its saved database |
//! | `wheel_ops` | operations of a wheel, beside a sorted map |
//! | `neb_regions` | what a liar writes beside two members that broadcast |
//! | `mailbox_attach` | what an earlier incarnation left in a mailbox |
//! | `saved_notes` | what a node finds of what it had saved |
//! | `component_frames` | what a component says to its supervisor |
//! | `chronicle_entries` | what other nodes say that they have noted |
//! | `pair_end` | what a peer offers over verbs |
//! | `neb_proof` | what a peer presents as a proof of equivocation |
//! | `bootstrap_messages` | what a stranger says before it is known |
//! | `network_words` | what comes over a connection between hosts |
//! | `control_request` | what a client says on a control socket, or a node |
//! | `cluster_file` `rl_source` `rl_scenario` | what an operator wrote |
//! | `rl_image` | what comes as a translated recovery script |
//! | `rl_facts` | what nodes report to a manager that evaluates one |

pub mod bootstrap_messages;
pub mod chronicle_entries;
pub mod cluster_file;
pub mod component_frames;
pub mod control_request;
pub mod dirnet_ops;
pub mod dirnet_snapshot;
pub mod endpoint_ops;
pub mod group_frames;
pub mod mailbox_attach;
pub mod neb_proof;
pub mod neb_regions;
pub mod network_words;
pub mod npy_header;
pub mod pair_end;
pub mod rendezvous_ops;
pub mod rl_facts;
pub mod rl_image;
pub mod rl_scenario;
pub mod rl_source;
pub mod safetensors_file;
pub mod saved_notes;
pub mod tensor_key;
pub mod wheel_ops;
pub mod wire_broadcast;
pub mod wire_cell;
pub mod wire_group;
pub mod wire_rendezvous;
pub mod wire_slot;

use weft_core::fabric::Layout;
use weft_core::lane;

/// A target by the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("bootstrap_messages", bootstrap_messages::run),
    ("chronicle_entries", chronicle_entries::run),
    ("cluster_file", cluster_file::run),
    ("component_frames", component_frames::run),
    ("control_request", control_request::run),
    ("dirnet_ops", dirnet_ops::run),
    ("dirnet_snapshot", dirnet_snapshot::run),
    ("endpoint_ops", endpoint_ops::run),
    ("group_frames", group_frames::run),
    ("mailbox_attach", mailbox_attach::run),
    ("neb_proof", neb_proof::run),
    ("neb_regions", neb_regions::run),
    ("network_words", network_words::run),
    ("npy_header", npy_header::run),
    ("pair_end", pair_end::run),
    ("rendezvous_ops", rendezvous_ops::run),
    ("rl_facts", rl_facts::run),
    ("rl_image", rl_image::run),
    ("rl_scenario", rl_scenario::run),
    ("rl_source", rl_source::run),
    ("safetensors_file", safetensors_file::run),
    ("saved_notes", saved_notes::run),
    ("tensor_key", tensor_key::run),
    ("wheel_ops", wheel_ops::run),
    ("wire_broadcast", wire_broadcast::run),
    ("wire_cell", wire_cell::run),
    ("wire_group", wire_group::run),
    ("wire_rendezvous", wire_rendezvous::run),
    ("wire_slot", wire_slot::run),
];

/// The lanes of a machine whose layout `all` is: they lie behind its two regions.
fn lanes(all: &Layout, message_len: u16, slots: u32) -> (lane::Config, lane::Regions) {
    let config = lane::Config::new(all.peers(), slots, message_len).expect("valid sizes");
    let mut layout = Layout::new(all.peers());
    for spec in &all.regions()[..2] {
        layout.add(*spec).expect("there is room");
    }
    let regions = config.add_regions(&mut layout).expect("there is room");
    assert_eq!(layout.digest(), all.digest(), "lanes are where the machine has them");
    (config, regions)
}

//! What every machine costs in memory: the table in the documentation of the crate is the truth,
//! and a machine that grows is a change of that table.
#![cfg(target_pointer_width = "64")]

use weft_core::dirnet::{Component, ImAliveTask, LargestComponent};
use weft_core::endpoint::{BROADCAST_DEPTH, Endpoint, Member, Plan};
use weft_core::fabric::Layout;
use weft_core::fabric::loopback::Loopback;
use weft_core::group::Groups;
use weft_core::lane::{LaneReader, LaneWriter};
use weft_core::mailbox::{Mailbox, Outbox};
use weft_core::neb::Neb;
use weft_core::recovery::{Program, Rint};
use weft_core::rendezvous::Adapter;
use weft_core::wheel::Wheel;

/// One row for each machine; a new machine adds its line here, and the test says what else.
macro_rules! rows {
    ($($machine:ty),* $(,)?) => {
        [$((stringify!($machine), size_of::<$machine>())),*]
    };
}

const DOCUMENTATION: &str = include_str!("../src/lib.rs");

fn table() -> Vec<(String, String)> {
    let rows = rows! {
        Wheel<64>,
        Wheel<1024>,
        Layout,
        Mailbox<1024, 4>,
        Outbox,
        LaneWriter,
        LaneReader,
        Neb<4, 1>,
        Neb<4, BROADCAST_DEPTH>,
        Neb<7, BROADCAST_DEPTH>,
        Groups<4, 1>,
        Groups<32, 8>,
        Adapter<4, 16>,
        Adapter<32, 64>,
        Component<4, 2>,
        LargestComponent,
        Member<4, 2>,
        ImAliveTask,
        Program<'static>,
        Rint<64, 16>,
        Rint<64, 256>,
        Plan,
        Endpoint<Loopback<'static, 4, 1024>, 1024, 4>,
    };
    rows.iter().map(|(machine, bytes)| (format!("`{machine}`"), bytes.to_string())).collect()
}

/// Which column is of what was built here.
const COLUMN: usize = if cfg!(feature = "signed") { 3 } else { 2 };

/// Machine and bytes, as a line of the table has them.
fn documented(line: &str) -> Option<(String, String)> {
    let cell = |at| line.split('|').nth(at).map(|text| text.trim().to_owned());
    Some((cell(1)?, cell(COLUMN)?))
}

#[test]
fn the_documented_size_of_every_machine_is_its_size() {
    let documented: Vec<_> = DOCUMENTATION
        .lines()
        .skip_while(|line| !line.starts_with("//! | machine | bytes |"))
        .skip(2)
        .take_while(|line| line.starts_with("//! |"))
        .filter_map(documented)
        .collect();
    assert_eq!(documented, table(), "if that is meant, correct the table in core/src/lib.rs");
}

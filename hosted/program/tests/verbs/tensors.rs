//! Tensors by name over verbs, read and written: in a message, whole, and in parts.

use std::fs;

use crate::device::devices;
use crate::place::Place;

/// Of the longest tensor: three times as long as a pool.
const LONG: usize = 3 << 20;

/// A file of three tensors: one fits into a message, one into a piece of the pool, and one into
/// neither.
fn file(place: &Place) -> String {
    let lens = [100, 300_000, LONG];
    let mut begin = 0;
    let entries = lens.map(|len| {
        let offsets = format!("[{begin},{}]", begin + len);
        begin += len;
        format!("\"{len}\":{{\"dtype\":\"U8\",\"shape\":[{len}],\"data_offsets\":{offsets}}}")
    });
    let header = format!("{{{}}}", entries.join(","));
    let data: Vec<u8> = (0..begin).map(|at| (at % 251) as u8).collect();
    let len = (header.len() as u64).to_le_bytes();
    place.file("sent.safetensors", [&len, header.as_bytes(), &data].concat())
}

/// RZ-1, RZ-3, RZ-17: each path carries a file, whichever end comes first, across the loss of
/// either component.
#[test]
fn rz1_a_file_is_read_or_written_and_outlives_both_components() {
    let Some(devices) = devices() else { return };
    for path in ["read", "write"] {
        let place = Place::new();
        let sizes = "name = \"t\"\nnodes = 2\n[rendezvous]\npool_mib = 1\nstore_mib = 32\n";
        let text = format!("{sizes}path = \"{path}\"\n");
        let cluster = place.file("t.toml", text);
        let (_up, nodes) = place.up(&format!("{cluster} --fabric verbs --devices {devices}"));
        nodes.await_joined();
        let (sent, out) = (file(&place), place.path_of("out.safetensors"));
        let send = format!("send {sent} --from 0 --to 1 --timeout 120 --name t --step");
        let recv = format!("recv --node 1 --from 0 --all --timeout 120 --name t --output {out}");
        for (step, killed) in [(1, None), (2, Some(0)), (3, Some(1))] {
            let receiver = (step == 3).then(|| place.start(&format!("{recv} --step {step}"), ""));
            let before = (step < 3).then(|| place.weft(&format!("{send} {step}")).done());
            if let Some(node) = killed {
                place.weft(&format!("inject kill {node} --name t --wait 120")).done();
            }
            if before.is_none() {
                place.weft(&format!("{send} {step}")).done();
            }
            match receiver {
                Some(receiver) => receiver.wait().done(),
                None => place.weft(&format!("{recv} --step {step}")).done(),
            };
            let [sent, received] = [&sent, &out].map(|path| fs::read(path).expect("it is there"));
            assert!(sent == received, "{path}, step {step}: another file");
        }
    }
}

//! What comes as the image of a recovery script. The first byte says whether the checksum is made
//! right; what the verifier accepts ends within as many steps as it has words.

use weft_core::ids::Term;
use weft_core::recovery::{Expected, ORDERS_MAX, Picture, Progress, Rint, seal, verify};
use weft_core::time::Instant;

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((first, image)) = bytes.split_first() else { return };
    let mut image = image.to_vec();
    if first % 2 == 1 {
        seal(&mut image);
    }
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let Ok(program) = verify(&image, &expected) else { return };
    let words = program.code().header().words;
    let mut picture = Picture::<64, 256>::default();
    for (at, fact) in picture.tasks.iter_mut().enumerate() {
        fact.errors = (at as u32 + u32::from(*first)) % 3;
    }
    let mut rint = Rint::default();
    rint.evaluate(&program, &picture, Term::of_epoch(1), Instant(0)).expect("it is idle");
    loop {
        let progress = rint.step(&program, words.max(1)).expect("a verified image does not fail");
        let Progress::Done(trace) = progress else { panic!("more steps than words") };
        assert!(trace.steps <= words);
        let orders = std::iter::from_fn(|| rint.poll_order()).count();
        assert!(orders <= ORDERS_MAX + program.tasks().len());
        if !rint.resume(&program, &picture, Instant(u64::MAX)).expect("it is idle") {
            break;
        }
    }
}

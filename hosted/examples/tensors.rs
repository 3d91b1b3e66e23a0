//! Two members exchange a tensor in each step, and check it. With `die`, member 1 ends once between
//! the receipt of a tensor and its record: no step is lost, and none is wrong.
//!
//! ```sh
//! printf 'name = "t"\nnodes = 2\nrendezvous.pool_mib = 4\n' > t.toml
//! weft run t.toml --state 4KiB -- target/release/examples/tensors 1000 die
//! ```

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::{Event, Expect, Rank, Received, Tensor, TensorError, TensorName, TensorView};

const fn name(step: u64) -> TensorName<'static> {
    TensorName { edge: "state", step: step.cast_signed() }
}

/// What member `rank` sends in `step`: within a message, by one read, by several.
fn values(rank: Rank, step: u64) -> Vec<f32> {
    let len = [16, 1000, 80_000][(step % 3) as usize];
    let first = 2.0 * (step % 10_007) as f32 + f32::from(rank.0);
    (0..len).map(|at| first + at as f32).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: u64 = std::env::args().nth(1).map_or(Ok(1000), |word| word.parse())?;
    let mut member = Member::join()?;
    let (me, other) = (member.rank(), Rank(1 - member.rank().0));
    let is_mortal = me == Rank(1) && member.incarnation().0 == 1 && std::env::args().count() > 2;
    let saved = member.saved().map(|record| record.try_into().map(u64::from_le_bytes));
    let first = saved.transpose().map_err(|_| "no record of this program")?.unwrap_or(0);
    // The other may lack what an earlier incarnation sent last; and the step behind the last one
    // says that this member lacks none.
    for step in first.saturating_sub(1)..=steps {
        let mine = values(me, step);
        match member.send(other, name(step), TensorView::of(&[mine.len() as u64], &mine)?) {
            Ok(_) if step < first => continue,
            Ok(_) => {}
            Err(TensorError::Finished) => break,
            Err(error) => return Err(error.into()),
        }
        let Some(tensor) = receive(&mut member, other, name(step))? else { break };
        assert!(tensor.view().elements::<f32>()? == values(other, step), "step {step}");
        if is_mortal && step == steps / 2 {
            std::process::abort();
        }
        // Before the next poll, which reports the receipt to the other.
        member.save(&(step + 1).to_le_bytes())?;
        member.clean_step(name(step).step - 1)?;
    }
    println!("exchanged {steps} tensors, incarnation {}", member.incarnation().0);
    Ok(())
}

/// The tensor of `step`; none once the other has finished, which is then the last one.
fn receive(
    it: &mut Member,
    from: Rank,
    step: TensorName,
) -> Result<Option<Tensor>, Box<dyn Error>> {
    'asked: loop {
        let wanted = it.receive(from, step, Expect::any(), Duration::from_secs(30))?;
        loop {
            it.wait(Duration::from_millis(10))?;
            for event in it.events().collect::<Vec<_>>() {
                match event {
                    Event::Ended { outcome: Received::Value, .. } => {
                        return Ok(it.take_tensor(wanted));
                    }
                    // Its next incarnation sends it again.
                    Event::Ended { outcome: Received::PeerGone, .. } => continue 'asked,
                    Event::Finished { .. } => return Ok(None),
                    Event::Ended { .. } | Event::Stop => return Err(format!("{event:?}").into()),
                    _ => {}
                }
            }
        }
    }
}

//! A failing run made smaller: fewer faults and fewer orders that still break a promise.
//!
//! Delta debugging: halves of the faults are left out, then quarters, and so on, as long as the run
//! still fails. Leaving out a fault moves no other, so the rest is a run that can be replayed from
//! its seed, its faults and its orders.

/// What a failing run can do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The faults that are needed, by number.
    pub faults: Vec<u32>,
    /// The orders of each peer that are needed, at most.
    pub orders: u32,
}

/// Looks for less than `from` that `fails` still, in at most `runs_max` runs.
pub fn shrink(from: Shrunk, mut runs_max: u32, mut fails: impl FnMut(&Shrunk) -> bool) -> Shrunk {
    let mut least = from;
    let mut try_less = |least: &mut Shrunk, less: Shrunk| {
        let shrinks = runs_max > 0 && fails(&less);
        runs_max = runs_max.saturating_sub(1);
        if shrinks {
            *least = less;
        }
        shrinks
    };
    for shorten in [|orders| orders / 2, |orders: u32| orders - 1] {
        while least.orders > 0 {
            let less = Shrunk { orders: shorten(least.orders), ..least.clone() };
            if !try_less(&mut least, less) {
                break;
            }
        }
    }
    let mut chunk = least.faults.len();
    while chunk > 0 {
        let mut start = 0;
        while start < least.faults.len() {
            let mut less = least.clone();
            less.faults.drain(start..(start + chunk).min(least.faults.len()));
            if !try_less(&mut least, less) {
                start += chunk;
            }
        }
        chunk /= 2;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left() {
        let from = Shrunk { faults: (0..100).collect(), orders: 30 };
        let needs = |run: &Shrunk| {
            run.orders >= 3 && [17, 18, 60].iter().all(|fault| run.faults.contains(fault))
        };
        let least = shrink(from, 1000, needs);
        assert_eq!(least, Shrunk { faults: vec![17, 18, 60], orders: 3 });
    }

    #[test]
    fn it_ends_when_it_may_run_no_more() {
        let from = Shrunk { faults: (0..100).collect(), orders: 30 };
        let mut runs = 0;
        let least = shrink(from.clone(), 5, |_| {
            runs += 1;
            false
        });
        assert_eq!((least, runs), (from, 5));
    }
}

//! The time axis of a panel: from microseconds after the blow to places on the paper.

use std::fmt::Write as _;

/// Where the lanes begin and how wide they are.
pub(super) const LEFT: u32 = 132;
pub(super) const PLOT: u32 = 1080;

/// Some time before the blow up to some time after the last moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// How long before the blow it begins, in microseconds.
    before_us: u64,
    /// How long all of it is.
    span_us: u64,
}

impl Axis {
    /// An axis that shows `last_us` after the blow, and a twentieth of that on either side.
    pub(super) fn up_to(last_us: u64) -> Self {
        let rim = (last_us / 20).max(1_000);
        Self { before_us: rim, span_us: last_us + 2 * rim }
    }

    pub(super) const fn span_us(&self) -> u64 {
        self.span_us
    }

    pub(super) const fn before_us(&self) -> u64 {
        self.before_us
    }

    /// The place of a time after the blow.
    pub(super) fn x(&self, after_us: u64) -> f64 {
        self.place(self.before_us + after_us)
    }

    /// The place of a time after the axis begins, at most its end.
    pub(super) fn place(&self, us: u64) -> f64 {
        let us = u32::try_from(us.min(self.span_us)).unwrap_or(u32::MAX);
        let span = u32::try_from(self.span_us).unwrap_or(u32::MAX);
        f64::from(LEFT) + f64::from(PLOT) * f64::from(us) / f64::from(span)
    }

    /// Lines from `top` down to `bottom`, with round times below.
    pub(super) fn draw(&self, svg: &mut String, top: u32, bottom: u32) {
        let step_us = self.step_us();
        let mut us = 0;
        while us + self.before_us <= self.span_us {
            let x = self.x(us);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{}\">{} ms</text>",
                bottom + 14,
                us / 1_000
            );
            us += step_us;
        }
    }

    /// The time between two lines: 1, 2 or 5 times a power of ten, a millisecond or longer.
    fn step_us(&self) -> u64 {
        const LINES: u64 = 12;
        let mut step = 1_000;
        for factor in [2, 5, 10].into_iter().cycle() {
            if self.span_us / step <= LINES {
                break;
            }
            let decade = 10_u64.pow(step.ilog10());
            step = decade * factor;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_at_round_times_and_not_too_close() {
        let steps = [5_000, 30_000, 90_000, 1_300_000, 2_400_000, 60_000_000];
        let steps = steps.map(|last_us| Axis::up_to(last_us).step_us());
        assert_eq!(steps, [1_000, 5_000, 10_000, 200_000, 500_000, 10_000_000]);
    }

    #[test]
    fn the_blow_is_near_the_left_and_the_end_at_the_right() {
        let axis = Axis::up_to(100_000);
        assert!((axis.place(0) - f64::from(LEFT)).abs() < 0.01);
        assert!((axis.x(0) - f64::from(LEFT)) > 10.0);
        assert!((axis.x(900_000) - f64::from(LEFT + PLOT)).abs() < 0.01);
    }
}

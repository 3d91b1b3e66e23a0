//! What a node has obeyed of the orders about one of its tasks: each at most once (RL-3).
//!
//! ```text
//!   errors    1 2 3 │ 4 5
//!             mark ─┘   └─ an order that was given when 3 were answered answers 4 and 5
//! ```
//!
//! An order is repeated until its node has judged it, and a manager that takes over may give the
//! same order again, under another identity. Neither moves the mark twice: an order names the mark
//! that its manager saw, and where that has moved since, the order rests on an old picture. A
//! manager that still sees unanswered errors gives another one.

use super::OrderId;

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// It is obeyed now, and the errors that it names are answered.
    Obey,
    /// It, or a later one, was judged before.
    Repeated,
    /// Other orders have answered errors since its picture was taken.
    Outdated,
}

/// The orders about one task that its node has judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Answered {
    mark: u32,
    judged: OrderId,
    obeyed: OrderId,
}

impl Answered {
    /// How many errors were answered.
    #[must_use]
    pub const fn mark(&self) -> u32 {
        self.mark
    }

    /// The last order that was judged: a manager repeats those behind it.
    #[must_use]
    pub const fn judged(&self) -> OrderId {
        self.judged
    }

    /// What an earlier boot of the node has noted: the mark, and the last orders judged and obeyed.
    #[must_use]
    pub const fn restored(mark: u32, judged: OrderId, obeyed: OrderId) -> Self {
        Self { mark, judged, obeyed }
    }

    /// The last order that was obeyed.
    #[must_use]
    pub const fn obeyed(&self) -> OrderId {
        self.obeyed
    }

    /// Answers the errors up to `mark` without an order: orders on an older picture are outdated.
    pub fn answer(&mut self, mark: u32) {
        self.mark = self.mark.max(mark);
        self.obeyed = OrderId::default();
    }

    /// Judges the notice `id`: it answers no error, so no mark makes it outdated.
    pub fn judge_notice(&mut self, id: OrderId) -> Judgement {
        if id <= self.judged && !super::mutants::ORDERS_ARE_REPEATED.is_planted() {
            return Judgement::Repeated;
        }
        self.judged = id;
        Judgement::Obey
    }

    /// Judges order `id`, which answers the errors up to `mark` and was given when `seen` of them
    /// were answered. The orders of one evaluation must arrive in their order.
    pub fn judge(&mut self, id: OrderId, seen: u32, mark: u32) -> Judgement {
        if self.judge_notice(id) == Judgement::Repeated {
            return Judgement::Repeated;
        }
        // The orders of one evaluation rest on one picture; the first of them has moved the mark.
        let is_continued = (id.term, id.evaluation) == (self.obeyed.term, self.obeyed.evaluation);
        let is_outdated = seen != self.mark && !is_continued;
        if is_outdated && !super::mutants::MARKS_ARE_IGNORED.is_planted() {
            return Judgement::Outdated;
        }
        self.obeyed = id;
        self.mark = self.mark.max(mark);
        Judgement::Obey
    }
}

#[cfg(test)]
pub(in crate::recovery) mod tests {
    use super::*;
    use crate::ids::Term;

    const fn id(term: u32, evaluation: u32, index: u16) -> OrderId {
        OrderId { term: Term::of_epoch(term), evaluation, index }
    }

    #[test]
    pub(in crate::recovery) fn rl3_a_repeated_order_is_obeyed_once() {
        let mut answered = Answered::default();
        assert_eq!(answered.judge(id(1, 1, 0), 0, 2), Judgement::Obey);
        assert_eq!(answered.judge(id(1, 1, 0), 0, 2), Judgement::Repeated);
        // It answers no error, so only its identity distinguishes it.
        assert_eq!(answered.judge(id(1, 2, 0), 2, 2), Judgement::Obey);
        assert_eq!(answered.judge(id(1, 2, 0), 2, 2), Judgement::Repeated);
        assert_eq!(answered.judge(id(1, 1, 7), 2, 2), Judgement::Repeated, "overtaken");
        assert_eq!(answered.mark(), 2);
    }

    /// The manager died between order and answer; the next one saw the errors unanswered.
    #[test]
    pub(in crate::recovery) fn rl3_two_managers_answer_an_error_once() {
        let mut answered = Answered::default();
        assert_eq!(answered.judge(id(1, 9, 0), 0, 1), Judgement::Obey);
        assert_eq!(answered.judge(id(2, 1, 0), 0, 1), Judgement::Outdated);
        assert_eq!(answered.judge(id(2, 2, 0), 1, 3), Judgement::Obey);
        assert_eq!(answered.judge(id(1, 10, 0), 3, 4), Judgement::Repeated, "of the old term");
        assert_eq!((answered.mark(), answered.judged()), (3, id(2, 2, 0)));
    }

    /// No order came in time for the errors behind the first, and the node answered them itself:
    /// what is left of the evaluation is late.
    #[test]
    fn rl3_what_the_node_has_answered_is_answered_by_no_order_of_an_evaluation_that_went_on() {
        let mut answered = Answered::default();
        assert_eq!(answered.judge(id(1, 1, 0), 0, 1), Judgement::Obey);
        answered.answer(3);
        assert_eq!(answered.judge(id(1, 1, 1), 0, 3), Judgement::Outdated);
        assert_eq!(answered.mark(), 3);
    }

    /// What another manager has answered meanwhile makes no notice late.
    #[test]
    fn rl3_a_notice_is_handed_over_once_whatever_was_answered_since() {
        let mut answered = Answered::default();
        assert_eq!(answered.judge_notice(id(1, 1, 0)), Judgement::Obey);
        assert_eq!(answered.judge_notice(id(1, 1, 0)), Judgement::Repeated);
        assert_eq!(answered.judge(id(1, 1, 1), 0, 2), Judgement::Obey);
        assert_eq!(answered.judge_notice(id(2, 1, 0)), Judgement::Obey);
        assert_eq!((answered.mark(), answered.judged()), (2, id(2, 1, 0)));
    }

    #[test]
    fn rl3_orders_of_one_evaluation_are_obeyed_together_or_not_at_all() {
        let mut answered = Answered::default();
        assert_eq!(answered.judge(id(1, 1, 0), 0, 1), Judgement::Obey);
        assert_eq!(answered.judge(id(1, 1, 1), 0, 3), Judgement::Obey);
        assert_eq!(answered.judge(id(1, 2, 0), 1, 4), Judgement::Outdated);
        assert_eq!(answered.judge(id(1, 2, 1), 1, 4), Judgement::Outdated);
        assert_eq!(answered.mark(), 3);
    }
}

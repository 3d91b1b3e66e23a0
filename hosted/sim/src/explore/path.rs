//! The way to a state, shared with all states that lie behind it.

use std::fmt::Display;
use std::rc::Rc;

/// Moves, the last one first.
#[derive(Clone, Debug)]
pub(crate) struct Path<M>(Option<Rc<(M, Path<M>)>>);

impl<M> Default for Path<M> {
    /// The way to where it begins.
    fn default() -> Self {
        Self(None)
    }
}

impl<M> Path<M> {
    /// This way, and one more move.
    pub(crate) fn then(&self, last: M) -> Self {
        Self(Some(Rc::new((last, Self(self.0.clone())))))
    }
}

impl<M: Display> Path<M> {
    /// A line for each move, the first one first.
    pub(crate) fn in_words(&self) -> Vec<String> {
        let mut moves = Vec::new();
        let mut path = self;
        while let Some(way) = &path.0 {
            moves.push(way.0.to_string());
            path = &way.1;
        }
        moves.reverse();
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ways_share_their_beginning() {
        let begin = Path::default().then(1);
        let (one, other) = (begin.then(2), begin.then(3));
        assert_eq!(begin.in_words(), ["1"]);
        assert_eq!(
            (one.in_words(), other.in_words()),
            (vec!["1".into(), "2".into()], vec!["1".into(), "3".into()])
        );
    }
}

//! A set of tasks, groups or nodes, by number.

/// Numbers from 0 to 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdSet([u64; 4]);

impl IdSet {
    /// No number.
    pub const EMPTY: Self = Self([0; 4]);

    /// The numbers `0..count`.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..=u8::MAX).take(count).collect()
    }

    /// Adds `id`.
    pub const fn insert(&mut self, id: u8) {
        self.0[(id >> 6) as usize] |= 1 << (id & 63);
    }

    /// Whether `id` is in it.
    #[must_use]
    pub const fn contains(&self, id: u8) -> bool {
        self.0[(id >> 6) as usize] & 1 << (id & 63) != 0
    }

    /// What is in this one and not in `other`.
    #[must_use]
    pub const fn without(&self, other: &Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a & !e, b & !f, c & !g, d & !h])
    }

    /// Whether both have a number.
    #[must_use]
    pub const fn meets(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a & e) | (b & f) | (c & g) | (d & h) != 0
    }

    /// Whether it has no number.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }

    /// How many numbers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The least number, taken out.
    pub fn pop(&mut self) -> Option<u8> {
        let (base, word) = (0_u32..).step_by(64).zip(&mut self.0).find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        u8::try_from(base + bit).ok()
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut left = *self;
        core::iter::from_fn(move || left.pop())
    }
}

impl FromIterator<u8> for IdSet {
    fn from_iter<I: IntoIterator<Item = u8>>(ids: I) -> Self {
        let mut set = Self::EMPTY;
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_set_lists_its_numbers_in_order() {
        let set: IdSet = [255, 0, 64, 63, 128].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 128, 255]);
        assert_eq!(set.len(), 5);
        let rest = IdSet::first(65).without(&set);
        assert_eq!(rest.iter().collect::<Vec<_>>(), (1..63).collect::<Vec<_>>());
        assert!(!rest.meets(&set) && IdSet::EMPTY.is_empty());
    }
}

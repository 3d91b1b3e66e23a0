//! A pool: a range of a region, lent in pieces by a binary buddy allocator in a bitmap.
//!
//! ```text
//!   node 1                     the whole, if the leaves are a power of two
//!   nodes 2, 3                 its halves: n has the halves 2n and 2n + 1, its buddy is n ^ 1
//!   nodes 4096 to 8191         the leaves
//! ```
//!
//! A bit is set where a block is free as a whole and is no part of a larger free one. Nothing is
//! allocated after [`Pool::new`], and no time plays a part: a piece is free when it is given back.
//! (D. Knuth, *The Art of Computer Programming*, volume 1, 2.5.)

/// The most leaves of a pool.
pub const LEAVES_MAX: u32 = 4096;

/// Nodes of the tree; number 0 is not used.
const NODES: u32 = 2 * LEAVES_MAX;
const WORDS: usize = (NODES / 64) as usize;

/// A lent piece, as its node in the tree. Given back once, to the pool it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece(u16);

/// A pool of equal leaves.
#[derive(Clone, Debug, Hash)]
pub struct Pool {
    leaf_len: u32,
    leaves: u32,
    /// Leaves that are lent.
    lent: u32,
    free: [u64; WORDS],
}

impl Pool {
    /// A pool of `leaves` leaves of `leaf_len` bytes each, all free.
    ///
    /// # Panics
    /// When there are no leaves, more than [`LEAVES_MAX`], or they are longer than a region: a
    /// configuration error.
    #[must_use]
    pub fn new(leaf_len: u32, leaves: u32) -> Self {
        assert!((1..=LEAVES_MAX).contains(&leaves), "a pool has 1 to 4096 leaves");
        assert!(leaf_len.checked_mul(leaves).is_some_and(|len| len > 0), "longer than a region");
        let mut pool = Self { leaf_len, leaves, lent: 0, free: [0; WORDS] };
        let mut leaf = 0;
        // Blocks as large as possible, from the front: what lies behind the last leaf is not free.
        while leaf < leaves {
            let size = (1 << leaf.trailing_zeros().min(12)).min(prev_power_of_two(leaves - leaf));
            pool.set((LEAVES_MAX + leaf) / size);
            leaf += size;
        }
        pool
    }

    /// Bytes of all leaves.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.leaf_len * self.leaves
    }

    /// Whether nothing is lent.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lent == 0
    }

    /// Bytes that are lent, in whole leaves.
    #[must_use]
    pub const fn lent(&self) -> u32 {
        self.leaf_len * self.lent
    }

    /// Whether a piece of `len` bytes would fit if nothing were lent.
    #[must_use]
    pub fn could_hold(&self, len: u64) -> bool {
        u64::from(prev_power_of_two(self.leaves)) * u64::from(self.leaf_len) >= len
    }

    /// Lends a piece of at least `len` bytes; none while no free block is as long.
    pub fn lend(&mut self, len: u64) -> Option<Piece> {
        let leaves = u32::try_from(len.div_ceil(u64::from(self.leaf_len))).ok()?;
        let size = leaves.max(1).checked_next_power_of_two().filter(|size| *size <= LEAVES_MAX)?;
        let wanted = LEAVES_MAX / size;
        // The smallest block that is as long: large ones stay whole.
        let mut level = wanted;
        let mut node = loop {
            match self.first_of(level) {
                Some(node) => break node,
                None if level == 1 => return None,
                None => level /= 2,
            }
        };
        self.clear(node);
        while node < wanted {
            node *= 2;
            self.set(node + 1);
        }
        self.lent += size;
        Some(Piece(node as u16))
    }

    /// Takes a piece back.
    ///
    /// # Panics
    /// When it is free already: a bug of the caller.
    pub fn give_back(&mut self, piece: Piece) {
        let mut node = u32::from(piece.0);
        // A free piece may be a part of a larger block by now.
        let mut around =
            core::iter::successors(Some(node), |node| Some(node / 2).filter(|it| *it > 0));
        assert!(!around.any(|node| self.is_free(node)), "a piece is given back once");
        self.lent -= size_of_node(node);
        while node > 1 && self.is_free(node ^ 1) {
            self.clear(node ^ 1);
            node /= 2;
        }
        self.set(node);
    }

    /// Where `piece` begins in the pool, in bytes.
    #[must_use]
    pub const fn offset(&self, piece: Piece) -> u32 {
        let node = piece.0 as u32;
        (node * size_of_node(node) - LEAVES_MAX) * self.leaf_len
    }

    /// How long `piece` is, in bytes.
    #[must_use]
    pub const fn len(&self, piece: Piece) -> u32 {
        size_of_node(piece.0 as u32) * self.leaf_len
    }

    /// The first free block of `nodes` to `2 * nodes`.
    fn first_of(&self, nodes: u32) -> Option<u32> {
        if nodes < 64 {
            // The levels of fewer than 64 nodes share the first word.
            let level = (self.free[0] >> nodes) & ((1 << nodes) - 1);
            return (level != 0).then(|| nodes + level.trailing_zeros());
        }
        let words = (nodes / 64) as usize..(2 * nodes / 64) as usize;
        let found = words.into_iter().find(|word| self.free[*word] != 0)?;
        Some(found as u32 * 64 + self.free[found].trailing_zeros())
    }

    const fn is_free(&self, node: u32) -> bool {
        self.free[(node / 64) as usize] >> (node % 64) & 1 == 1
    }

    const fn set(&mut self, node: u32) {
        self.free[(node / 64) as usize] |= 1 << (node % 64);
    }

    const fn clear(&mut self, node: u32) {
        self.free[(node / 64) as usize] &= !(1 << (node % 64));
    }
}

/// Leaves below `node`.
const fn size_of_node(node: u32) -> u32 {
    LEAVES_MAX >> node.ilog2()
}

const fn prev_power_of_two(number: u32) -> u32 {
    1 << number.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_pool_is_lent_to_the_last_leaf_and_whole_again() {
        for leaves in [1, 2, 3, 7, 64, 100, 4095, 4096] {
            let mut pool = Pool::new(64, leaves);
            let pieces: Vec<_> = core::iter::from_fn(|| pool.lend(64)).collect();
            assert_eq!((pieces.len(), pool.lent()), (leaves as usize, pool.capacity()));
            pieces.into_iter().for_each(|piece| pool.give_back(piece));
            assert!(pool.is_whole());
            let longest = u64::from(prev_power_of_two(leaves)) * 64;
            assert!(pool.could_hold(longest) && !pool.could_hold(longest + 1));
            assert!(pool.lend(longest).is_some());
        }
    }

    #[test]
    #[should_panic(expected = "once")]
    fn a_piece_that_is_given_back_twice_is_a_bug() {
        let mut pool = Pool::new(64, 4);
        let piece = pool.lend(1).unwrap();
        pool.give_back(piece);
        pool.give_back(piece);
    }

    proptest! {
        /// RZ-9: pieces never overlap, lie inside, and come back as one.
        #[test]
        fn lent_pieces_are_apart(
            leaves in 1..300_u32,
            ops in proptest::collection::vec((any::<bool>(), 0..2000_u64), 0..200),
        ) {
            let mut pool = Pool::new(8, leaves);
            let mut lent: Vec<(Piece, u32, u32)> = Vec::new();
            for (is_lend, number) in ops {
                if is_lend {
                    let Some(piece) = pool.lend(number) else { continue };
                    let (at, len) = (pool.offset(piece), number.max(1) as u32);
                    prop_assert!(at + len <= pool.capacity());
                    let is_apart = |(_, other, other_len): &(Piece, u32, u32)| {
                        at + len <= *other || other + other_len <= at
                    };
                    prop_assert!(lent.iter().all(is_apart));
                    lent.push((piece, at, len));
                } else if !lent.is_empty() {
                    let (piece, ..) = lent.swap_remove(number as usize % lent.len());
                    pool.give_back(piece);
                }
            }
            lent.into_iter().for_each(|(piece, ..)| pool.give_back(piece));
            prop_assert!(pool.is_whole());
            prop_assert_eq!(pool.free, Pool::new(8, leaves).free);
        }
    }
}

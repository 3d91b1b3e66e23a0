//! Values that states share until one of them changes it, and what tells states apart.

use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use foldhash::fast::FixedState;

/// Shared until written to; hashed once.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyOnWrite<T> {
    value: Rc<T>,
    digest: Cell<Option<u64>>,
}

impl<T: Clone> CopyOnWrite<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Rc::new(value), digest: Cell::new(None) }
    }

    /// The value alone, to be changed.
    pub(crate) fn change(&mut self) -> &mut T {
        self.digest.set(None);
        Rc::make_mut(&mut self.value)
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Hash> Hash for CopyOnWrite<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let digest = self.digest.get().unwrap_or_else(|| fingerprint(&*self.value));
        self.digest.set(Some(digest));
        state.write_u64(digest);
    }
}

/// A number that differs, all but certainly, when what is hashed does; the same in every run.
pub(crate) fn fingerprint(state: &(impl Hash + ?Sized)) -> u64 {
    FixedState::default().hash_one(state)
}

//! A machine that panics breaks a promise; the run goes on to say which.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

static HOOK: Once = Once::new();

/// Runs `caught`, which catches its own panics, without a word on standard error. A panic comes
/// back as its message and its place.
pub(super) fn quietly<T>(
    caught: impl FnOnce() -> Result<T, Box<dyn Any + Send>>,
) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
                PLACE.set(place.unwrap_or_default());
            } else {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let result = caught();
    QUIET.set(false);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        format!("{} at {}", text.unwrap_or_default(), PLACE.take())
    })
}

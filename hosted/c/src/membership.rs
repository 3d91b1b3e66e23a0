//! Views: who the members are.

use weft::member::{Members, Rank, View};

use crate::border::{Out, call};
use crate::code::weft_code;
use crate::handle::{Form, with};
use crate::lifecycle::weft_member;

/// An incarnation of a member as views name it; a boot of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct weft_generation {
    /// How often its node was started.
    pub boot: u32,
    /// How many components that boot had before.
    pub generation: u32,
}

/// A membership on which all members that show its number agree.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_view {
    /// Its number: of two views the later one has the higher number.
    pub number: u64,
    /// The members, a bit for each rank.
    pub members: u64,
    /// The manager that decided it.
    pub manager: u16,
    /// The membership may be another by now.
    pub is_stale: bool,
    /// The incarnation of each member, by rank.
    pub incarnations: [weft_generation; 64],
}

const _: () = assert!(weft::node::PEERS <= 64);

/// A bit for each rank.
pub(crate) fn mask(members: &Members) -> u64 {
    (0..64).filter(|rank| members.contains(Rank(*rank))).fold(0, |mask, rank| mask | 1 << rank)
}

fn view_of(view: &View, is_stale: bool) -> weft_view {
    let mut incarnations = [weft_generation::default(); 64];
    for (place, rank) in incarnations.iter_mut().zip((0..).map(Rank)) {
        if let Some(it) = view.incarnation(rank) {
            *place = weft_generation { boot: it.boot.0, generation: it.generation };
        }
    }
    weft_view {
        number: view.number().to_bits(),
        members: mask(&view.members()),
        manager: view.manager().0,
        is_stale,
        incarnations,
    }
}

/// Writes the view that this member shows to `view`; WEFT_NONE before the first one. Numbers rise,
/// also under the next manager.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_current_view(
    member: *mut weft_member,
    view: *mut weft_view,
) -> weft_code {
    // SAFETY: the caller's promise.
    let view = unsafe { Out::new(view, "view") };
    call(|| {
        let view = view?;
        let shown = with(member, |form| match form {
            Form::Polled(member) => {
                let is_stale = member.is_view_stale();
                Ok(member.view().map(|view| view_of(view, is_stale)))
            }
            Form::Spawned(handle) => {
                let is_stale = handle.is_view_stale()?;
                Ok(handle.view()?.map(|view| view_of(&view, is_stale)))
            }
        })?;
        Ok(crate::border::ok_or_none(shown.map(|shown| view.set(shown)).is_some()))
    })
}

/// Writes the members that this one exchanges messages with now to `members`, a bit for each rank,
/// itself included. What others see may differ for as long as a change takes.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_members(member: *mut weft_member, members: *mut u64) -> weft_code {
    // SAFETY: the caller's promise.
    let members = unsafe { Out::new(members, "members") };
    call(|| {
        let members = members?;
        let bit = |mask: u64, Rank(rank): Rank| mask | 1_u64.wrapping_shl(rank.into());
        let mask = with(member, |form| match form {
            Form::Polled(member) => Ok(member.members().fold(0, bit)),
            Form::Spawned(handle) => Ok(handle.members()?.into_iter().fold(0, bit)),
        })?;
        members.set(mask);
        Ok(weft_code::WEFT_OK)
    })
}

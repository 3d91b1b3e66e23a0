//! Orders of a script on their way to a component of the DIR net.

use crate::dirnet::{Component, Reject, ScriptOrder, TaskAction};
use crate::ids::Rank;
use crate::recovery::{Entity, Order, Program, TaskOrder, Verb};
use crate::time::Instant;

/// Leaves the tasks that `program` declares to it, and all others to `machine`.
pub fn declare<const NODES: usize, const TASKS: usize>(
    program: &Program<'_>,
    machine: &mut Component<NODES, TASKS>,
    nodes: u16,
) {
    for node in 0..nodes {
        let places = program.tasks().iter().filter_map(|task| program.place_of(task));
        let own = places.filter(|(at, _)| u16::from(*at) == node);
        let bits =
            own.fold(0, |bits, (_, place)| bits | 1_u16.checked_shl(place.into()).unwrap_or(0));
        machine.leave_to_script(Rank(node), bits);
    }
}

/// Has `machine` send an order about a task to the task's node.
///
/// # Errors
/// [`Reject`], as [`Component::order_task`]; what is not about a task, and a task that `program`
/// does not declare, is [`Reject::NoSuchTask`].
pub fn order_task<const NODES: usize, const TASKS: usize>(
    machine: &mut Component<NODES, TASKS>,
    program: &Program<'_>,
    order: &TaskOrder,
    now: Instant,
) -> Result<(), Reject> {
    let (node, place) = program.place_of(order.task).ok_or(Reject::NoSuchTask)?;
    let (at, id) = ((Rank(node.into()), place), order.placed.id);
    let of = |mark| {
        let (evaluation, index, seen) = (id.evaluation, id.index, order.seen);
        ScriptOrder { evaluation, index, seen, mark }
    };
    let notice = |value: i32, about: u32| ScriptOrder { seen: value.cast_unsigned(), ..of(about) };
    match order.placed.order {
        Order::Send { value, .. } => {
            machine.order_task(now, at, TaskAction::Send, notice(value, 0))
        }
        Order::Notice { error, about: Entity { kind, id }, .. } => {
            let about = u32::from_le_bytes([id, kind.code(), 0, 0]);
            machine.order_task(now, at, TaskAction::Warn, notice(error, about))
        }
        Order::Task { verb, mark, .. } => machine.order_task(now, at, action_of(verb), of(mark)),
        Order::Answer { mark, .. } => machine.order_task(now, at, TaskAction::Answer, of(mark)),
        Order::Clear { mark, .. } => machine.order_task(now, at, TaskAction::Clear, of(mark)),
        Order::Builtin { mark, .. } => machine.order_builtin(now, at, of(mark)),
        Order::Node { .. } | Order::Log { .. } | Order::Call { .. } => Err(Reject::NoSuchTask),
    }
}

/// Has `machine` carry out what is ordered about a node, as an operator's order is (RL-6).
///
/// # Errors
/// [`Reject`], as of the operator's order.
pub fn order_node<const NODES: usize, const TASKS: usize>(
    machine: &mut Component<NODES, TASKS>,
    node: Rank,
    verb: Verb,
    now: Instant,
) -> Result<(), Reject> {
    match verb {
        Verb::Restart => machine.restart(now, node),
        Verb::Stop | Verb::Isolate => machine.isolate_by_script(now, node),
        Verb::Start | Verb::Release => machine.release(now, node),
    }
}

/// What `verb` is for the node of a task.
#[must_use]
pub const fn action_of(verb: Verb) -> TaskAction {
    match verb {
        Verb::Restart => TaskAction::Restart,
        Verb::Start => TaskAction::Start,
        Verb::Stop => TaskAction::Stop,
        Verb::Isolate => TaskAction::Isolate,
        Verb::Release => TaskAction::Release,
    }
}

//! What actions order.

use super::{Rint, Run, Stop};
use crate::recovery::limits::{ARGS_MAX, ORDERS_MAX};
use crate::recovery::mutants::PICTURE_IS_LIVE;
use crate::recovery::{Entity, IdSet, Instruction, Kind, Order, Placed, Program, Target, Verb};

impl<const NODES: usize, const TASKS: usize> Rint<NODES, TASKS> {
    pub(super) fn act(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        next: Instruction,
    ) -> Result<(), Stop> {
        match next {
            Instruction::Act { verb, target } => self.change(program, run, verb, target),
            Instruction::ActWarn(target) => {
                let Some(about) = run.about else { return Ok(()) };
                self.notify(program, run, target, 0, about)
            }
            Instruction::Warn(target) => {
                for to in self.tasks_at(program, target).iter() {
                    let about = Entity { kind: Kind::Task, id: to };
                    self.give(run, Order::Notice { to, error: 0, about })?;
                }
                Ok(())
            }
            Instruction::WarnOf(target) => {
                let about = Entity::from_number(self.pop()?).ok_or(Stop::Broken)?;
                let error = self.pop()?;
                self.notify(program, run, target, error, about)
            }
            Instruction::Send(target) => {
                let value = self.pop()?;
                let tasks = self.tasks_at(program, target);
                tasks.iter().try_for_each(|to| self.give(run, Order::Send { to, value }))
            }
            Instruction::Purge(target) => self.answer(program, run, target, u32::MAX),
            Instruction::PurgeCount(target) => {
                let count = u32::try_from(self.pop()?).unwrap_or(0);
                self.answer(program, run, target, count)
            }
            Instruction::Clear(target) => {
                for task in self.tasks_at(program, target).iter() {
                    let mark = self.picture.tasks[usize::from(task)].errors;
                    self.give(run, Order::Clear { task, mark })?;
                    self.answered.insert(task);
                }
                Ok(())
            }
            Instruction::Call { name, args: count } => {
                let args = self.pop_args(count)?;
                self.give(run, Order::Call { name, args, count })
            }
            Instruction::Log { text, values: count } => {
                let values = self.pop_args(count)?;
                self.give(run, Order::Log { text, values, count })
            }
            _ => Err(Stop::Broken),
        }
    }

    fn pop_args(&mut self, count: u8) -> Result<[i32; ARGS_MAX], Stop> {
        let mut args = [0; ARGS_MAX];
        let wanted = args.get_mut(..usize::from(count)).ok_or(Stop::Broken)?;
        for arg in wanted.iter_mut().rev() {
            *arg = self.pop()?;
        }
        Ok(args)
    }

    /// Gives `order`, unless the evaluation has given all that it may (RL-8).
    fn give(&mut self, run: &mut Run, order: Order) -> Result<(), Stop> {
        if usize::from(run.trace.orders) >= ORDERS_MAX {
            return Err(Stop::TooManyOrders);
        }
        let id = self.next_id();
        let placed = Placed { id, order, section: run.section, word: run.word - 1 };
        self.orders.push_back(placed).map_err(|_| Stop::TooManyOrders)?;
        run.trace.orders += 1;
        Ok(())
    }

    fn notify(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        target: Target,
        error: i32,
        about: Entity,
    ) -> Result<(), Stop> {
        let tasks = self.tasks_at(program, target);
        tasks.iter().try_for_each(|to| self.give(run, Order::Notice { to, error, about }))
    }

    /// Orders `verb` of all that `target` names; the first order of an entity stands (RL-4).
    fn change(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        verb: Verb,
        target: Target,
    ) -> Result<(), Stop> {
        let (kind, ids) = self.aim(program, target);
        run.about = ids.iter().next().map(|id| Entity { kind, id });
        match kind {
            Kind::Node => {
                ids.iter().try_for_each(|node| self.change_node(program, run, verb, node))
            }
            Kind::Task | Kind::Group => {
                let tasks = tasks_in(program, kind, &ids);
                tasks.iter().try_for_each(|task| self.change_task(run, verb, task))
            }
        }
    }

    fn change_task(&mut self, run: &mut Run, verb: Verb, task: u8) -> Result<(), Stop> {
        if self.ordered_tasks.contains(task) {
            run.trace.superseded = run.trace.superseded.saturating_add(1);
            return Ok(());
        }
        let mark = self.picture.tasks[usize::from(task)].errors;
        self.give(run, Order::Task { task, verb, mark })?;
        self.ordered_tasks.insert(task);
        self.answered.insert(task);
        if PICTURE_IS_LIVE.is_planted() {
            self.picture.tasks[usize::from(task)].answered = mark;
        }
        Ok(())
    }

    fn change_node(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        verb: Verb,
        node: u8,
    ) -> Result<(), Stop> {
        if self.ordered_nodes.contains(node) {
            run.trace.superseded = run.trace.superseded.saturating_add(1);
            return Ok(());
        }
        if node == self.picture.manager {
            run.trace.refused = run.trace.refused.saturating_add(1);
            return Ok(());
        }
        self.give(run, Order::Node { node, verb })?;
        self.ordered_nodes.insert(node);
        for task in program.tasks_of(node).iter() {
            let fact = &self.picture.tasks[usize::from(task)];
            let (is_faulty, mark) = (fact.is_faulty(), fact.errors);
            let is_answered = self.answered.contains(task);
            self.answered.insert(task);
            // Otherwise the error would have the node ordered again in the next evaluation. What
            // does not end the boot answers nothing, but leaves nothing to DEFAULT.
            let ends = matches!(verb, Verb::Restart | Verb::Stop | Verb::Isolate);
            if is_faulty && ends && !is_answered {
                self.give(run, Order::Answer { task, mark })?;
            }
        }
        Ok(())
    }

    /// Answers the `count` oldest errors of each task without an action.
    fn answer(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        target: Target,
        count: u32,
    ) -> Result<(), Stop> {
        for task in self.tasks_at(program, target).iter() {
            let fact = self.picture.tasks[usize::from(task)];
            let mark = fact.answered.saturating_add(count).min(fact.errors);
            if !fact.is_faulty() || mark == fact.answered {
                continue;
            }
            self.give(run, Order::Answer { task, mark })?;
            if mark == fact.errors {
                self.answered.insert(task);
            }
        }
        Ok(())
    }

    /// The tasks that `target` names, itself or through a group or a node.
    fn tasks_at(&self, program: &Program<'_>, target: Target) -> IdSet {
        let (kind, ids) = self.aim(program, target);
        tasks_in(program, kind, &ids)
    }
}

pub(super) fn tasks_in(program: &Program<'_>, kind: Kind, ids: &IdSet) -> IdSet {
    match kind {
        Kind::Task => *ids,
        Kind::Group => ids.iter().flat_map(|group| program.members(group).iter()).collect(),
        Kind::Node => ids.iter().flat_map(|node| program.tasks_of(node).iter()).collect(),
    }
}

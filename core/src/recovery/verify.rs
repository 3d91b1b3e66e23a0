//! The verifier: one forward pass, before a word is believed.
//!
//! ```text
//!   declarations ─▶ CODE ─▶ SECTION ─ guard ─ JF ┬─ statements ─ JMP ┐ ─▶ SECTION … ─▶ END
//!                                                └──────▶ next arm ──┴▶
//! ```
//!
//! Jumps lead forward, so when a word is reached all paths to it are known. For each place ahead
//! that a jump leads to, what holds on every path is kept: the sets that are written. Between
//! statements the stack is empty, and jumps lead to statements, so depths are equal at joins.
//!
//! What is accepted ends within as many steps as it has words, and cannot fail.

use heapless::Vec;

use super::limits::{
    ARGS_MAX, BEAT_US, GROUPS_MAX, JOINS_MAX, NODES_MAX, NVERSIONS_MAX, PAUSE_MS_MAX, SETS_MAX,
    STACK_MAX, VARIABLES, VERSIONS_MAX, WATCHDOGS_MAX,
};
use super::mutants::{BACKWARD_JUMP_ACCEPTED, JOIN_DEPTH_UNCHECKED, STALE_SET_ACCEPTED};
use super::program::DeclaredTask;
use super::{
    AlphaRule, Depth, Entity, Fact, FactName, IdSet, Instruction, Kind, Program, Rcode, Reason,
    Rejected, Role, Status, Subject, Target, Timeouts,
};
use crate::time::Duration;

/// The cluster that an image is verified for.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// How many nodes it has; none to take the image's own number.
    pub nodes: Option<u8>,
    /// Whether the timing of the cluster with these values keeps the rules of the DIR net (G-4).
    pub keeps_rules: fn(&Timeouts) -> bool,
}

/// Verifies `image` for a cluster.
///
/// # Errors
/// [`Rejected`], with the first word that breaks a rule.
pub fn verify<'a>(image: &'a [u8], expected: &Expected) -> Result<Program<'a>, Rejected> {
    let code = Rcode::new_checked(image)?;
    let header = *code.header();
    let at_head = |reason| Rejected { word: 0, reason };
    if header.nodes == 0 || usize::from(header.nodes) > NODES_MAX {
        return Err(at_head(Reason::Limit));
    }
    if expected.nodes.is_some_and(|nodes| nodes != header.nodes) {
        return Err(at_head(Reason::OtherCluster));
    }
    let mut declarations = Declarations {
        program: Program::new(code),
        watched: IdSet::EMPTY,
        watchdogs: IdSet::EMPTY,
        versions: [None; NVERSIONS_MAX],
        has_fallback: false,
        awaits_period: None,
    };
    let mut word = 0;
    loop {
        let refuse = |reason| Rejected { word, reason };
        match instruction(&code, word).map_err(refuse)? {
            Instruction::Code => break,
            declared => declarations.declare(declared).map_err(refuse)?,
        }
        word += 1;
    }
    let refuse = |reason| Rejected { word, reason };
    let mut program = declarations.finish(expected).map_err(refuse)?;
    program.entry = word + 1;
    Flow::new(&program).run()?;
    Ok(program)
}

/// The word at `index`; the last word must have been END if there is none.
fn instruction(code: &Rcode<'_>, index: u16) -> Result<Instruction, Reason> {
    let word = code.word(index).ok_or(Reason::End)?;
    Instruction::decode(word).ok_or(Reason::UnknownWord)
}

const fn require(holds: bool, reason: Reason) -> Result<(), Reason> {
    if holds { Ok(()) } else { Err(reason) }
}

#[derive(Clone, Copy, Debug, Default)]
struct Voting {
    has_algorithm: bool,
    properties: u8,
    versions: u8,
}

/// The part before CODE.
#[derive(Debug)]
struct Declarations<'a> {
    program: Program<'a>,
    watched: IdSet,
    watchdogs: IdSet,
    versions: [Option<Voting>; NVERSIONS_MAX],
    has_fallback: bool,
    /// The task whose alpha-count lacks its second word.
    awaits_period: Option<u8>,
}

impl<'a> Declarations<'a> {
    fn declare(&mut self, declared: Instruction) -> Result<(), Reason> {
        if let Some(awaited) = self.awaits_period.take() {
            return self.period(awaited, declared);
        }
        match declared {
            Instruction::Role { node, role } => {
                require(node < self.program.code.header().nodes, Reason::Limit)?;
                let slot = self.program.roles.get_mut(usize::from(node)).ok_or(Reason::Limit)?;
                require(slot.replace(role).is_none(), Reason::Twice)
            }
            Instruction::Fallback(fallback) => {
                require(!self.has_fallback, Reason::Twice)?;
                (self.has_fallback, self.program.fallback) = (true, fallback);
                Ok(())
            }
            Instruction::Timeout { name, us } => {
                require(us > 0, Reason::Limit)?;
                require(self.program.timeouts.set(name, us).is_none(), Reason::Twice)
            }
            Instruction::Task { task, node, index, name } => self.task(task, node, index, name),
            Instruction::Group { group, name } => {
                require(usize::from(group) < GROUPS_MAX, Reason::Limit)?;
                require(!self.program.group_ids.contains(group), Reason::Twice)?;
                self.program.code.text(name).ok_or(Reason::Text)?;
                self.program.group_ids.insert(group);
                Ok(())
            }
            Instruction::Member { group, task } => {
                require(self.program.group_ids.contains(group), Reason::Undeclared)?;
                self.known(task)?;
                let members = self.program.groups.get_mut(usize::from(group));
                let members = members.ok_or(Reason::Undeclared)?;
                require(!members.contains(task), Reason::Twice)?;
                members.insert(task);
                Ok(())
            }
            Instruction::Alpha { task, threshold, factor } => self.alpha(task, threshold, factor),
            Instruction::AlphaPeriod { .. } => Err(Reason::NoAlpha),
            Instruction::Watchdog { number, task, us } => self.watchdog(number, task, us),
            Instruction::Version { number, task, us } => self.version(number, task, us),
            Instruction::Voting { .. }
            | Instruction::Within { .. }
            | Instruction::OnSuccess { .. }
            | Instruction::OnError { .. } => self.property(declared),
            _ => Err(Reason::OutOfPlace),
        }
    }

    fn known(&self, task: u8) -> Result<(), Reason> {
        require(self.program.declared.contains(task), Reason::Undeclared)
    }

    fn task(&mut self, task: u8, node: u8, index: u8, name: u16) -> Result<(), Reason> {
        require(node < self.program.code.header().nodes, Reason::Limit)?;
        self.program.code.text(name).ok_or(Reason::Text)?;
        let place = Some((node, index));
        let mut others = self.program.declared.iter();
        let is_taken = others.any(|other| self.program.place_of(other) == place);
        require(!is_taken && !self.program.declared.contains(task), Reason::Twice)?;
        self.program.tasks[usize::from(task)] =
            Some(DeclaredTask { node, index, name, alpha: None });
        self.program.declared.insert(task);
        Ok(())
    }

    fn alpha(&mut self, task: u8, threshold: u16, factor: u16) -> Result<(), Reason> {
        require(threshold > 0 && factor <= AlphaRule::ONE, Reason::Limit)?;
        let slot = self.program.tasks[usize::from(task)].as_mut().ok_or(Reason::Undeclared)?;
        let rule = AlphaRule { threshold, factor, period: Duration(0) };
        require(slot.alpha.replace(rule).is_none(), Reason::Twice)?;
        self.awaits_period = Some(task);
        Ok(())
    }

    fn period(&mut self, awaited: u8, declared: Instruction) -> Result<(), Reason> {
        let Instruction::AlphaPeriod { task, ms } = declared else { return Err(Reason::NoAlpha) };
        require(task == awaited, Reason::NoAlpha)?;
        require(ms > 0 && ms <= PAUSE_MS_MAX, Reason::Limit)?;
        let slot = self.program.tasks[usize::from(task)].as_mut();
        if let Some(rule) = slot.and_then(|declared| declared.alpha.as_mut()) {
            rule.period = Duration::from_millis(u64::from(ms));
        }
        Ok(())
    }

    fn watchdog(&mut self, number: u8, task: u8, us: u32) -> Result<(), Reason> {
        self.known(task)?;
        require(usize::from(number) < WATCHDOGS_MAX && BEAT_US.contains(&us), Reason::Limit)?;
        let is_new = !self.watched.contains(task) && !self.watchdogs.contains(number);
        require(is_new, Reason::Twice)?;
        self.watched.insert(task);
        self.watchdogs.insert(number);
        Ok(())
    }

    fn voting(&mut self, number: u8) -> Result<&mut Option<Voting>, Reason> {
        self.versions.get_mut(usize::from(number)).ok_or(Reason::Limit)
    }

    fn version(&mut self, number: u8, task: u8, us: u32) -> Result<(), Reason> {
        self.known(task)?;
        require(us > 0, Reason::Limit)?;
        let voting = self.voting(number)?.get_or_insert_default();
        require(usize::from(voting.versions) < VERSIONS_MAX, Reason::Limit)?;
        voting.versions += 1;
        let header = self.program.code;
        // A task is one version of one N-version task: its ballot says no more than its number.
        let same = |index: &u16| {
            matches!(instruction(&header, *index),
                Ok(Instruction::Version { task: other, .. }) if other == task)
        };
        require((0..header.header().words).filter(same).count() == 1, Reason::Twice)
    }

    fn property(&mut self, declared: Instruction) -> Result<(), Reason> {
        let (number, bit, task) = match declared {
            Instruction::Voting { number, .. } => (number, 1, None),
            Instruction::Within { number, .. } => (number, 2, None),
            Instruction::OnSuccess { number, task } => (number, 4, Some(task)),
            Instruction::OnError { number, task } => (number, 8, Some(task)),
            _ => return Err(Reason::OutOfPlace),
        };
        task.map_or(Ok(()), |task| self.known(task))?;
        let voting = self.voting(number)?.get_or_insert_default();
        require(voting.properties & bit == 0, Reason::Twice)?;
        voting.properties |= bit;
        voting.has_algorithm |= bit == 1;
        Ok(())
    }

    fn finish(self, expected: &Expected) -> Result<Program<'a>, Reason> {
        let program = self.program;
        let header = *program.code.header();
        require(self.awaits_period.is_none(), Reason::NoAlpha)?;
        let split = program.roles.split_at_checked(usize::from(header.nodes));
        let (given, rest) = split.ok_or(Reason::Limit)?;
        let managers = given.iter().filter(|role| **role == Some(Role::Manager)).count();
        let all_given = given.iter().all(Option::is_some) && rest.iter().all(Option::is_none);
        require(managers == 1 && all_given, Reason::Roles)?;
        let votings = self.versions.iter().flatten();
        let is_whole = |voting: &Voting| voting.has_algorithm && voting.versions >= 2;
        require(votings.clone().all(is_whole), Reason::Versions)?;
        let filled = program.group_ids.iter().all(|group| !program.members(group).is_empty());
        let counted = [
            (usize::from(header.tasks), program.declared.len()),
            (usize::from(header.groups), program.group_ids.len()),
            (usize::from(header.watchdogs), self.watchdogs.len()),
            (usize::from(header.nversions), votings.count()),
        ];
        let agree = counted.iter().all(|(said, found)| said == found);
        require(filled && agree, Reason::Counts)?;
        require((expected.keeps_rules)(&program.timeouts), Reason::Timing)?;
        Ok(program)
    }
}

/// A place ahead, and the sets that every jump there leaves written.
#[derive(Clone, Copy, Debug)]
struct Join {
    to: u16,
    written: u32,
}

/// The part behind CODE.
#[derive(Debug)]
struct Flow<'p, 'a> {
    program: &'p Program<'a>,
    word: u16,
    depth: usize,
    /// The sets that are written on every path to this word; none if no path leads here.
    written: Option<u32>,
    /// What each set was kept of.
    scopes: [Option<Subject>; SETS_MAX],
    joins: Vec<Join, JOINS_MAX>,
    /// Where the section at the top level ends.
    section_end: Option<u16>,
    /// Where the list ends that a PAUSE cut.
    pause_end: Option<u16>,
    previous: Option<Instruction>,
}

impl<'p, 'a> Flow<'p, 'a> {
    fn new(program: &'p Program<'a>) -> Self {
        Self {
            program,
            word: program.entry,
            depth: 0,
            written: Some(0),
            scopes: [None; SETS_MAX],
            joins: Vec::new(),
            section_end: None,
            pause_end: None,
            previous: None,
        }
    }

    fn run(mut self) -> Result<(), Rejected> {
        loop {
            let refuse = |reason| Rejected { word: self.word, reason };
            let next = instruction(&self.program.code, self.word).map_err(refuse)?;
            let word = self.word;
            self.arrive(next).map_err(|reason| Rejected { word, reason })?;
            if next == Instruction::End {
                let is_last = word + 1 == self.program.code.header().words;
                return require(is_last, Reason::End).map_err(|reason| Rejected { word, reason });
            }
            self.pass(next).map_err(|reason| Rejected { word, reason })?;
            self.previous = Some(next);
            self.word += 1;
        }
    }

    /// What holds at this word, from the word before and from the jumps that lead here.
    fn arrive(&mut self, next: Instruction) -> Result<(), Reason> {
        if self.pause_end.take_if(|end| *end == self.word).is_some() {
            require(self.depth == 0, Reason::Statement)?;
            self.written = None;
        }
        if let Some(at) = self.joins.iter().position(|join| join.to == self.word) {
            let join = self.joins.swap_remove(at);
            let is_level = self.depth == 0 || JOIN_DEPTH_UNCHECKED.is_planted();
            require(is_level, Reason::JoinDepth)?;
            let is_inside = matches!(next, Instruction::ActWarn(_)) || self.pause_end.is_some();
            require(!is_inside, Reason::Jump)?;
            self.written = Some(self.written.map_or(join.written, |here| here & join.written));
        }
        require(self.written.is_some(), Reason::Unreachable)?;
        let begins = matches!(next, Instruction::Section { depth: Depth::Top, .. });
        if begins || next == Instruction::End {
            require(self.depth == 0, Reason::Statement)?;
            let is_end = self.section_end.is_none_or(|end| end == self.word);
            return require(is_end && self.joins.is_empty(), Reason::Section);
        }
        let is_inside = self.section_end.is_some_and(|end| self.word < end);
        require(is_inside, if is_declaration(next) { Reason::OutOfPlace } else { Reason::Section })
    }

    fn pass(&mut self, next: Instruction) -> Result<(), Reason> {
        self.check_behind_pause(next)?;
        match next {
            Instruction::Section { depth, end, .. } => self.section(depth, end),
            Instruction::Test { status, of, set } => self.test(status, of, set),
            Instruction::Push(_) => self.push(),
            Instruction::Load(fact) => self.load(fact),
            Instruction::Add
            | Instruction::Sub
            | Instruction::Mul
            | Instruction::Div
            | Instruction::Compare(_)
            | Instruction::And
            | Instruction::Or => self.replace(2),
            Instruction::Neg | Instruction::Not => self.replace(1),
            Instruction::Store(variable) => {
                require(usize::from(variable) < VARIABLES, Reason::Variable)?;
                self.statement(1)
            }
            Instruction::JumpIfFalse(to) => {
                self.statement(1)?;
                self.jump(to)
            }
            Instruction::Jump(to) => {
                self.statement(0)?;
                self.jump(to)?;
                self.written = None;
                Ok(())
            }
            Instruction::Act { verb, target } => {
                self.statement(0)?;
                let kind = self.target(target)?;
                require(verb.is_of(kind), Reason::WrongKind)
            }
            Instruction::ActWarn(target) => {
                let follows = matches!(self.previous, Some(Instruction::Act { .. }));
                require(follows, Reason::Statement)?;
                self.aimed(0, target)
            }
            Instruction::Warn(target) | Instruction::Purge(target) => self.aimed(0, target),
            Instruction::Send(target) | Instruction::PurgeCount(target) => self.aimed(1, target),
            Instruction::WarnOf(target) => self.warn_of(target),
            Instruction::Clear(target) => {
                self.statement(0)?;
                let kind = self.target(target)?;
                require(kind == Kind::Task, Reason::WrongKind)
            }
            Instruction::Call { name: text, args: count }
            | Instruction::Log { text, values: count } => {
                self.program.code.text(text).ok_or(Reason::Text)?;
                require(usize::from(count) <= ARGS_MAX, Reason::Limit)?;
                self.statement(usize::from(count))
            }
            Instruction::Pause { ms, end } => self.pause(ms, end),
            _ => Err(Reason::OutOfPlace),
        }
    }

    fn section(&mut self, depth: Depth, end: u16) -> Result<(), Reason> {
        self.statement(0)?;
        match depth {
            Depth::Top => {
                require(end > self.word, Reason::Section)?;
                self.section_end = Some(end);
                if !STALE_SET_ACCEPTED.is_planted() {
                    self.written = Some(0);
                    self.scopes = [None; SETS_MAX];
                }
                Ok(())
            }
            Depth::Nested => require(self.section_end == Some(end), Reason::Section),
        }
    }

    fn push(&mut self) -> Result<(), Reason> {
        self.depth += 1;
        require(self.depth <= STACK_MAX, Reason::Stack)
    }

    /// Pops `count` numbers and pushes one.
    fn replace(&mut self, count: usize) -> Result<(), Reason> {
        let left = self.depth.checked_sub(count);
        let left = if JOIN_DEPTH_UNCHECKED.is_planted() { left.or(Some(0)) } else { left };
        self.depth = left.ok_or(Reason::Stack)?;
        self.push()
    }

    /// A statement uses up `count` numbers, all that there are.
    fn statement(&mut self, count: usize) -> Result<(), Reason> {
        require(self.depth == count || JOIN_DEPTH_UNCHECKED.is_planted(), Reason::Statement)?;
        self.depth = self.depth.saturating_sub(count);
        Ok(())
    }

    fn aimed(&mut self, count: usize, target: Target) -> Result<(), Reason> {
        self.statement(count)?;
        self.target(target).map(|_| ())
    }

    fn warn_of(&mut self, target: Target) -> Result<(), Reason> {
        // No jump leads between the two words, for the stack is not empty there.
        let Some(Instruction::Push(number)) = self.previous else { return Err(Reason::Statement) };
        self.entity(Entity::from_number(number).ok_or(Reason::Undeclared)?)?;
        self.aimed(2, target)
    }

    fn jump(&mut self, to: u16) -> Result<(), Reason> {
        let is_inside = self.section_end.is_some_and(|end| to <= end);
        if to <= self.word && BACKWARD_JUMP_ACCEPTED.is_planted() {
            return Ok(());
        }
        require(to > self.word && is_inside, Reason::Jump)?;
        let written = self.written.unwrap_or(0);
        if let Some(join) = self.joins.iter_mut().find(|join| join.to == to) {
            join.written &= written;
            return Ok(());
        }
        self.joins.push(Join { to, written }).map_err(|_| Reason::Joins)
    }

    fn entity(&self, Entity { kind, id }: Entity) -> Result<(), Reason> {
        let is_declared = match kind {
            Kind::Task => self.program.declared.contains(id),
            Kind::Group => self.program.group_ids.contains(id),
            Kind::Node => id < self.program.code.header().nodes,
        };
        require(is_declared, Reason::Undeclared)
    }

    fn test(&mut self, status: Status, of: Subject, set: Option<u8>) -> Result<(), Reason> {
        let kind = match of {
            Subject::One(entity) => {
                self.entity(entity)?;
                entity.kind
            }
            Subject::Any(kind) => kind,
        };
        require(status.is_of(kind), Reason::WrongKind)?;
        if let (Status::Transient, Subject::One(Entity { kind: Kind::Task, id })) = (status, of) {
            require(self.program.alpha_of(id).is_some(), Reason::NoAlpha)?;
        }
        if let Some(set) = set {
            let scope = self.scopes.get_mut(usize::from(set)).ok_or(Reason::Limit)?;
            let is_new = scope.replace(of).is_none() || STALE_SET_ACCEPTED.is_planted();
            require(is_new, Reason::Set)?;
            self.written = self.written.map(|written| written | 1 << set);
        }
        self.push()
    }

    fn load(&mut self, Fact { name, of }: Fact) -> Result<(), Reason> {
        require(name.is_of(of.kind), Reason::WrongKind)?;
        if name == FactName::Variable {
            require(usize::from(of.id) < VARIABLES, Reason::Variable)?;
        } else {
            self.entity(of)?;
        }
        if name == FactName::Alpha {
            require(self.program.alpha_of(of.id).is_some(), Reason::NoAlpha)?;
        }
        self.push()
    }

    /// The kind of what `target` names.
    fn target(&self, target: Target) -> Result<Kind, Reason> {
        let (set, is_up) = match target {
            Target::One(entity) => return self.entity(entity).map(|()| entity.kind),
            Target::Set(set) | Target::Rest(set) => (set, false),
            Target::Groups(set) | Target::Nodes(set) => (set, true),
        };
        let scope = self.scopes.get(usize::from(set)).ok_or(Reason::Limit)?;
        let is_written = self.written.is_some_and(|written| written & 1 << set != 0);
        let scope = scope.filter(|_| is_written).ok_or(Reason::Set)?;
        let kind = kept_kind(scope);
        let is_alone = matches!(scope, Subject::One(Entity { kind: Kind::Task | Kind::Node, .. }));
        match target {
            Target::Rest(_) => require(!is_alone, Reason::Scope)?,
            Target::Groups(_) => require(kind == Kind::Task, Reason::Scope)?,
            Target::Nodes(_) => require(kind != Kind::Node, Reason::Scope)?,
            Target::One(_) | Target::Set(_) => {}
        }
        Ok(match target {
            Target::Groups(_) => Kind::Group,
            _ if is_up => Kind::Node,
            _ => kind,
        })
    }

    fn pause(&mut self, ms: u32, end: u16) -> Result<(), Reason> {
        self.statement(0)?;
        require(ms > 0 && ms <= PAUSE_MS_MAX, Reason::Limit)?;
        match self.pause_end {
            // The rest of a rest: both end with the list.
            Some(first) => require(first == end, Reason::Pause),
            None => {
                self.jump(end)?;
                self.pause_end = Some(end);
                self.written = Some(0);
                Ok(())
            }
        }
    }

    /// Behind a PAUSE the picture is another one, and the sets are gone.
    fn check_behind_pause(&self, next: Instruction) -> Result<(), Reason> {
        if self.pause_end.is_none() {
            return Ok(());
        }
        let needs_picture = match next {
            Instruction::Load(fact) => fact.name != FactName::Variable,
            Instruction::Section { .. }
            | Instruction::Test { .. }
            | Instruction::JumpIfFalse(_)
            | Instruction::Jump(_) => true,
            _ => false,
        };
        require(!needs_picture, Reason::Pause)
    }
}

/// The kind of what an atom keeps: of a group, those of its tasks that satisfy.
pub(super) const fn kept_kind(of: Subject) -> Kind {
    match of {
        Subject::One(Entity { kind: Kind::Task | Kind::Group, .. }) => Kind::Task,
        Subject::One(Entity { kind: Kind::Node, .. }) => Kind::Node,
        Subject::Any(kind) => kind,
    }
}

const fn is_declaration(word: Instruction) -> bool {
    word.encode().op <= super::Op::Code.code()
}

//! Scripts that are drawn, word by word, and a second reading of their guards.
//!
//! A guard has one or two atoms; the actions of a section are about what its atoms found, or about
//! one task.

use weft_core::recovery::{
    Algorithm, Depth, Entity, Fallback, Header, Instruction, Kind, Role, Status, Subject, Target,
    TaskFact, TaskState, Verb, Word, seal,
};

use super::{Facts, digest_of};
use crate::draws::Draws;

/// A script for one task on each node, and a second one, a spare, on node 0.
#[derive(Clone, Debug)]
pub(super) struct DrawnScript {
    pub(super) image: Vec<u8>,
    pub(super) digest: u64,
    nodes: u8,
    guards: Vec<DrawnGuard>,
}

/// What guards ask of a task or a node.
const STATUSES: &[(Status, Kind)] = &[
    (Status::Faulty, Kind::Task),
    (Status::Faulty, Kind::Task),
    (Status::Faulty, Kind::Node),
    (Status::Running, Kind::Task),
    (Status::Waiting, Kind::Task),
    (Status::Isolated, Kind::Task),
    (Status::Killed, Kind::Task),
    (Status::Restarted, Kind::Task),
    (Status::Transient, Kind::Task),
    (Status::Fired, Kind::Task),
    (Status::Present, Kind::Node),
    (Status::Killed, Kind::Node),
];

#[derive(Clone, Copy, Debug)]
struct DrawnAtom {
    status: Status,
    of: Subject,
}

/// The guard of a section.
#[derive(Clone, Debug)]
struct DrawnGuard {
    first: DrawnAtom,
    /// Whether it is under NOT.
    is_denied: bool,
    /// With it, or instead of it.
    second: Option<(bool, DrawnAtom)>,
}

/// The name of every task, behind its length.
const POOL: &[u8] = b"\x04task";
/// The threshold of every alpha-count, in 256ths.
const THRESHOLD: u16 = 512;

/// The image of `words` behind `header`, whose lengths are theirs.
pub(in super::super) fn assembled(header: Header, words: &[Instruction], pool: &[u8]) -> Vec<u8> {
    let (count, pool_len) = (words.len() as u16, pool.len() as u16);
    let mut image = Header { words: count, pool_len, ..header }.to_bytes().to_vec();
    words.iter().for_each(|word| image.extend::<[u8; Word::LEN]>(word.encode().to_bytes()));
    image.extend(pool);
    seal(&mut image);
    image
}

impl DrawnScript {
    /// A script of so many sections for `nodes` nodes; `source` tells it from others.
    pub(super) fn draw(
        draws: &mut Draws,
        nodes: u8,
        source: u64,
        is_voting: bool,
        sections: u16,
    ) -> Self {
        let tasks = nodes + 1;
        let (mut words, votings) = declarations(draws, nodes, is_voting);
        let mut guards = Vec::new();
        for number in 1..=sections {
            let guard = DrawnGuard::draw(draws, nodes);
            section(draws, &guard, (number, tasks), &mut words);
            guards.push(guard);
        }
        words.push(Instruction::End);
        let header = Header {
            tasks: tasks.into(),
            nodes,
            nversions: votings,
            watchdogs: 1,
            source,
            ..Header::default()
        };
        let image = assembled(header, &words, POOL);
        Self { digest: digest_of(&image), image, nodes, guards }
    }

    /// The sections that hold on `picture`, as read from what was drawn.
    pub(super) fn held(&self, picture: &Facts) -> Vec<u16> {
        let holds = |guard: &DrawnGuard| guard.holds(picture, self.nodes);
        let numbered = self.guards.iter().zip(1..);
        numbered.filter(|(guard, _)| holds(guard)).map(|(_, number)| number).collect()
    }
}

fn declarations(draws: &mut Draws, nodes: u8, is_voting: bool) -> (Vec<Instruction>, u8) {
    let role = |node| if node == 0 { Role::Manager } else { Role::Backup };
    let mut words: Vec<_> =
        (0..nodes).map(|node| Instruction::Role { node, role: role(node) }).collect();
    let fallback =
        draws.pick(&[Fallback::Restart, Fallback::Kill, Fallback::Nothing, Fallback::Builtin]);
    words.push(Instruction::Fallback(fallback));
    let task = |task, node, index| Instruction::Task { task, node, index, name: 0 };
    words.extend((0..nodes).map(|node| task(node, node, 0)));
    words.push(task(nodes, 0, 1));
    for task in 0..nodes {
        words.push(Instruction::Alpha { task, threshold: THRESHOLD, factor: 128 });
        words.push(Instruction::AlphaPeriod { task, ms: 2_000 });
    }
    words.push(Instruction::Watchdog { number: 1, task: nodes - 1, us: 300_000 });
    if is_voting {
        let number = 1;
        let algorithm = draws.pick(&[Algorithm::Plurality, Algorithm::SimpleMajority]);
        words.push(Instruction::Voting { number, algorithm });
        let version = |task| Instruction::Version { number, task, us: 200_000 };
        words.extend((0..nodes).map(version));
        words.push(Instruction::OnError { number, task: nodes });
    }
    words.push(Instruction::Code);
    (words, is_voting.into())
}

fn section(
    draws: &mut Draws,
    guard: &DrawnGuard,
    (number, tasks): (u16, u8),
    words: &mut Vec<Instruction>,
) {
    let begin = words.len();
    let mut body = guard.words();
    let jump = body.len();
    body.push(Instruction::End);
    for _ in 0..draws.between(1, 3) {
        body.push(guard.action(draws, tasks));
    }
    let end = (begin + 1 + body.len()) as u16;
    body[jump] = Instruction::JumpIfFalse(end);
    words.push(Instruction::Section { number, depth: Depth::Top, end });
    words.append(&mut body);
}

impl DrawnGuard {
    fn draw(draws: &mut Draws, nodes: u8) -> Self {
        let mut atom = || {
            let (status, kind) = draws.pick(STATUSES);
            let count = if kind == Kind::Node { nodes } else { nodes + 1 };
            // The last node's task has a watchdog and an alpha-count.
            let id = match status {
                Status::Transient | Status::Fired => nodes - 1,
                _ => draws.below(count.into()) as u8,
            };
            let one = Subject::One(Entity { kind, id });
            DrawnAtom { status, of: if draws.chance(2, 3) { Subject::Any(kind) } else { one } }
        };
        let (first, second) = (atom(), atom());
        let second = draws.chance(1, 3).then(|| (draws.chance(1, 2), second));
        Self { first, is_denied: draws.chance(1, 8), second }
    }

    fn words(&self) -> Vec<Instruction> {
        let test = |DrawnAtom { status, of }, set| Instruction::Test { status, of, set };
        let mut words = vec![test(self.first, (!self.is_denied).then_some(0))];
        words.extend(self.is_denied.then_some(Instruction::Not));
        if let Some((is_and, second)) = self.second {
            words.push(test(second, Some(1)));
            words.push(if is_and { Instruction::And } else { Instruction::Or });
        }
        words
    }

    /// An action of its section.
    fn action(&self, draws: &mut Draws, tasks: u8) -> Instruction {
        let one = Target::One(Entity { kind: Kind::Task, id: draws.below(tasks.into()) as u8 });
        let is_set = !self.is_denied && draws.chance(3, 4);
        let of_tasks = matches!(
            self.first.of,
            Subject::Any(Kind::Task) | Subject::One(Entity { kind: Kind::Task, .. })
        );
        let is_any = matches!(self.first.of, Subject::Any(_));
        let target = match is_set && of_tasks {
            true if is_any && draws.chance(1, 6) => Target::Rest(0),
            true => Target::Set(0),
            false => one,
        };
        let verb = draws.pick(&[
            Verb::Restart,
            Verb::Restart,
            Verb::Start,
            Verb::Stop,
            Verb::Isolate,
            Verb::Release,
        ]);
        match draws.below(8) {
            0 => Instruction::Purge(target),
            1 => Instruction::Clear(target),
            2 => Instruction::Warn(one),
            _ => Instruction::Act { verb, target },
        }
    }

    fn holds(&self, picture: &Facts, nodes: u8) -> bool {
        let first = self.first.holds(picture, nodes) != self.is_denied;
        match self.second {
            None => first,
            Some((true, second)) => first && second.holds(picture, nodes),
            Some((false, second)) => first || second.holds(picture, nodes),
        }
    }
}

impl DrawnAtom {
    fn holds(&self, picture: &Facts, nodes: u8) -> bool {
        let task = |id: u8| self.is_of_task(&picture.tasks[usize::from(id)], id < nodes);
        let node = |id: u8| self.is_of_node(picture, id, nodes);
        match self.of {
            Subject::Any(Kind::Node) => (0..nodes).any(node),
            Subject::Any(_) => (0..=nodes).any(task),
            Subject::One(Entity { kind: Kind::Node, id }) => node(id),
            Subject::One(Entity { id, .. }) => task(id),
        }
    }

    fn is_of_task(&self, fact: &TaskFact, has_alpha: bool) -> bool {
        match self.status {
            Status::Faulty => fact.is_faulty(),
            Status::Running => fact.state == TaskState::Running,
            Status::Waiting => fact.state == TaskState::Waiting,
            Status::Isolated => fact.state == TaskState::Isolated,
            Status::Killed => fact.state == TaskState::Killed,
            Status::Restarted => fact.restarts > 0,
            Status::Transient => has_alpha && fact.is_faulty() && fact.alpha < THRESHOLD,
            Status::Fired => fact.has_fired,
            _ => false,
        }
    }

    fn is_of_node(&self, picture: &Facts, id: u8, nodes: u8) -> bool {
        let fact = &picture.nodes[usize::from(id)];
        let faulty = |task: u8| picture.tasks[usize::from(task)].is_faulty();
        match self.status {
            Status::Faulty => faulty(id) || id == 0 && faulty(nodes),
            Status::Present => fact.is_member,
            Status::Killed => fact.is_removed,
            _ => false,
        }
    }
}

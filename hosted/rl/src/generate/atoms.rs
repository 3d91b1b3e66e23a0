//! Status atoms and the sets that actions name: `@k`, `~k`, `$k`.

use weft_core::recovery::{Entity, Kind, SETS_MAX, Status, Subject, Target};

use super::{Generator, kind_name};
use crate::code::DiagnosticCode as Code;
use crate::tree::{Action, Aim, Arm, At, EntityAt, EntityName, Guard, Section};

/// A status atom of a section.
pub(super) struct Atom {
    pub(super) of: Option<Subject>,
    is_negated: bool,
    /// The arm whose guard has it.
    arm: usize,
    /// The set that keeps it, once an action uses it.
    pub(super) set: Option<u8>,
}

/// Whether an atom stands under NOT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Negation {
    Even,
    Odd,
}

impl Generator<'_> {
    /// The atoms of a section in the order of its text, with a set for each that is used.
    pub(super) fn collect(&mut self, section: &Section) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for (number, arm) in section.arms.iter().enumerate() {
            if let Some(guard) = &arm.guard {
                self.atoms_of(&guard.it, number, Negation::Even, &mut atoms);
            }
        }
        for (number, Arm { actions, .. }) in section.arms.iter().enumerate() {
            let aims = actions.iter().flat_map(|action| aims_of(&action.it));
            for aim in aims {
                let Some(index) = used(&aim.it, &atoms, number) else { continue };
                let Some(atom) = atoms.get_mut(index) else { continue };
                if atom.set.is_none() {
                    atom.set = u8::try_from(self.sets).ok();
                    self.sets += 1;
                }
            }
        }
        if self.sets > SETS_MAX {
            let span = section.arms[0].guard.as_ref().map_or(0..0, |guard| guard.span.clone());
            let message = "the section uses more than 32 sets";
            self.refuse(Code::TooLarge, &span, message, "split it into two sections");
        }
        atoms
    }

    fn atoms_of(&mut self, guard: &Guard, arm: usize, negation: Negation, atoms: &mut Vec<Atom>) {
        match guard {
            Guard::Atom(status, entity) => {
                let of = self.subject(*status, entity);
                let is_negated = negation == Negation::Odd;
                atoms.push(Atom { of, is_negated, arm, set: None });
            }
            Guard::Not(inner) => self.atoms_of(inner, arm, Negation::Odd, atoms),
            Guard::And(left, right) | Guard::Or(left, right) => {
                self.atoms_of(left, arm, negation, atoms);
                self.atoms_of(right, arm, negation, atoms);
            }
            Guard::Compare(..) | Guard::IsManager(_) => {}
        }
    }

    /// What an atom asks of, if it may.
    fn subject(&mut self, status: Status, entity: &EntityAt) -> Option<Subject> {
        let kind = entity.it.kind;
        if !status.is_of(kind) {
            let what = kind_name(kind);
            let message = format!("no {what} can be {}", status.as_str());
            let help = "ask for another status, or another kind of entity";
            self.refuse(Code::StatusKind, &entity.span, message, help);
            return None;
        }
        let id = self.entity(entity)?;
        if status == Status::Transient {
            let counts = |task: u8| self.names.alphas.contains_key(&task);
            let has_some = match (kind, id) {
                (Kind::Task, Some(id)) => counts(id),
                (Kind::Group, Some(id)) => {
                    let members = self.names.groups.get(&id);
                    members.is_some_and(|(_, tasks)| tasks.iter().any(|task| counts(*task)))
                }
                _ => !self.names.alphas.is_empty(),
            };
            if !has_some {
                self.no_alpha(&entity.span);
                return None;
            }
        }
        Some(id.map_or(Subject::Any(kind), |id| Subject::One(Entity { kind, id })))
    }

    /// What an action is for, and its kind.
    pub(super) fn target(&mut self, aim: &At<Aim>, arm: usize) -> Option<(Target, Kind)> {
        if let Aim::One(EntityName { kind, number }) = &aim.it {
            let it = EntityName { kind: *kind, number: number.clone() };
            let id = self.entity(&At { it, span: aim.span.clone() })??;
            return Some((Target::One(Entity { kind: *kind, id }), *kind));
        }
        if self.is_paused {
            self.paused(&aim.span);
            return None;
        }
        let atoms = self.atoms.last()?;
        let visible = atoms.iter().filter(|atom| atom.arm <= arm).count();
        let Some(atom) = used(&aim.it, atoms, arm).and_then(|index| atoms.get(index)) else {
            let message = match visible {
                0 => "no status atom precedes this action".to_owned(),
                1 => "only one status atom precedes this action".to_owned(),
                _ => format!("only {visible} status atoms precede this action"),
            };
            let help = "count the atoms of the section's guards from 1, in the order of the text";
            self.refuse(Code::NoSet, &aim.span, message, help);
            return None;
        };
        let (of, set, is_negated) = (atom.of?, atom.set?, atom.is_negated);
        let kind = match of {
            Subject::One(Entity { kind: Kind::Group, .. }) => Kind::Task,
            Subject::One(Entity { kind, .. }) | Subject::Any(kind) => kind,
        };
        let is_alone = matches!(of, Subject::One(Entity { kind: Kind::Task | Kind::Node, .. }));
        let wrong = match &aim.it {
            Aim::Rest(_) if is_negated => Some((
                Code::Negated,
                "an atom under NOT keeps no set",
                "write the atom without NOT, and `@k` for what satisfies it",
            )),
            _ if is_negated => Some((
                Code::Negated,
                "an atom under NOT keeps no set",
                "write the atom without NOT, and `~k` for the rest of its wildcard",
            )),
            Aim::Rest(_) if is_alone => Some((
                Code::Complement,
                "the atom is about one entity, so nothing is left",
                "use a wildcard or a group in the guard",
            )),
            Aim::Nodes(_) if kind == Kind::Node => Some((
                Code::Above,
                "nothing is above a node",
                "write `@k` for the nodes themselves",
            )),
            Aim::Groups(_) if kind != Kind::Task => {
                Some((Code::Above, "only tasks have groups above them", "write `@k`"))
            }
            _ => None,
        };
        if let Some((code, message, help)) = wrong {
            self.refuse(code, &aim.span, message, help);
            return None;
        }
        Some(match aim.it {
            Aim::Rest(_) => (Target::Rest(set), kind),
            Aim::Groups(_) => (Target::Groups(set), Kind::Group),
            Aim::Nodes(_) => (Target::Nodes(set), Kind::Node),
            Aim::Set(_) | Aim::One(_) => (Target::Set(set), kind),
        })
    }
}

/// The atom that `aim` names, seen from an arm.
fn used(aim: &Aim, atoms: &[Atom], arm: usize) -> Option<usize> {
    let (Aim::Set(number) | Aim::Rest(number) | Aim::Groups(number) | Aim::Nodes(number)) = aim
    else {
        return None;
    };
    let visible = atoms.iter().filter(|atom| atom.arm <= arm).count();
    let number = number.map_or(visible, |number| number as usize);
    number.checked_sub(1).filter(|index| *index < visible)
}

/// The targets of an action, those of nested sections left out: they count their own atoms.
fn aims_of(action: &Action) -> Vec<&At<Aim>> {
    match action {
        Action::Change { aim, warn, .. } => [aim].into_iter().chain(warn).collect(),
        Action::Send { aim, .. }
        | Action::Warn(aim)
        | Action::WarnOf { aim, .. }
        | Action::Purge { aim, .. }
        | Action::Clear(aim) => vec![aim],
        Action::Let { .. }
        | Action::Log { .. }
        | Action::Call { .. }
        | Action::Pause { .. }
        | Action::Section(_) => Vec::new(),
    }
}

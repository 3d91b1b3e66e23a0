//! The code generator: statements and tables to an image, which the verifier then sees.

mod atoms;
mod sums;

use std::collections::HashMap;

use weft_core::recovery::{
    Depth, Entity, Expected, FactName, Header, Instruction, Kind, POOL_MAX, Role, Target,
    TimeoutName, Verb, WORDS_MAX, Word, seal, verify,
};

use sha2::{Digest, Sha256};

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::resolve::Names;
use crate::source::{Sources, Span};
use crate::tree::{Action, Aim, At, EntityAt, Guard, Section, Statement, Sum};
use atoms::Atom;

/// An image, or what is wrong.
pub(crate) struct Generated {
    pub(crate) image: Option<Vec<u8>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

struct Generator<'n> {
    names: &'n Names<'n>,
    sources: &'n Sources,
    words: Vec<(Instruction, u16)>,
    pool: Vec<u8>,
    texts: HashMap<String, u16>,
    wrong: Vec<Diagnostic>,
    /// The place of each word.
    places: Vec<Span>,
    /// The place at which the strings were too many.
    overfull: Option<Span>,
    line: u16,
    place: Span,
    sections: u16,
    sets: usize,
    /// The atoms of the sections around, innermost last.
    atoms: Vec<Vec<Atom>>,
    /// Whether a PAUSE stands before, in the list.
    is_paused: bool,
}

pub(crate) fn generate(
    statements: &[At<Statement>],
    names: &Names<'_>,
    sources: &Sources,
) -> Generated {
    let mut generator = Generator {
        names,
        sources,
        words: Vec::new(),
        pool: Vec::new(),
        texts: HashMap::new(),
        wrong: Vec::new(),
        places: Vec::new(),
        overfull: None,
        line: 0,
        place: 0..0,
        sections: 0,
        sets: 0,
        atoms: Vec::new(),
        is_paused: false,
    };
    generator.declarations();
    generator.emit(Instruction::Code);
    for statement in statements {
        match &statement.it {
            Statement::Section(section) => generator.top(section, &statement.span),
            Statement::Watchdog { actions, .. } => generator.top(actions, &statement.span),
            _ => {}
        }
    }
    generator.emit(Instruction::End);
    generator.finish()
}

impl Generator<'_> {
    fn emit(&mut self, instruction: Instruction) {
        self.words.push((instruction, self.line));
        self.places.push(self.place.clone());
    }

    /// The index of the next word.
    fn here(&self) -> u16 {
        u16::try_from(self.words.len()).unwrap_or(u16::MAX)
    }

    fn refuse(&mut self, code: Code, span: &Span, message: impl Into<String>, help: &str) {
        self.wrong.push(Diagnostic::new(code, span.clone(), message, help));
    }

    fn text(&mut self, text: &str) -> u16 {
        if let Some(offset) = self.texts.get(text) {
            return *offset;
        }
        let offset = u16::try_from(self.pool.len()).unwrap_or(u16::MAX);
        self.pool.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.pool.extend(text.as_bytes());
        if self.pool.len() > POOL_MAX {
            self.overfull.get_or_insert(self.place.clone());
        }
        self.texts.insert(text.to_owned(), offset);
        offset
    }

    fn declarations(&mut self) {
        let names = self.names;
        for (node, role) in (0..).zip(&names.roles) {
            self.emit(Instruction::Role { node, role: *role });
        }
        if let Some(fallback) = names.fallback {
            self.emit(Instruction::Fallback(fallback));
        }
        for name in TimeoutName::ALL {
            if let Some(us) = names.timeouts.us(*name) {
                let place = names.timeout_places.iter().find(|(of, _)| of == name);
                place.into_iter().for_each(|(_, span)| self.at(span));
                self.emit(Instruction::Timeout { name: *name, us });
            }
        }
        for (task, it) in &names.tasks {
            self.at(&it.span);
            let name = self.text(&it.name);
            let (node, index) = (it.node, it.index);
            self.emit(Instruction::Task { task: *task, node, index, name });
        }
        for (group, (name, tasks)) in &names.groups {
            let name = self.text(name);
            self.emit(Instruction::Group { group: *group, name });
            for task in tasks {
                self.emit(Instruction::Member { group: *group, task: *task });
            }
        }
        for (&task, &(threshold, factor, ms)) in &names.alphas {
            self.emit(Instruction::Alpha { task, threshold, factor });
            self.emit(Instruction::AlphaPeriod { task, ms });
        }
        for (&number, &(task, us)) in &names.watchdogs {
            self.emit(Instruction::Watchdog { number, task, us });
        }
        for (&number, voting) in &names.votings {
            self.emit(Instruction::Voting { number, algorithm: voting.algorithm });
            if let Some(distance) = voting.within {
                self.emit(Instruction::Within { number, distance });
            }
            if let Some(task) = voting.on_success {
                self.emit(Instruction::OnSuccess { number, task });
            }
            if let Some(task) = voting.on_error {
                self.emit(Instruction::OnError { number, task });
            }
            for &(task, us) in &voting.versions {
                self.emit(Instruction::Version { number, task, us });
            }
        }
    }

    /// What follows is of this place.
    fn at(&mut self, span: &Span) {
        self.line = u16::try_from(self.sources.line_column(span).0).unwrap_or(u16::MAX);
        self.place = span.clone();
    }

    fn top(&mut self, section: &Section, span: &Span) {
        self.sets = 0;
        let begin = self.words.len();
        self.at(span);
        self.section(section, Depth::Top);
        let here = self.here();
        for (word, _) in &mut self.words[begin..] {
            if let Instruction::Section { end, .. } = word {
                *end = here;
            }
        }
    }

    fn section(&mut self, section: &Section, depth: Depth) {
        self.sections += 1;
        self.emit(Instruction::Section { number: self.sections, depth, end: 0 });
        let atoms = self.collect(section);
        self.atoms.push(atoms);
        let (mut atom, mut leave) = (0, Vec::new());
        for (number, arm) in section.arms.iter().enumerate() {
            let mut skip = None;
            if let Some(guard) = &arm.guard {
                self.at(&guard.span);
                self.guard(&guard.it, &mut atom);
                skip = Some(self.words.len());
                self.emit(Instruction::JumpIfFalse(0));
            }
            self.list(&arm.actions, number);
            if number + 1 < section.arms.len() {
                leave.push(self.words.len());
                self.emit(Instruction::Jump(0));
            }
            if let Some(skip) = skip {
                self.words[skip].0 = Instruction::JumpIfFalse(self.here());
            }
        }
        for jump in leave {
            self.words[jump].0 = Instruction::Jump(self.here());
        }
        self.atoms.pop();
    }

    fn no_alpha(&mut self, span: &Span) {
        let message = "there is no alpha-count";
        let help = "declare it: `ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 1 S END`";
        self.refuse(Code::NoAlpha, span, message, help);
    }

    /// The number of an entity; the inner none is a wildcard.
    fn entity(&mut self, entity: &EntityAt) -> Option<Option<u8>> {
        match self.names.entity(entity) {
            Ok(id) => Some(id),
            Err(wrong) => {
                self.wrong.push(wrong);
                None
            }
        }
    }

    fn guard(&mut self, guard: &Guard, atom: &mut usize) {
        match guard {
            Guard::Atom(status, _) => {
                let known = self.atoms.last().and_then(|atoms| atoms.get(*atom));
                *atom += 1;
                let Some((of, set)) = known.and_then(|atom| Some((atom.of?, atom.set))) else {
                    return;
                };
                self.emit(Instruction::Test { status: *status, of, set });
            }
            Guard::Compare(comparison, left, right) => self.compare(*comparison, left, right),
            Guard::IsManager(node) => self.fact(FactName::IsManager, node, None),
            Guard::Not(inner) => {
                self.guard(inner, atom);
                self.emit(Instruction::Not);
            }
            Guard::And(left, right) => {
                self.guard(left, atom);
                self.guard(right, atom);
                self.emit(Instruction::And);
            }
            Guard::Or(left, right) => {
                self.guard(left, atom);
                self.guard(right, atom);
                self.emit(Instruction::Or);
            }
        }
    }

    fn everything(&self, kind: Kind) -> Vec<u8> {
        match kind {
            Kind::Task => self.names.tasks.keys().copied().collect(),
            Kind::Group => self.names.groups.keys().copied().collect(),
            Kind::Node => (0..self.names.nodes).collect(),
        }
    }

    fn paused(&mut self, span: &Span) {
        let message = "sets, facts and sections are not available after a PAUSE";
        let help = "name the entities after a PAUSE, or move this before it";
        self.refuse(Code::Paused, span, message, help);
    }

    fn list(&mut self, actions: &[At<Action>], arm: usize) {
        let around = std::mem::replace(&mut self.is_paused, false);
        let begin = self.words.len();
        for action in actions {
            self.at(&action.span);
            self.action(action, arm);
        }
        // The pauses of this list; those of nested ones have their end already.
        let list_end = self.here();
        for (word, _) in &mut self.words[begin..] {
            if let Instruction::Pause { end: end @ 0, .. } = word {
                *end = list_end;
            }
        }
        self.is_paused = around;
    }

    fn action(&mut self, action: &At<Action>, arm: usize) {
        match &action.it {
            Action::Change { verb, aim, warn } => self.change(*verb, aim, warn.as_ref(), arm),
            Action::Send { value, aim } => {
                self.sum(value, None);
                self.aimed(aim, arm, Instruction::Send);
            }
            Action::Warn(aim) => self.aimed(aim, arm, Instruction::Warn),
            Action::WarnOf { error, about, aim } => {
                self.sum_within(error, 0, i32::from(u16::MAX), "no error is of kind");
                let kind = about.it.kind;
                let Some(id) = self.entity(about) else { return };
                let Some(id) = id else {
                    let message = "a notice is about one entity";
                    self.refuse(Code::Wildcard, &about.span, message, "name it");
                    return;
                };
                self.emit(Instruction::Push(Entity { kind, id }.to_number()));
                self.aimed(aim, arm, Instruction::WarnOf);
            }
            Action::Purge { count: None, aim } => self.aimed(aim, arm, Instruction::Purge),
            Action::Purge { count: Some(count), aim } => {
                self.sum_within(count, 1, i32::MAX, "this removes no error:");
                self.aimed(aim, arm, Instruction::PurgeCount);
            }
            Action::Clear(aim) => {
                let Some((target, kind)) = self.target(aim, arm) else { return };
                if kind != Kind::Task {
                    let message = "CLEAR is for tasks";
                    self.refuse(
                        Code::VerbKind,
                        &aim.span,
                        message,
                        "name a task, or a set of them",
                    );
                }
                self.emit(Instruction::Clear(target));
            }
            Action::Let { variable, value } => {
                self.sum(value, None);
                self.emit(Instruction::Store(*variable));
            }
            Action::Log { text, values } => {
                values.iter().for_each(|value| self.sum(value, None));
                let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
                let text = self.text(&text.it);
                self.emit(Instruction::Log { text, values: count });
            }
            Action::Call { name, args } => self.call(name, args),
            Action::Pause { ms } => {
                self.emit(Instruction::Pause { ms: *ms, end: 0 });
                self.is_paused = true;
            }
            Action::Section(_) if self.is_paused => self.paused(&action.span),
            Action::Section(section) => self.section(section, Depth::Nested),
        }
    }

    fn call(&mut self, name: &At<String>, args: &[Sum]) {
        let cluster = self.names.cluster;
        if cluster.is_some_and(|cluster| !cluster.calls.contains(&name.it)) {
            let message = format!("the cluster file names no program `{}`", name.it);
            self.refuse(Code::ClusterCall, &name.span, message, "add it below [recovery.calls]");
        }
        args.iter().for_each(|arg| self.sum(arg, None));
        let count = u8::try_from(args.len()).unwrap_or(u8::MAX);
        let name = self.text(&name.it);
        self.emit(Instruction::Call { name, args: count });
    }

    fn change(&mut self, verb: Verb, aim: &At<Aim>, warn: Option<&At<Aim>>, arm: usize) {
        let Some((target, kind)) = self.target(aim, arm) else { return };
        // To stop a node is to isolate it.
        let verb = if verb == Verb::Stop && kind == Kind::Node { Verb::Isolate } else { verb };
        if !verb.is_of(kind) {
            let message = format!("{} is not for a {}", verb.as_str(), kind_name(kind));
            let help = "a node is restarted, isolated or released";
            self.refuse(Code::VerbKind, &aim.span, message, help);
            return;
        }
        if verb == Verb::Restart && kind == Kind::Node {
            let message = "RESTART of a node fences it everywhere and resets it";
            let help = "restart its tasks if that is enough; the manager's own node is refused";
            self.refuse(Code::LintRestartNode, &aim.span, message, help);
        } else if let Target::One(Entity { kind: Kind::Node, id }) = target
            && self.names.roles.get(usize::from(id)) == Some(&Role::Manager)
        {
            let message = format!("node {id} begins as the manager, which refuses this order");
            let help = "order it of another node: a manager does not judge its own";
            self.refuse(Code::LintOwnNode, &aim.span, message, help);
        }
        self.emit(Instruction::Act { verb, target });
        if let Some(warn) = warn {
            self.aimed(warn, arm, Instruction::ActWarn);
        }
    }

    fn aimed(&mut self, aim: &At<Aim>, arm: usize, make: fn(Target) -> Instruction) {
        if let Some((target, _)) = self.target(aim, arm) {
            self.emit(make(target));
        }
    }

    fn finish(mut self) -> Generated {
        if let Some(place) = self.places.get(WORDS_MAX).cloned() {
            let message = format!("the script has {} words, and may have 3000", self.words.len());
            self.refuse(
                Code::TooLarge,
                &place,
                message,
                "this is one too many: shorten the script",
            );
        } else if let Some(place) = self.overfull.take() {
            let len = self.pool.len();
            let message = format!("the script has {len} bytes of strings, and may have 2048");
            self.refuse(Code::TooLarge, &place, message, "this is one too many: shorten the texts");
        }
        if !self.wrong.iter().all(Diagnostic::is_warning) {
            return Generated { image: None, diagnostics: self.wrong };
        }
        let image = self.image();
        let expected = Expected { nodes: Some(self.names.nodes), keeps_rules: |_| true };
        if let Err(rejected) = verify(&image, &expected) {
            // The bounds that the verifier alone counts: the stack, and the jumps ahead.
            let message = format!("the translated script is refused: {rejected}");
            let place = self.places.get(usize::from(rejected.word)).cloned().unwrap_or(0..0);
            self.refuse(Code::TooLarge, &place, message, "split its sections, or its guards");
            return Generated { image: None, diagnostics: self.wrong };
        }
        Generated { image: Some(image), diagnostics: self.wrong }
    }

    fn image(&self) -> Vec<u8> {
        let mut digest = Sha256::new();
        self.sources.files().iter().for_each(|file| digest.update(file.text.as_bytes()));
        let digest: [u8; 32] = digest.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let byte = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        let header = Header {
            words: short(self.words.len()),
            tasks: short(self.names.tasks.len()),
            nodes: self.names.nodes,
            groups: byte(self.names.groups.len()),
            watchdogs: byte(self.names.watchdogs.len()),
            nversions: byte(self.names.votings.len()),
            pool_len: short(self.pool.len()),
            lines: short(self.words.len()),
            source: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        };
        let mut image = header.to_bytes().to_vec();
        image.reserve(self.words.len() * (Word::LEN + 2));
        self.words.iter().for_each(|(word, _)| image.extend(word.encode().to_bytes()));
        image.extend(&self.pool);
        self.words.iter().for_each(|(_, line)| image.extend(line.to_le_bytes()));
        seal(&mut image);
        image
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task",
        Kind::Group => "group",
        Kind::Node => "node",
    }
}

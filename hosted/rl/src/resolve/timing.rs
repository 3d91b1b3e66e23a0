//! The timing of a script, and the rules of the DIR net in the words of the script.

use weft_core::dirnet::{BrokenRule, Profile, Timing};
use weft_core::recovery::TimeoutName;
use weft_core::time::Duration;

use super::{Resolved, Resolver, wrong};
use crate::code::DiagnosticCode as Code;
use crate::dump::duration;
use crate::source::Span;
use crate::surroundings::with_timeouts;
use crate::tree::{At, Statement};

impl Resolver<'_> {
    pub(super) fn timeout(&mut self, name: TimeoutName, us: u64, span: &Span) -> Resolved {
        let Some(us) = u32::try_from(us).ok().filter(|us| *us > 0) else {
            let help = "write a time from 1 US to 4000 S";
            return Err(wrong(Code::Limit, span, "the time is 0, or too long", help));
        };
        let before = self.names.timeouts.set(name, us);
        self.names.timeout_places.push((name, span.clone()));
        let place = self.places.insert(words(name).to_owned(), span.clone());
        if let Some(place) = place.filter(|_| before != Some(us)) {
            let message = format!("two values for {}", words(name));
            let help = "let both agree, or remove one: they set one value";
            return Err(wrong(Code::ClusterTiming, span, message, help).beside(place, "the first"));
        }
        let set = self.names.cluster.and_then(|cluster| cluster.set.us(name));
        if let Some(set) = set.filter(|set| *set != us) {
            let message = format!("[dirnet.timing] sets `{}_us` to {set}", name.as_str());
            return Err(wrong(Code::ClusterTiming, span, message, "let both agree"));
        }
        Ok(())
    }

    /// The rules of the DIR net, for the values of the cluster with those of the script. Without a
    /// cluster they are those of the profile `lan`, as in a scenario.
    pub(super) fn timing(&mut self, statements: &[At<Statement>]) {
        let is_timeout = |at: &&At<Statement>| matches!(at.it, Statement::Timeout { .. });
        let Some(last) = statements.iter().rfind(is_timeout) else { return };
        if self.wrong.iter().any(|it| it.code == Code::ClusterTiming) {
            return;
        }
        let (of, base) = match self.names.cluster {
            Some(cluster) => ("the cluster", cluster.timing),
            None => ("the profile `lan`", Timing::LAN),
        };
        let timing = with_timeouts(base, &self.names.timeouts);
        if let Err(broken) = Profile::new(timing) {
            let (name, rule) = (broken.name(), rule(broken));
            let message = format!("the timing violates the DIR net's {name} rule: {rule}");
            let ms = |span: Duration| duration(span.as_micros());
            let elsewhere = match self.names.cluster {
                Some(_) => "",
                None => ", or name the cluster with --cluster",
            };
            let help = format!(
                "with {of}, MIA_SEND = {}, MIA_RECV = {}, IMALIVE_CLEAR = {}, IMALIVE_SET = {}, \
                 TEIF = {}, MID = {}, REQUEST_DB = {}, delay = {}, losses = {}: change what the \
                 rule names{elsewhere}",
                ms(timing.send),
                ms(timing.receive),
                ms(timing.clear),
                ms(timing.alarm),
                ms(timing.window),
                ms(timing.candidate),
                ms(timing.join),
                ms(timing.delay),
                timing.losses,
            );
            self.wrong.push(wrong(Code::ClusterTiming, &last.span, message, help));
        }
    }
}

/// The names that set a value.
const fn words(name: TimeoutName) -> &'static str {
    match name {
        TimeoutName::Send => "MIA_SEND and TAIA_SEND",
        TimeoutName::Receive => "MIA_RECV and TAIA_RECV",
        TimeoutName::Clear => "IMALIVE_CLEAR",
        TimeoutName::Alarm => "IMALIVE_SET",
        TimeoutName::Window => "TEIF",
        TimeoutName::Candidate => "MID",
        TimeoutName::Join => "REQUEST_DB and REPLY_DB",
    }
}

const fn rule(broken: BrokenRule) -> &'static str {
    match broken {
        BrokenRule::Zero => "every time must be longer than zero",
        BrokenRule::Alarm => "IMALIVE_CLEAR + delay < IMALIVE_SET",
        BrokenRule::Tolerance => "MIA_RECV >= (losses + 1) * MIA_SEND + delay",
        BrokenRule::Window => "MIA_RECV + TEIF >= MIA_SEND + 2 * IMALIVE_SET + delay",
        BrokenRule::Testimony => "TEIF >= 4 * delay",
        BrokenRule::Candidate => "MID >= (losses + 1) * MIA_SEND + 3 * delay",
        BrokenRule::Join => "REQUEST_DB >= 2 * delay",
    }
}

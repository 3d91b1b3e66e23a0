//! One row for each rule of the contract: whether it held, how often it was tried, what was seen.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The rules, and what each means for a protocol.
const RULES: [(&str, &str); 17] = [
    ("F-1", "a flag that is written after its data is never seen before it"),
    ("F-2", "each work is accounted for once; a buffer is free when its work has completed"),
    ("F-3", "nothing may rely on the order or the size in which bytes of one write arrive"),
    ("F-4", "a counter is touched by the fabric alone, by its owner too"),
    ("F-5", "a peer reaches what it was granted, and nothing else"),
    ("F-6", "work with a peer that has ended fails; it does not hang"),
    ("F-7", "a poster is never stopped by a slow peer"),
    ("F-8", "a loop may poll at any time"),
    ("F-9", "memory of a fenced peer's work may be judged: nothing comes after"),
    ("F-10", "bytes that were posted may be overwritten at once"),
    ("F-11", "an address from a peer cannot reach beyond its region"),
    ("F-12", "every wait for a completion ends"),
    ("F-13", "a peer that is reached need not run: only what it writes shows that"),
    ("F-14", "where it is promised, words appear at once, and the last one of a write last"),
    ("F-15", "work that ends while it is posted is answered at once and not again"),
    ("memory", "words and bytes of one place are the same"),
    ("checksum", "both ends agree on what is intact"),
];

/// The rule of a case or a probe: `f10_bytes_are_free` is of F-10.
fn rule_of(name: &str) -> &'static str {
    let word = name.split('_').next().unwrap_or(name);
    let numbered = word.strip_prefix('f').map(|number| format!("F-{number}"));
    let wanted = numbered.as_deref().unwrap_or(word);
    RULES.iter().find(|(rule, _)| *rule == wanted).map_or("F-2", |(rule, _)| rule)
}

#[derive(Debug, Default)]
struct TallyRow {
    tries: u64,
    broken: Vec<String>,
    seen: Vec<String>,
}

/// Rows that are being filled.
#[derive(Debug)]
pub(super) struct Tally {
    rows: BTreeMap<&'static str, TallyRow>,
    took: ProbeTimes,
}

/// How long posts, polls and works took.
#[derive(Debug, Default)]
pub(super) struct ProbeTimes {
    pub(super) posts: Vec<Duration>,
    pub(super) polls: Vec<Duration>,
    pub(super) works: Vec<Duration>,
}

/// The median, and the longest, which is that of a thread that was preempted, too.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let (median, longest) = (at(times.len() / 2), at(times.len().saturating_sub(1)));
    format!("median {median:.1?}, longest {longest:.1?}")
}

impl Tally {
    pub(super) fn new() -> Self {
        let rows = RULES.iter().map(|(rule, _)| (*rule, TallyRow::default())).collect();
        Self { rows, took: ProbeTimes::default() }
    }

    fn row(&mut self, name: &str) -> &mut TallyRow {
        self.rows.entry(rule_of(name)).or_default()
    }

    /// A case of the suite was tried. It may have found that another rule than its own is broken,
    /// which then comes first in what it said.
    pub(super) fn case(&mut self, name: &'static str, held: Result<(), String>) {
        self.row(name).tries += 1;
        if let Err(said) = held {
            let named = said.split([':', ',']).next().unwrap_or_default();
            let rule = RULES.iter().find(|(rule, _)| *rule == named);
            let rule = rule.map_or_else(|| rule_of(name), |(rule, _)| rule);
            self.rows.entry(rule).or_default().broken.push(format!("{name}: {said}"));
        }
    }

    /// A probe saw `seen` in `tries` tries.
    pub(super) fn seen(&mut self, name: &str, tries: u64, seen: String) {
        let row = self.row(name);
        row.tries += tries;
        row.seen.push(seen);
    }

    /// A probe saw what the rule excludes.
    pub(super) fn broken(&mut self, name: &str, seen: String) {
        self.row(name).broken.push(seen);
    }

    /// How long the works of a probe took.
    pub(super) fn took(&mut self, took: ProbeTimes) {
        self.took.posts.extend(took.posts);
        self.took.polls.extend(took.polls);
        self.took.works.extend(took.works);
    }

    pub(super) fn report(
        mut self,
        fabric: &'static str,
        devices: Vec<String>,
    ) -> ConformanceReport {
        let ProbeTimes { posts, polls, works } = std::mem::take(&mut self.took);
        for (name, what, times) in
            [("f7", "posts", posts), ("f8", "polls", polls), ("f12", "operations", works)]
        {
            let tries = times.len() as u64;
            self.seen(name, tries, format!("{tries} {what}: {}", spread(times)));
        }
        let rules = RULES.map(|(rule, means)| {
            let row = self.rows.remove(rule).unwrap_or_default();
            let held = row.broken.is_empty() && row.tries > 0;
            let mut seen = row.broken;
            // One of a kind is enough to know.
            seen.dedup();
            seen.extend(row.seen);
            if seen.is_empty() {
                seen.push("every case of the suite held".to_owned());
            }
            Rule { rule, held, tries: row.tries, seen: seen.join("; "), means }
        });
        let ok = rules.iter().all(|rule| rule.held);
        ConformanceReport { ok, fabric, devices, rules: rules.into() }
    }
}

/// What was found out about one rule.
#[derive(Debug, Serialize)]
pub(crate) struct Rule {
    /// Its number in the contract, or what else the suite holds.
    pub(crate) rule: &'static str,
    /// Whether nothing was seen that it excludes.
    pub(crate) held: bool,
    /// Cases and works.
    pub(crate) tries: u64,
    /// What was seen.
    pub(crate) seen: String,
    /// What a protocol may do with it.
    pub(crate) means: &'static str,
}

/// What was found out about a fabric.
#[derive(Debug, Serialize)]
pub(crate) struct ConformanceReport {
    /// Whether every rule held.
    pub(crate) ok: bool,
    fabric: &'static str,
    devices: Vec<String>,
    /// The rules in order.
    pub(crate) rules: Vec<Rule>,
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.devices.join(", ");
        let of = if devices.is_empty() { String::new() } else { format!(" of {devices}") };
        writeln!(f, "fabric {}{of}\n", self.fabric)?;
        for rule in &self.rules {
            let held = if rule.held { "holds" } else { "BROKEN" };
            writeln!(f, "{:<9} {held:<7} {:>8} tries   {}", rule.rule, rule.tries, rule.means)?;
            for seen in rule.seen.split("; ") {
                writeln!(f, "{:36}{seen}", "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_counts_for_the_rule_that_its_name_begins_with() {
        for (name, rule) in [
            ("f1_work_takes_effect_in_posting_order", "F-1"),
            ("f13_a_peer_that_never_polls_is_reached", "F-13"),
            ("memory_words_and_bytes_agree", "memory"),
            ("checksum_is_crc32c", "checksum"),
        ] {
            assert_eq!(rule_of(name), rule);
        }
    }

    #[test]
    fn a_rule_that_was_not_tried_does_not_hold() {
        let mut tally = Tally::new();
        tally.case("f1_x", Ok(()));
        tally.case("f2_x", Err("F-2: lost".to_owned()));
        let report = tally.report("shm", Vec::new());
        let held = |rule| report.rules.iter().find(|row| row.rule == rule).map(|row| row.held);
        assert_eq!((held("F-1"), held("F-2"), held("F-3")), (Some(true), Some(false), Some(false)));
        assert!(!report.ok);
    }
}

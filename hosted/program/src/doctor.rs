//! What this machine can do for a cluster, and what mends the rest.
//!
//! Each subject is a file of its own: a plain struct of facts, a `probe` that gathers them by
//! trying the thing itself (a kernel's version says little about what a container's filter
//! lets through), and an `advise` that judges facts and needs the machine no more.
//!
//! | subject | asks |
//! |---|---|
//! | kernel | do /proc, sealed segments, passed descriptors, process handles and futexes work? |
//! | limits | how many files may be open, how much memory be mapped, stacked and locked? |
//! | processor | how many may run at once, how fast is a checksum, which wait strategy fits? |
//! | memory | is there room for the segments? |
//! | place | can the control sockets be made, is anything left behind? |
//! | rdma | are library, device, port, address and rights there, and does the driver open it? |
//!
//! Non-goals: changing anything, and measuring, which is what `weft bench` is for.

mod control_group;
mod demand;
mod kernel;
mod limits;
mod memory;
mod place;
mod processor;
mod rdma;
mod render;

use serde::Serialize;

use demand::Demand;
use weft::cluster::Cluster;
use weft::explain::Code;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Good,
    /// A cluster works, but slower, or without a part.
    Warning,
    /// No cluster works.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// How to take it.
    pub verdict: Severity,
    /// What was found.
    pub found: String,
    /// Why it matters; empty if it is good.
    pub cause: String,
    /// What mends it; empty if it is good.
    pub cure: String,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            verdict: Severity::Good,
            found: found.into(),
            cause: String::new(),
            cure: String::new(),
        }
    }

    fn warning(subject: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Severity::Warning, ..Self::good(subject, found) }
    }

    fn missing(subject: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Severity::Missing, ..Self::good(subject, found) }
    }

    fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }

    fn cured_by(self, cure: impl Into<String>) -> Self {
        Self { cure: cure.into(), ..self }
    }
}

/// All that was looked at.
///
/// `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorReport {
    ok: bool,
    findings: Vec<Finding>,
}

impl DoctorReport {
    fn new(findings: Vec<Finding>) -> Self {
        let ok = findings.iter().all(|finding| finding.verdict < Severity::Missing);
        Self { ok, findings }
    }

    /// Whether a cluster works here: nothing is missing.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.ok
    }

    /// The findings, from the ground up.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// What makes an RDMA device, or what stands in for one, on a machine that has none.
#[must_use]
pub fn cure_of_no_rdma() -> String {
    rdma::cure_of_no_device()
}

/// What this machine lacks to run all nodes of `cluster`, with the code of an error that says so.
/// A cluster that is started all the same would have the kernel end processes, and not only its
/// own, or would say of a limit only that some call has failed.
#[must_use]
pub fn lack(cluster: &Cluster) -> Option<(Finding, Code)> {
    let group = control_group::ControlGroup::probe();
    let memory = memory::advise(&memory::Memory::probe(&group), &Demand::of(cluster));
    lack_of_node(cluster).or_else(|| missing([memory], Code::Memory))
}

/// What this process lacks to run one node of `cluster`.
#[must_use]
pub fn lack_of_node(cluster: &Cluster) -> Option<(Finding, Code)> {
    let limits = limits::advise(&limits::Limits::probe(), &Demand::of(cluster));
    let memory = memory::Memory::probe(&control_group::ControlGroup::probe());
    let memory = memory::advise(&memory, &Demand::of_node(cluster));
    missing([kernel::process_files()], Code::Permission)
        .or_else(|| missing(limits, Code::Limit))
        .or_else(|| missing([memory], Code::Memory))
}

fn missing<const N: usize>(findings: [Finding; N], code: Code) -> Option<(Finding, Code)> {
    let is_missing = |finding: &Finding| finding.verdict == Severity::Missing;
    findings.into_iter().find(is_missing).map(|finding| (finding, code))
}

/// Examines this machine for a cluster with default settings: four nodes.
#[must_use]
pub fn examine() -> DoctorReport {
    examine_for(&Cluster::default())
}

/// Looks at this machine with the needs of `cluster`, all of its nodes here.
#[must_use]
pub fn examine_for(cluster: &Cluster) -> DoctorReport {
    let demand = Demand::of(cluster);
    let group = control_group::ControlGroup::probe();
    let mut findings = kernel::advise(&kernel::Kernel::probe());
    findings.push(kernel::process_files());
    findings.extend(limits::advise(&limits::Limits::probe(), &demand));
    findings.extend(processor::advise(&processor::Processors::probe(&group), &demand));
    findings.push(memory::advise(&memory::Memory::probe(&group), &demand));
    findings.push(place::advise(&place::probe()));
    findings.extend(rdma::examine(cluster));
    DoctorReport::new(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_that_is_not_good_has_cause_and_cure() {
        let report = examine();
        assert!(report.findings().len() >= 10);
        for finding in report.findings() {
            let good = finding.verdict == Severity::Good;
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert_eq!(finding.cause.is_empty(), good, "{finding:?}");
            assert_eq!(finding.cure.is_empty(), good, "{finding:?}");
        }
    }

    #[test]
    fn only_what_is_missing_makes_a_report_bad() {
        let warned = vec![Finding::good("a", "b"), Finding::warning("c", "d")];
        assert!(DoctorReport::new(warned.clone()).ok());
        let missed = warned.into_iter().chain([Finding::missing("e", "f")]).collect();
        assert!(!DoctorReport::new(missed).ok());
    }

    #[test]
    fn json_has_the_promised_shape() {
        let finding = Finding::warning("s", "f").because("why").cured_by("how");
        let json = serde_json::to_string(&DoctorReport::new(vec![finding])).expect("plain data");
        assert_eq!(
            json,
            "{\"ok\":true,\"findings\":[{\"subject\":\"s\",\"verdict\":\"warning\",\
             \"found\":\"f\",\"cause\":\"why\",\"cure\":\"how\"}]}"
        );
    }
}

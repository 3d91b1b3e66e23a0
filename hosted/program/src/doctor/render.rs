//! A report for a terminal: one line per finding, and two more for each that is not good.
//!
//! No colours and no wrapping, so that it reads the same in a log. The columns
//! are for people and may change; scripts read the serialised form, whose keys are those of
//! `Finding`.

use std::fmt;

use super::{DoctorReport, Severity};

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
        for finding in &self.findings {
            let verdict = word(finding.verdict);
            writeln!(f, "{verdict:7}  {:width$}  {}", finding.subject, finding.found)?;
            if finding.verdict > Severity::Good {
                writeln!(f, "         cause: {}", finding.cause)?;
                writeln!(f, "         cure:  {}", finding.cure)?;
            }
        }
        Ok(())
    }
}

fn word(verdict: Severity) -> &'static str {
    match verdict {
        Severity::Good => "good",
        Severity::Warning => "warning",
        Severity::Missing => "missing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Finding;

    #[test]
    fn findings_align_and_explain_themselves() {
        let report = DoctorReport::new(vec![
            Finding::good("kernel", "6.1"),
            Finding::warning("rdma devices", "none").because("why").cured_by("how"),
        ]);
        assert_eq!(
            report.to_string(),
            "\
good     kernel        6.1
warning  rdma devices  none
         cause: why
         cure:  how
"
        );
    }
}

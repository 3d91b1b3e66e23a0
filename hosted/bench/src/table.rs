//! A report for a terminal, in the columns of perftest.
//!
//! Medians stand where perftest has averages, and every figure has its ratio to the limit that
//! was measured beside it.

use std::fmt;

use super::report::{MailboxReport, RivalRound, RivalRow, Row, RowKind};

impl fmt::Display for MailboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        latencies(f, &self.rows)?;
        rates(f, &self.rows)?;
        rivals(f, &self.rivals)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

fn latencies(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        f,
        " #bytes #writers         #iterations t_min[usec] t_max[usec] t_typical[usec] \
         99%[usec] 99.9%[usec]  ratio"
    )?;
    for row in rows.iter().filter(|row| !is_rate(row.what)) {
        writeln!(
            f,
            "{:7} {:8} {:8} {:11} {:11.3} {:11.1} {:15.3} {:9.3} {:11.3} {:6.2}",
            row.bytes,
            row.writers,
            name(row.what),
            row.iterations,
            row.min_ns / 1e3,
            row.max_ns / 1e3,
            row.p50_ns / 1e3,
            row.p99_ns / 1e3,
            row.p999_ns / 1e3,
            row.ratio_to_limit,
        )?;
    }
    writeln!(f)
}

fn rates(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        f,
        " #bytes #writers         #iterations BW peak[MB/sec] BW median[MB/sec] \
         MsgRate[Mpps] t_typical[usec]  ratio"
    )?;
    for row in rows.iter().filter(|row| is_rate(row.what)) {
        let bandwidth = |ns: f64| row.bytes as f64 * 1e3 / ns;
        writeln!(
            f,
            "{:7} {:8} {:8} {:11} {:15.1} {:17.1} {:13.3} {:15.4} {:6.2}",
            row.bytes,
            row.writers,
            name(row.what),
            row.iterations,
            bandwidth(row.min_ns),
            bandwidth(1e9 / row.per_second),
            row.per_second / 1e6,
            row.p50_ns / 1e3,
            row.ratio_to_limit,
        )?;
    }
    writeln!(f)
}

const fn is_rate(what: RowKind) -> bool {
    matches!(what, RowKind::Memcpy | RowKind::Rate)
}

fn rivals(f: &mut fmt::Formatter<'_>, rivals: &[RivalRow]) -> fmt::Result {
    for RivalRow { what, bytes, ratio, rounds } in rivals {
        let what = name(*what);
        writeln!(f, "{bytes} bytes one way, mailbox beside {what}: {ratio:.2} x")?;
        for RivalRound { near, line_ns, weft_ns, rival_ns } in rounds {
            let mode = if *near { "near" } else { "far" };
            writeln!(
                f,
                "   {mode:4}  line {line_ns:5.0} ns   mailbox {weft_ns:5.0} ns   {what} \
                 {rival_ns:5.0} ns   {:5.2} x",
                weft_ns / rival_ns
            )?;
        }
    }
    Ok(())
}

const fn name(what: RowKind) -> &'static str {
    match what {
        RowKind::Exchange => "exchange",
        RowKind::Latency => "latency",
        RowKind::Memcpy => "memcpy",
        RowKind::Rate => "rate",
        RowKind::UcxAm => "ucx_am",
        RowKind::UcxTag => "ucx_tag",
    }
}

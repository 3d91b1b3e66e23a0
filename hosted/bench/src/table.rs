//! A report for a terminal, in the columns of perftest.
//!
//! Medians stand where perftest has averages, and every figure has its ratio to the limit that
//! was measured beside it.

use std::fmt;

use super::report::{MailboxReport, Row, RowKind};

impl fmt::Display for MailboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        latencies(f, &self.rows)?;
        rates(f, &self.rows)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

fn latencies(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    writeln!(
        f,
        " #bytes #writers         #iterations t_min[usec] t_max[usec] t_typical[usec] \
         99%[usec] 99.9%[usec]  ratio"
    )?;
    for row in rows.iter().filter(|row| matches!(row.what, RowKind::Exchange | RowKind::Latency)) {
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
    for row in rows.iter().filter(|row| matches!(row.what, RowKind::Memcpy | RowKind::Rate)) {
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

const fn name(what: RowKind) -> &'static str {
    match what {
        RowKind::Exchange => "exchange",
        RowKind::Latency => "latency",
        RowKind::Memcpy => "memcpy",
        RowKind::Rate => "rate",
    }
}

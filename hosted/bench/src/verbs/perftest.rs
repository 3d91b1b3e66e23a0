//! perftest's programs as rivals: started, read, and gone again.
//!
//! ```text
//!   tool --ib-dev D --port P …               the server: waits for its client
//!   tool --ib-dev D --port P … 127.0.0.1     the client: prints the table
//! ```
//!
//! Each run has a free port, and each process the processor that its counterpart of ours has. The
//! client is not started before the server listens, since it does not try twice. Of the table the
//! column is found by its title, so that a release with other columns is an error and no figure.
//!
//! The tools count cycles, and find out at the end of each run how many a microsecond has. When a
//! stall of the host falls between their two looks at their clocks they say so (`Correlation
//! coefficient r^2: … < 0.9`) and print `0.00` or `inf`: such a run is not a measurement. It is
//! repeated, a bounded number of times, and the report says how often.

/// Why a rival has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RivalError {
    /// The tool is not installed.
    #[error("there is no {tool} to compare with")]
    Missing {
        /// Its name.
        tool: &'static str,
    },
    /// The tool ended with an error, or did not end.
    #[error("{tool} failed: {words}")]
    Failed {
        /// Its name.
        tool: &'static str,
        /// The last thing it said.
        words: String,
    },
    /// The tool's table lacks a column, or there is none.
    #[error("{tool} has printed no figure in a column {column:?}")]
    Unreadable {
        /// Its name.
        tool: &'static str,
        /// The column.
        column: &'static str,
    },
    /// The tool could not find out how long its cycles are, in any of its runs.
    #[error("{tool} could not measure its own clock in {runs} runs")]
    Astray {
        /// Its name.
        tool: &'static str,
        /// How many runs.
        runs: u32,
    },
}

impl RivalError {
    pub(super) const fn cure(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "install perftest (`apt-get install perftest`), or run it by `ci/rxe bench`, \
                 which does"
            }
            Self::Failed { .. } => {
                "run the tool by hand, once as a server and once with `127.0.0.1`, to see why"
            }
            Self::Unreadable { .. } => "use a release of perftest from 4.4 on",
            Self::Astray { .. } => "run the benchmark when less else runs on this host",
        }
    }
}

/// What a tool prints, on standard error, instead of the length of its cycles.
const ASTRAY: &str = "Correlation coefficient";

/// What the words of a tool that has ended are worth.
#[derive(Clone, Debug, PartialEq)]
enum Reading {
    /// The figures of the wanted columns.
    Figures([f64; 2]),
    /// Its clock was astray: whatever its table has is nothing.
    Astray,
    /// There is a table, without a figure in this column.
    Without(&'static str),
    /// There is no table.
    NoTable,
}

fn read(words: &str, columns: [&'static str; 2]) -> Reading {
    if words.contains(ASTRAY) {
        return Reading::Astray;
    }
    if !words.contains("#bytes") {
        return Reading::NoTable;
    }
    match columns.map(|column| figure(words, column).ok_or(column)) {
        [Ok(best), Ok(typical)] => Reading::Figures([best, typical]),
        [Err(column), _] | [_, Err(column)] => Reading::Without(column),
    }
}

/// The figure below the column that is titled `column`, in the table of one row.
fn figure(table: &str, column: &str) -> Option<f64> {
    let mut lines = table.lines().skip_while(|line| !line.trim_start().starts_with("#bytes"));
    let titles = lines.next()?;
    let index = titles_of(titles).iter().position(|title| title == column)?;
    let row = lines.find(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))?;
    let found: f64 = row.split_whitespace().nth(index)?.parse().ok()?;
    (found.is_finite() && found > 0.0).then_some(found)
}

/// The titles of a table's columns. A title may have words of its own, `BW average[MB/sec]`, and
/// ends with its unit or stands apart by more than one space.
fn titles_of(line: &str) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in line.split_whitespace() {
        match titles.last_mut() {
            Some(title) if is_open => {
                title.push(' ');
                title.push_str(word);
            }
            Some(_) | None => titles.push(word.to_owned()),
        }
        // `#bytes` and `#iterations` have no unit; of the others each ends with one.
        is_open = !(word.starts_with('#') || word.ends_with(']'));
    }
    titles
}

#[cfg(feature = "verbs")]
mod process;
#[cfg(feature = "verbs")]
pub(super) use process::{Measured, Tool, measure};

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: &str = "
---------------------------------------------------------------------------------------
                    RDMA_Write Latency Test
 Dual-port       : OFF\t\tDevice         : rxe0
 remote address: LID 0000 QPN 0x0013 PSN 0xa1b2c3 RKey 0x00081a VAddr 0x00aaaae0
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 8       1000          20.31          4012.40      22.95    \t       26.12       \t80.20  \
\t\t41.02   \t\t4012.40
---------------------------------------------------------------------------------------
";

    const BANDWIDTH: &str = "
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      200              131.21             129.10 \t\t   0.002066
";

    #[test]
    fn columns_are_found_by_their_titles() {
        assert_eq!(figure(LATENCY, "t_min[usec]"), Some(20.31));
        assert_eq!(figure(LATENCY, "t_typical[usec]"), Some(22.95));
        assert_eq!(figure(LATENCY, "99.9% percentile[usec]"), Some(4012.40));
        assert_eq!(figure(BANDWIDTH, "BW average[MB/sec]"), Some(129.10));
    }

    #[test]
    fn what_is_no_table_has_no_figure() {
        assert_eq!(figure(BANDWIDTH, "t_typical[usec]"), None);
        assert_eq!(figure("Couldn't connect to 127.0.0.1:18515", "t_min[usec]"), None);
        let cut = BANDWIDTH.split("65536").next().unwrap();
        assert_eq!(figure(cut, "BW average[MB/sec]"), None);
        let nothing = BANDWIDTH.replace("129.10", "inf").replace("131.21", "0.00");
        assert_eq!(figure(&nothing, "BW average[MB/sec]"), None);
        assert_eq!(figure(&nothing, "BW peak[MB/sec]"), None);
    }

    #[test]
    fn a_run_whose_clock_was_astray_is_no_measurement() {
        const COLUMNS: [&str; 2] = ["BW peak[MB/sec]", "BW average[MB/sec]"];
        assert_eq!(read(BANDWIDTH, COLUMNS), Reading::Figures([131.21, 129.10]));
        let said = "Correlation coefficient r^2: 0.0149681 < 0.9\n";
        let zeros = BANDWIDTH.replace("129.10", "0.00").replace("131.21", "0.00");
        assert_eq!(read(&format!("{zeros}{said}"), COLUMNS), Reading::Astray);
        assert_eq!(read(&zeros, COLUMNS), Reading::Without(COLUMNS[0]));
        assert_eq!(read("Couldn't connect to 127.0.0.1:18515", COLUMNS), Reading::NoTable);
    }

    #[test]
    fn every_failure_has_a_cause_and_a_cure() {
        let tool = "ib_write_lat";
        for error in [
            RivalError::Missing { tool },
            RivalError::Failed { tool, words: "status 1".to_owned() },
            RivalError::Unreadable { tool, column: "t_min[usec]" },
            RivalError::Astray { tool, runs: 5 },
        ] {
            assert!(error.to_string().contains(tool), "{error}");
            assert!(!error.cure().is_empty());
        }
    }
}

//! UCX as a rival of the mailbox: `ucx_perftest`, between two processes over POSIX shared memory.
//!
//! ```text
//!   ucx_perftest -p P                                the server: waits for its client
//!   ucx_perftest -p P 127.0.0.1 -t TEST -s BYTES -f  the client: ends with one line of figures
//! ```
//!
//! The address carries their greeting alone; `UCX_TLS=posix,self` leaves nothing but shared memory
//! for the messages. The line begins with the number of iterations and the median of one way in
//! microseconds, `200000  0.225  …`. Once in a round trip the tool reads a counter of the
//! processor, before its next message; the benchmark of the mailbox reads the clock behind it.

use std::path::{Path, PathBuf};

use super::tool::{PairError, ToolProcess, find, free_port, last_line};
use weft::process::{ProcessError, Spawn};

const PROGRAM: &str = "ucx_perftest";
/// One way and back so often in a run: 20 to 60 ms.
const ITERATIONS: u32 = 100_000;

/// Why UCX has no figure.
#[derive(Debug, thiserror::Error)]
pub enum UcxError {
    /// The tool is not there.
    #[error("there is no {PROGRAM} in {}, its bin, or PATH", folder.display())]
    Missing {
        /// Where it was looked for first.
        folder: PathBuf,
    },
    /// The tool failed.
    #[error("{PROGRAM} failed: {words}")]
    Failed {
        /// The last thing it said.
        words: String,
    },
    /// A process of it could not be started or watched.
    #[error("{PROGRAM}: {0}")]
    Process(#[from] ProcessError),
}

impl UcxError {
    pub(super) const fn cure(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "give the folder of UCX 1.22 or later: `pip download --no-deps libucx-cu12`, then \
                 unpack it and make bin/ucx_perftest executable"
            }
            Self::Failed { .. } | Self::Process(_) => {
                "run it by hand, once as a server and once with `127.0.0.1 -t ucp_am_lat`"
            }
        }
    }
}

/// What of UCX carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UcxTest {
    /// An active message.
    ActiveMessage,
    /// A tagged message.
    Tag,
}

impl UcxTest {
    const fn name(self) -> &'static str {
        match self {
            Self::ActiveMessage => "ucp_am_lat",
            Self::Tag => "tag_lat",
        }
    }
}

/// An installation of UCX.
#[derive(Clone, Debug)]
pub struct Ucx {
    program: PathBuf,
    /// Its libraries, where they lie beside it and not where the system looks for them.
    libraries: Option<PathBuf>,
}

impl Ucx {
    /// The one in `folder`, or in PATH.
    ///
    /// # Errors
    /// [`UcxError::Missing`].
    pub fn find(folder: &Path) -> Result<Self, UcxError> {
        let missing = || UcxError::Missing { folder: folder.to_owned() };
        let program = find(PROGRAM, folder).ok_or_else(missing)?;
        let libraries = folder.join("lib");
        let libraries = libraries.is_dir().then_some(libraries);
        Ok(Self { program, libraries })
    }

    /// The median of one way of a message of so many bytes, in nanoseconds.
    pub(super) fn one_way_ns(&self, test: UcxTest, bytes: usize) -> Result<f64, UcxError> {
        self.run(test, bytes).map_err(|error| match error {
            PairError::Missing => UcxError::Missing { folder: self.program.clone() },
            PairError::Failed(words) => UcxError::Failed { words },
            PairError::Process(error) => error.into(),
        })
    }

    fn run(&self, test: UcxTest, bytes: usize) -> Result<f64, PairError> {
        let port = free_port()?;
        let begin = || self.program(port);
        let _server = ToolProcess::start(begin())?.await_listening(port)?;
        let client = begin().args(["127.0.0.1", "-t", test.name(), "-f"]).args([
            "-s",
            &bytes.to_string(),
            "-n",
            &ITERATIONS.to_string(),
        ]);
        let words = ToolProcess::start(client)?.finish()?;
        median_ns(&words).ok_or_else(|| PairError::Failed(last_line(&words)))
    }

    fn program(&self, port: u16) -> Spawn {
        let spawn = Spawn::program(&self.program)
            .args(["-p", &port.to_string()])
            .env("UCX_TLS", "posix,self")
            .env("UCX_LOG_LEVEL", "error");
        match &self.libraries {
            Some(folder) => {
                spawn.env("LD_LIBRARY_PATH", folder).env("UCX_MODULE_DIR", folder.join("ucx"))
            }
            None => spawn,
        }
    }
}

/// The median in the last line of figures.
fn median_ns(words: &str) -> Option<f64> {
    let figures = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let last = words.lines().rev().find(figures)?;
    let us: f64 = last.split_whitespace().nth(1)?.parse().ok()?;
    (us.is_finite() && us > 0.0).then_some(us * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_second_figure_of_the_last_line() {
        let words = "\
+--------------+--------------+----------+---------+---------+
|              |              |       overhead (usec)        |
+--------------+--------------+----------+---------+---------+
                      200000      0.225     2.347     7.364        3.25       1.04      426033
";
        assert_eq!(median_ns(words), Some(225.0));
        for words in ["", "UCX  ERROR no active messages", "200000 inf 1.0", "200000 0.000 1.0"] {
            assert_eq!(median_ns(words), None, "{words}");
        }
    }

    #[test]
    fn a_tool_that_does_not_listen_is_an_error_with_its_words() {
        let fails = Ucx { program: PathBuf::from("cat"), libraries: None };
        let error = fails.one_way_ns(UcxTest::Tag, 8).expect_err("cat knows no -p");
        assert!(matches!(&error, UcxError::Failed { words } if words.contains("cat")), "{error}");
        let missing = Ucx { program: PathBuf::from("/nowhere/x"), libraries: None };
        let error = missing.one_way_ns(UcxTest::Tag, 8).expect_err("it is not there");
        assert!(error.to_string().contains("/nowhere"), "{error}");
        assert!(error.cure().contains("libucx-cu12"), "{}", error.cure());
    }

    #[test]
    fn a_tool_is_found_in_its_folder_its_bin_and_path() {
        for (name, folder) in [("sh", "/bin"), ("bin/sh", "/"), ("sh", "/nowhere")] {
            assert!(find(name, Path::new(folder)).is_some(), "{name} of {folder}");
        }
        assert_eq!(find("no-such-tool", Path::new("/bin")), None);
    }
}

//! Which node to be, among which: by options, or by the variables of a launcher that knows ranks.
//!
//! ```text
//!   --rank given                      options and the cluster file; no variable is read
//!   otherwise  SLURM_PROCID           the rank
//!              SLURM_NTASKS           the number of nodes; that of the file must be the same
//!              SLURM_JOB_NODELIST     several hosts: node r is met at PORT + r on its host
//! ```
//!
//! Tasks are in blocks: the first host has the first ranks, and each has the same number.

use clap::Args;

use super::host_list::{HostListError, expand};
use weft::cluster::Cluster;
use weft::explain::{Code, Explain};

/// The choice of a rank.
#[derive(Debug, Args)]
pub(super) struct RankChoice {
    /// Which node to be; without it, that of the launcher (`SLURM_PROCID`).
    #[arg(long)]
    rank: Option<u16>,

    /// How many nodes, without a cluster file; otherwise `SLURM_NTASKS`, or one for each address.
    #[arg(short = 'n', long, value_name = "N")]
    nodes: Option<usize>,

    /// Where each node is met, in the order of ranks, instead of the file's: h0:7000,h1:7000.
    /// Otherwise, if `SLURM_JOB_NODELIST` has several hosts, at --port.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    addresses: Vec<String>,

    /// The port of node 0 on the hosts of `SLURM_JOB_NODELIST`; node 1 has the next one.
    #[arg(long, default_value_t = 24_700)]
    port: u16,
}

/// Why no rank follows.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RankError {
    /// Neither an option nor a variable says it.
    #[error("no rank is given, and {0} is not set")]
    Missing(&'static str),
    /// A variable is no number.
    #[error("{name} is {value:?}, which is no number of that range")]
    NotANumber { name: &'static str, value: String },
    /// The launcher contradicts itself.
    #[error("{PROCID} is {rank}, but {NTASKS} is {size}")]
    PastSize { rank: u16, size: usize },
    /// The launcher contradicts the file or an option.
    #[error("{NTASKS} is {size}, but {what} says {nodes} nodes")]
    OtherSize { size: usize, what: &'static str, nodes: usize },
    /// The list of hosts is malformed.
    #[error("{NODELIST} is {list:?}: {source}")]
    HostList { list: String, source: HostListError },
    /// Which task is on which host is not known.
    #[error("{size} tasks on {hosts} hosts are not the same number on each")]
    Uneven { size: usize, hosts: usize },
    /// The ports are exhausted.
    #[error("{size} nodes from port {port} on need ports above 65535")]
    Port { size: usize, port: u16 },
}

const PROCID: &str = "SLURM_PROCID";
const NTASKS: &str = "SLURM_NTASKS";
const NODELIST: &str = "SLURM_JOB_NODELIST";

impl Explain for RankError {
    fn code(&self) -> Code {
        Code::Usage
    }

    fn cure(&self) -> String {
        match self {
            Self::Missing(_) => "give `--rank N`, and `-n` or a cluster file; or start it below a \
                                 launcher, with `srun`"
                .to_owned(),
            Self::NotANumber { name, .. } => format!("unset {name}, or give `--rank N`"),
            Self::PastSize { .. } | Self::HostList { .. } => {
                "give `--rank N`: then no variable is read".to_owned()
            }
            Self::OtherSize { what, .. } => {
                format!("start as many tasks as {what} says, or leave it out")
            }
            Self::Uneven { .. } => {
                "start the same number on each (`--ntasks-per-node`), or give `--addresses`"
                    .to_owned()
            }
            Self::Port { .. } => "choose a lower `--port`".to_owned(),
        }
    }
}

impl RankChoice {
    /// The rank, and in `cluster` the number of nodes and their addresses. `has_file` says that
    /// `cluster` comes from a file; `variable` looks up a variable of the environment.
    pub(super) fn apply(
        &self,
        cluster: &mut Cluster,
        has_file: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<u16, RankError> {
        let said = match (self.nodes, has_file, self.addresses.len()) {
            (Some(nodes), ..) => Some(("-n", nodes)),
            (None, true, _) => Some(("the cluster file", cluster.nodes)),
            (None, false, 0) => None,
            (None, false, count) => Some(("--addresses", count)),
        };
        if !self.addresses.is_empty() {
            cluster.network.addresses.clone_from(&self.addresses);
        }
        if let Some(rank) = self.rank {
            cluster.nodes = said.ok_or(RankError::Missing(NTASKS))?.1;
            return Ok(rank);
        }
        let rank: u16 = number(PROCID, &variable)?;
        let size: usize = number(NTASKS, &variable)?;
        if usize::from(rank) >= size {
            return Err(RankError::PastSize { rank, size });
        }
        if let Some((what, nodes)) = said.filter(|(_, nodes)| *nodes != size) {
            return Err(RankError::OtherSize { size, what, nodes });
        }
        cluster.nodes = size;
        if let Some(list) = variable(NODELIST).filter(|_| cluster.network.addresses.is_empty()) {
            cluster.network.addresses = self.addresses_on(list, size)?;
        }
        Ok(rank)
    }

    /// An address for each of `size` nodes on these hosts; none on a single one.
    fn addresses_on(&self, list: String, size: usize) -> Result<Vec<String>, RankError> {
        let hosts = expand(&list).map_err(|source| RankError::HostList { list, source })?;
        if hosts.len() == 1 {
            return Ok(Vec::new());
        }
        if !size.is_multiple_of(hosts.len()) {
            return Err(RankError::Uneven { size, hosts: hosts.len() });
        }
        let on_each = size / hosts.len();
        let address = |rank: usize| {
            let port = u16::try_from(rank).ok().and_then(|rank| self.port.checked_add(rank));
            let port = port.ok_or(RankError::Port { size, port: self.port })?;
            Ok(format!("{}:{port}", hosts[rank / on_each]))
        };
        (0..size).map(address).collect()
    }
}

fn number<T: std::str::FromStr>(
    name: &'static str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<T, RankError> {
    let value = variable(name).ok_or(RankError::Missing(name))?;
    value.parse().map_err(|_| RankError::NotANumber { name, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: RankChoice =
        RankChoice { rank: None, nodes: None, addresses: Vec::new(), port: 24_700 };

    type Applied = Result<(u16, usize, Vec<String>), RankError>;

    fn apply(choice: &RankChoice, has_file: bool, variables: [&str; 3]) -> Applied {
        let mut cluster = Cluster::default();
        let lookup = |name: &str| {
            let at = [PROCID, NTASKS, NODELIST].into_iter().position(|it| it == name)?;
            Some(variables[at].to_owned()).filter(|value| value != "-")
        };
        let rank = choice.apply(&mut cluster, has_file, lookup)?;
        Ok((rank, cluster.nodes, cluster.network.addresses))
    }

    #[test]
    fn m10_a_launcher_gives_rank_size_and_addresses() {
        assert_eq!(apply(&NONE, false, ["1", "3", "-"]), Ok((1, 3, vec![])));
        assert_eq!(apply(&NONE, false, ["1", "3", "n7"]), Ok((1, 3, vec![])));
        let on_two = ["a1:24700", "a1:24701", "a2:24702", "a2:24703"].map(str::to_owned).to_vec();
        assert_eq!(apply(&NONE, true, ["3", "4", "a[1-2]"]), Ok((3, 4, on_two)));
    }

    #[test]
    fn m10_with_a_rank_no_variable_is_read() {
        let addresses = vec!["h0:1".to_owned(), "h1:1".to_owned()];
        let choice = RankChoice { rank: Some(1), addresses: addresses.clone(), ..NONE };
        assert_eq!(apply(&choice, false, ["x", "x", "["]), Ok((1, 2, addresses)));
        let choice = RankChoice { rank: Some(1), nodes: Some(5), ..NONE };
        assert_eq!(apply(&choice, true, ["-", "-", "-"]), Ok((1, 5, vec![])));
    }

    #[test]
    fn m10_variables_that_contradict_or_are_malformed_are_refused() {
        let malformed = |name, value: &str| RankError::NotANumber { name, value: value.to_owned() };
        for (has_file, variables, error) in [
            (false, ["-", "4", "-"], RankError::Missing(PROCID)),
            (false, ["0", "-", "-"], RankError::Missing(NTASKS)),
            (false, ["one", "4", "-"], malformed(PROCID, "one")),
            (false, ["-1", "4", "-"], malformed(PROCID, "-1")),
            (false, ["0", "", "-"], malformed(NTASKS, "")),
            (false, ["4", "4", "-"], RankError::PastSize { rank: 4, size: 4 }),
            (false, ["0", "0", "-"], RankError::PastSize { rank: 0, size: 0 }),
            (
                true,
                ["0", "3", "-"],
                RankError::OtherSize { size: 3, what: "the cluster file", nodes: 4 },
            ),
            (false, ["0", "3", "n[1-2]"], RankError::Uneven { size: 3, hosts: 2 }),
            (
                false,
                ["0", "2", "n["],
                RankError::HostList { list: "n[".to_owned(), source: HostListError::Bracket },
            ),
        ] {
            assert_eq!(apply(&NONE, has_file, variables), Err(error), "{variables:?}");
        }
        let choice = RankChoice { port: 65_535, ..NONE };
        let error = RankError::Port { size: 2, port: 65_535 };
        assert_eq!(apply(&choice, false, ["0", "2", "a,b"]), Err(error));
        let choice = RankChoice { rank: Some(0), ..NONE };
        assert_eq!(apply(&choice, false, ["-", "-", "-"]), Err(RankError::Missing(NTASKS)));
    }
}

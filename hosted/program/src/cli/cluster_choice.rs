//! Which running cluster a command speaks to, and which one it starts.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::fabric_choice::FabricChoice;
use super::failure::Failure;
use super::output::Output;
use super::rl;
use crate::metrics::check_ports;
use weft::client::{self, Client, ClientError, Watcher};
use weft::clock::Deadline;
use weft::cluster::{Cluster, ClusterName, Form};
use weft::explain::{Code, Explain};
use weft::node::control::{Fault, NodeStatus};
use weft::runtime_dir::{ClusterDir, FindError, RuntimeDir};

/// How often a command that waits for a node looks whether the cluster still runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The choice of a running cluster.
#[derive(Debug, Args)]
pub(super) struct ClusterChoice {
    /// The cluster's name.
    #[arg(long, default_value = "weft", value_name = "NAME")]
    name: String,

    /// How long to wait, in seconds, for a cluster that is just being started.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS", allow_negative_numbers = true)]
    patience: f64,
}

/// The choice of a cluster to start on this machine.
#[derive(Debug, Args)]
pub(super) struct NewCluster {
    /// The cluster file; without it, a cluster of default sizes. `weft up --template` prints one.
    cluster: Option<PathBuf>,

    /// How many nodes, instead of what the file says.
    #[arg(short = 'n', long, value_name = "N")]
    nodes: Option<usize>,

    /// The cluster's name, instead of what the file says.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Have each node sign its broadcasts, instead of what `neb.form` of the file says.
    #[arg(long)]
    signed: bool,

    #[command(flatten)]
    fabric: FabricChoice,
}

impl NewCluster {
    /// The cluster of the file and the flags, for `weft COMMAND`; not checked yet.
    pub(super) fn read(&self, command: &str, output: Output) -> Result<Cluster, Failure> {
        let mut cluster = match &self.cluster {
            Some(path) => Cluster::load(path).map_err(Failure::new)?,
            None => Cluster::default(),
        };
        if let Some(text) = &self.name {
            cluster.name = name(text)?;
        }
        if let Some(nodes) = self.nodes {
            cluster.nodes = nodes;
        }
        if self.signed {
            cluster.neb.form = Form::Signed;
        }
        if cluster.network.is_across_hosts() {
            let cause = format!(
                "[network] is for nodes on several hosts, and `weft {command}` runs all on one"
            );
            let cure = "start each with `weft node FILE --rank N` on its host, which runs the \
                        program of `[component]`, or take network.addresses and \
                        network.discovery out";
            return Err(Failure::of(Code::Usage, cause, cure));
        }
        rl::install(&mut cluster, self.cluster.as_deref(), output)?;
        Ok(cluster)
    }

    /// Applies the choice of the fabric, and checks the whole; all programs of the file are there.
    pub(super) fn check(&self, mut cluster: Cluster) -> Result<Cluster, Failure> {
        self.fabric.apply_to_all(&mut cluster)?;
        cluster.check().map_err(Failure::new)?;
        cluster.check_programs().map_err(Failure::new)?;
        check_ports(&cluster).map_err(Failure::new)?;
        Ok(cluster)
    }
}

/// A running cluster.
pub(super) struct Running {
    pub(super) dir: ClusterDir,
    pub(super) cluster: Cluster,
    patience: Deadline,
}

impl ClusterChoice {
    /// Finds the cluster.
    pub(super) fn find(&self) -> Result<Running, Failure> {
        let patience = Deadline::after(seconds("--patience", self.patience)?);
        let name = name(&self.name)?;
        let found = client::find(&name, patience.remaining());
        let (dir, cluster) = found.map_err(Failure::new)?;
        Ok(Running { dir, cluster, patience })
    }
}

impl ClusterChoice {
    /// Whether the cluster runs now.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let found = client::find(&name(&self.name)?, Duration::ZERO);
        found.map(drop).map_err(Failure::new)
    }

    /// Watches the cluster.
    pub(super) fn watch(&self) -> Result<Watcher, Failure> {
        let patience = seconds("--patience", self.patience)?;
        Watcher::start(&name(&self.name)?, patience).map_err(Failure::new)
    }

    /// Clears away the chosen cluster, which is dead; returns where it was.
    pub(super) fn clear(&self) -> Result<ClusterDir, Failure> {
        let runtime_dir = RuntimeDir::open().map_err(Failure::new)?;
        runtime_dir.clear(&name(&self.name)?).map_err(Failure::new)
    }
}

impl Running {
    /// The same cluster, started again from this file, which may be another one.
    pub(super) fn again(&self, cluster: Cluster) -> Self {
        Self { dir: self.dir.clone(), cluster, patience: self.patience }
    }

    /// Connects to one node, with what is left of the patience.
    pub(super) fn connect(&self, rank: u16) -> Result<Client, Failure> {
        self.try_connect(rank).map_err(Failure::new)
    }

    /// As [`Self::connect`], where the cause decides what follows.
    pub(super) fn try_connect(&self, rank: u16) -> Result<Client, ClientError> {
        Client::connect(&self.dir, &self.cluster, rank, self.patience.remaining())
    }

    /// Has one node suffer a fault that outlives its component, or its end.
    pub(super) fn order_lasting(&self, rank: u16, fault: &Fault) -> Result<(), Failure> {
        let ask = || {
            let patience = self.patience.remaining();
            Client::connect(&self.dir, &self.cluster, rank, patience)?.inject(fault.clone())
        };
        client::order_lasting(ask).map_err(Failure::new)
    }

    /// Connects to one node that is there.
    pub(super) fn connect_now(&self, rank: u16) -> Result<Client, ClientError> {
        Client::connect(&self.dir, &self.cluster, rank, Duration::ZERO)
    }

    /// Waits until node `rank` runs in `incarnation` or a later one, joined with `peers` peers. Its
    /// supervisor may come back as another process meanwhile.
    pub(super) fn await_return(
        &self,
        rank: u16,
        incarnation: u32,
        peers: usize,
        timeout: Duration,
    ) -> Result<NodeStatus, Failure> {
        let deadline = Deadline::after(timeout);
        loop {
            let left = deadline.remaining();
            // In short spans: a cluster whose programs are done ends, and the node never returns.
            let returned = Client::connect(&self.dir, &self.cluster, rank, left.min(LOOK_EVERY))
                .and_then(|mut client| client.await_joined(incarnation, peers, left));
            match returned {
                Err(ClientError::Unreachable { .. }) if !deadline.has_passed() => {
                    let found = client::find(&self.cluster.name, Duration::ZERO);
                    if let Err(error @ ClientError::Find(FindError::NotRunning { .. })) = found {
                        return Err(Failure::new(error));
                    }
                }
                Err(error @ ClientError::Unreachable { .. }) => {
                    return Err(not_back(rank, timeout, error));
                }
                returned => return returned.map_err(Failure::new),
            }
        }
    }

    /// The ranks of all nodes.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX)
    }
}

/// A node is not there again after that time.
fn not_back(rank: u16, waited: Duration, error: ClientError) -> Failure {
    if error.code() == Code::Timeout {
        return Failure::new(error);
    }
    let s = waited.as_secs_f64();
    let cause = format!("node {rank} has not come back within {s} s: its supervisor does not run");
    let cure = format!(
        "see with `weft status --why {rank}` what the others decided and what failed; `weft up` \
         starts a node again, elsewhere that is up to you; or raise `--wait`"
    );
    Failure::of(Code::NodeUnreachable, cause, cure)
}

/// A cluster's name as it was typed.
pub(super) fn name(text: &str) -> Result<ClusterName, Failure> {
    text.parse().map_err(Failure::new)
}

/// A number of seconds as it was typed.
pub(super) fn seconds(flag: &str, value: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        let cause = format!("{flag} is {value}, which is not a valid duration");
        Failure::of(Code::Usage, cause, "give a number of seconds, 0 or more")
    })
}

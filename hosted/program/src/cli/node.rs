//! `weft node`: one node of a cluster, by hand or below `weft up`.

use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use clap::Args;

use super::cluster_choice::name;
use super::fabric_choice::{FabricChoice, explained};
use super::failure::{Failure, lacking};
use super::output::Output;
use super::rank_choice::RankChoice;
use super::rl;
use super::run::choose_program;
use crate::doctor;
use crate::metrics::Sockets;
use crate::notify;
use weft::bootstrap::{Addresses, Key, KeyError, Meeting, Timing};
use weft::cluster::{Cluster, FabricKind, Network, is_address};
use weft::explain::Code;
use weft::node::{self, Launcher, NodeError, OperatorAlarm, ProgramRun, ResetNode};
use weft::packet::Socket;
use weft::process::adopt_inherited;
use weft::runtime_dir::{ClaimedDir, ClusterDir, RuntimeDir};

/// Arguments of `weft node`.
#[derive(Debug, Args)]
pub(super) struct NodeArguments {
    /// The cluster file, the same for every node; without it, a cluster of default sizes.
    cluster: Option<PathBuf>,

    #[command(flatten)]
    rank: RankChoice,

    /// The cluster's name, instead of what the file says.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    fabric: FabricChoice,

    /// Where the other nodes meet this one, with `network.discovery` in the file: HOST:PORT of this
    /// host, which is registered there.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,

    /// The key that all nodes share, instead of the file's; `weft key FILE` makes one.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Connect nodes on other hosts without a key: any process that reaches the address can join.
    #[arg(long, conflicts_with = "key")]
    insecure: bool,

    /// The descriptor of the cluster's lock, held by the `weft up` that started this.
    #[arg(long, hide = true)]
    lock_fd: Option<RawFd>,

    /// The descriptor at which the `weft up` that started this listens.
    #[arg(long, hide = true)]
    launch_fd: Option<RawFd>,

    /// The descriptors for the output of the program.
    #[arg(long, hide = true, requires = "stderr_fd")]
    stdout_fd: Option<RawFd>,
    #[arg(long, hide = true, requires = "stdout_fd")]
    stderr_fd: Option<RawFd>,

    /// The program has finished at an earlier boot of this node.
    #[arg(long, hide = true)]
    finished: bool,

    /// The program of this node and its arguments, the same for every node. The node ends with it:
    /// once the programs of all nodes have finished, or when its own has failed too often. That of
    /// the file's `[component]` leaves the node running until `weft down`.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

pub(super) fn run(arguments: &NodeArguments, output: Output) -> Result<(), Failure> {
    let mut cluster = match &arguments.cluster {
        Some(path) => Cluster::load(path).map_err(Failure::new)?,
        None => Cluster::default(),
    };
    if let Some(text) = &arguments.name {
        cluster.name = name(text)?;
    }
    let variable = |name: &str| std::env::var(name).ok();
    let has_file = arguments.cluster.is_some();
    let rank = arguments.rank.apply(&mut cluster, has_file, variable).map_err(Failure::new)?;
    arguments.fabric.apply_fabric(&mut cluster)?;
    let runtime_dir = RuntimeDir::open().map_err(Failure::new)?;
    let Some(number) = arguments.lock_fd else {
        rl::install(&mut cluster, arguments.cluster.as_deref(), output)?;
        choose_program(&mut cluster, arguments.program.clone())?;
        cluster.check().map_err(Failure::new)?;
        doctor::lack_of_node(&cluster).map_or(Ok(()), |lack| Err(lacking(lack)))?;
        cluster.hooks.check_programs().map_err(Failure::new)?;
        cluster.recovery.check_programs().map_err(Failure::new)?;
        let meeting = arguments.meeting(&cluster)?;
        let claimed = runtime_dir.join(&cluster.name).map_err(Failure::new)?;
        check_same(&cluster, claimed.dir())?;
        claimed.publish(&cluster).map_err(Failure::new)?;
        let metrics = Sockets::open(claimed.dir(), &cluster, rank).map_err(Failure::new)?;
        // This node's own: on another host the same device may have another name.
        arguments.fabric.apply_devices(&mut cluster)?;
        cluster.check().map_err(Failure::new)?;
        if cluster.fabric == FabricKind::Verbs {
            output.say(&format!("over verbs, {}", cluster.verbs.detection()));
        }
        output.say(&format!(
            "node {} of {}; `weft status --name {}` shows whom it has met",
            rank, cluster.nodes, cluster.name
        ));
        let dir = claimed.dir().clone();
        metrics.serve(dir.clone(), cluster.clone(), rank).map_err(Failure::new)?;
        notify::follow(dir, cluster.clone(), rank).map_err(Failure::new)?;
        let alarm = Box::new(OperatorAlarm);
        let program = match arguments.program.is_empty() {
            true => ProgramRun::default(),
            false => ProgramRun::default().ending_the_node(),
        };
        let ended = node::run_supervisor(&cluster, &claimed, rank, meeting, alarm, program);
        notify::stopping();
        claimed.remove().map_err(Failure::new)?;
        return ended.map_err(|error| match error {
            NodeError::Verbs(error) => explained(error),
            error => Failure::new(error),
        });
    };
    // Held until the process ends, so that the cluster counts as alive as long as this node.
    let lock = adopt_inherited(number).map_err(NodeError::from).map_err(Failure::new)?;
    let dir = runtime_dir.find(&cluster.name).map_err(Failure::new)?;
    let home = ClaimedDir::inherit(dir, lock).map_err(Failure::new)?;
    let metrics = Sockets::reopen(home.dir(), &cluster, rank);
    let served = metrics.and_then(|it| it.serve(home.dir().clone(), cluster.clone(), rank));
    if let Err(error) = served {
        // A node that comes back must not fail for that.
        tracing::error!(%error, "the node serves no metrics");
    }
    let reset = launcher(arguments.launch_fd).map_err(Failure::new)?;
    // All nodes of a `weft up` are on this host, and meet there.
    let program = arguments.program().map_err(Failure::new)?;
    node::run_supervisor(&cluster, &home, rank, None, reset, program).map_err(Failure::new)
}

/// Who brings nodes back: the launcher, if this node has one.
fn launcher(number: Option<RawFd>) -> Result<Box<dyn ResetNode>, NodeError> {
    let Some(number) = number else { return Ok(Box::new(OperatorAlarm)) };
    let socket = Socket::from_fd(adopt_inherited(number)?)?;
    Ok(Box::new(Launcher::new(socket)))
}

impl NodeArguments {
    /// How the program of this node is run.
    fn program(&self) -> Result<ProgramRun, NodeError> {
        let adopt = |number: RawFd| adopt_inherited(number);
        let output = match (self.stdout_fd, self.stderr_fd) {
            (Some(stdout), Some(stderr)) => Some([adopt(stdout)?, adopt(stderr)?]),
            _ => None,
        };
        Ok(ProgramRun::new(output, self.finished))
    }

    /// How this node meets the others: over the network when the file has addresses.
    fn meeting(&self, cluster: &Cluster) -> Result<Option<Meeting>, Failure> {
        let Network { key, .. } = &cluster.network;
        let Some(addresses) = self.addresses(&cluster.network)? else { return Ok(None) };
        let of_file = || Some(beside(self.cluster.as_deref()?, key.as_deref()?));
        let named = self.key.clone().or_else(of_file);
        let key = match named {
            _ if self.insecure => Key::INSECURE,
            Some(path) => Key::load(&path).map_err(Failure::new)?,
            None => return Err(Failure::new(KeyError::Missing)),
        };
        Ok(Some(Meeting { addresses, key, timing: Timing::default() }))
    }

    /// How the addresses of all nodes are known; none where all run on this host.
    fn addresses(&self, network: &Network) -> Result<Option<Addresses>, Failure> {
        let usage = |cause: &str, cure: &str| Failure::of(Code::Usage, cause.to_owned(), cure);
        let Some(endpoints) = network.etcd() else {
            if self.address.is_some() {
                return Err(usage(
                    "--address is for network.discovery, which the cluster file does not set",
                    "leave --address out, or set network.discovery = \"etcd://HOST:PORT\"",
                ));
            }
            let listed = || Addresses::Listed(network.addresses.clone());
            return Ok(network.is_across_hosts().then(listed));
        };
        match &self.address {
            Some(own) if is_address(own) => {
                Ok(Some(Addresses::Registered { endpoints, own: own.clone() }))
            }
            Some(own) => Err(usage(
                &format!("{own:?} is no address"),
                "give --address HOST:PORT, with a port of 1 to 65535",
            )),
            None => Err(usage(
                "network.discovery is set, and this node has no address to register",
                "give --address HOST:PORT, an address of this host that the others reach",
            )),
        }
    }
}

/// The file that `cluster_file` names `path`: relative paths begin at its folder.
pub(super) fn beside(cluster_file: &Path, path: &Path) -> PathBuf {
    cluster_file.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// Refuses a file that is not the one the other nodes were started with.
fn check_same(cluster: &Cluster, dir: &ClusterDir) -> Result<(), Failure> {
    match Cluster::load_kept(&dir.cluster_file()) {
        Ok(running) if running != *cluster => {
            let cause = format!("cluster {} runs with another cluster file", cluster.name);
            let cure = "start every node with the same cluster file";
            Err(Failure::of(Code::ClusterFile, cause, cure))
        }
        // The first node finds none.
        Ok(_) | Err(_) => Ok(()),
    }
}

//! The cluster file: what a cluster is called, how large it is and how it waits.
//!
//! One TOML file describes a cluster, and every node is started from the same one. Two keys
//! must be there, `name` and `nodes`; all others have defaults. [`Cluster::template`] is a
//! file with every key, its meaning, its limit and its default.
//!
//! ```toml
//! name = "weft"
//! nodes = 4
//! wait = "futex"
//!
//! [mailbox]
//! slots = 1024
//! ```
//!
//! A file is refused as a whole, at the first fault, with the line, the key, the value and
//! the limit it broke; an unknown key is refused with the one that was probably meant.
//!
//! Non-goals: changes while the cluster runs: members are fixed by configuration.

mod checksum;
mod dirnet;
mod error;
mod explained;
mod fabric_kind;
mod form;
mod group;
mod hooks;
mod key;
mod limit;
mod membership;
mod metrics;
mod name;
mod network;
mod program;
mod recovery;
mod rendezvous;
mod schema;
mod section;
mod task;
mod template;
mod timing;
mod topology;
mod verbs;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_core::checksum::fnv1a;
use weft_core::fabric::Layout;

pub use crate::words::WordError;
pub use checksum::Checksum;
pub use dirnet::{DirNet, Part, Profile};
pub use error::{CheckError, ClusterError, Place};
pub use explained::{ExplainedKey, UnknownKey};
pub use fabric_kind::FabricKind;
pub use form::Form;
pub use group::{Group, NamedGroup};
pub use hooks::{Hooks, Kind, MissingProgram};
pub use limit::{Limit, LimitError};
pub use membership::Membership;
pub use metrics::Metrics;
pub use name::{ClusterName, ClusterNameError};
pub use network::{Network, is_address};
pub use program::Program;
pub use recovery::{ForeignTask, Recovery};
pub use rendezvous::{Rendezvous, TensorPath};
pub use task::{Task, TaskName, TaskNameError};
pub use timing::{Overrides, TimingError};
pub use topology::Topology;
pub use verbs::{Detection, Verbs};

use crate::regular_file;
use crate::shm::Wait;
use section::FileSection;

/// A cluster as its file describes it.
///
/// The fields are public so that tests and benchmarks can build clusters that no file describes;
/// [`check`](Self::check) verifies that the numbers are within their limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// `name`: names the directory of the control sockets; one living cluster per name and
    /// user.
    pub name: ClusterName,
    /// `nodes`: how many members the cluster has, 2 to 32. Fixed while it runs.
    pub nodes: usize,
    /// `wait`: what a node does while there is nothing to do.
    pub wait: Wait,
    /// `fabric`: what carries messages.
    pub fabric: FabricKind,
    /// `[mailbox]`: the mailbox of every node.
    pub mailbox: Mailbox,
    /// `[lane]`: the lane from every node to every other.
    pub lane: Lane,
    /// `[neb]`: the non-equivocating broadcast.
    pub neb: Neb,
    /// `[group]` and `[[groups]]`: groups and their tree broadcast.
    pub group: Group,
    /// `[rendezvous]`: tensors by name.
    pub rendezvous: Rendezvous,
    /// `[restart]`: how often a component may be started again.
    pub restart: Restart,
    /// `[dirnet]`: detection, isolation, recovery.
    pub dirnet: DirNet,
    /// `[[task]]`: the programs that nodes keep under guard.
    pub tasks: Vec<Task>,
    /// `[component]`: the program that is the member at every node; `weft component` without it.
    pub component: Option<Program>,
    /// `[hooks]`: commands for events of the cluster.
    pub hooks: Hooks,
    /// `[recovery]`: the script that decides how the cluster recovers.
    pub recovery: Recovery,
    /// `[verbs]`: the RDMA devices.
    pub verbs: Verbs,
    /// `[network]`: how nodes on several hosts meet.
    pub network: Network,
    /// `[metrics]`: where counters are read.
    pub metrics: Metrics,
}

/// The mailbox of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// `slots`: slots in each of the two halves, so that between this many and twice as many
    /// messages wait before further puts are refused as full; a power of two from 16 to 4096.
    pub slots: usize,
    /// `message_len`: the longest message in bytes, 8 to 4000. Each slot takes this much memory
    /// at every node.
    pub message_len: usize,
    /// `stall_after_us`: after how many microseconds the owner questions a ticket whose message
    /// has not come; 100 to 10 000 000. Longer than the stalls of the machine, or slow writers
    /// lose their slot and must write again.
    pub stall_after_us: u64,
    /// `hold_s`: for how many seconds a client may hold a message that it took and has not
    /// released, 0 to 86 400; then the message goes back. 0 means as long as it is connected.
    pub hold_s: u64,
    /// `checksum`: whether messages carry checksums where the fabric does not need them.
    pub checksum: Checksum,
}

impl Mailbox {
    /// `stall_after_us` as a duration.
    #[must_use]
    pub const fn stall_after(&self) -> Duration {
        Duration::from_micros(self.stall_after_us)
    }

    /// `hold_s` as a duration, unless it is without limit.
    #[must_use]
    pub const fn hold(&self) -> Option<Duration> {
        if self.hold_s == 0 { None } else { Some(Duration::from_secs(self.hold_s)) }
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        let checksum = Checksum::default();
        Self { slots: 1024, message_len: 256, stall_after_us: 2000, hold_s: 30, checksum }
    }
}

/// The lane from every node to every other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// `slots`: messages under way from one node to one other; a power of two from 16 to 1024.
    pub slots: usize,
}

impl Default for Lane {
    fn default() -> Self {
        Self { slots: 64 }
    }
}

/// The non-equivocating broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neb {
    /// `slots`: messages of one node that others may not have taken yet; a power of two from 64
    /// to 4096. Every node keeps two rings of so many slots for every node.
    pub slots: usize,
    /// `message_len`: the longest message in bytes, 64 to 4096.
    pub message_len: usize,
    /// `form`: whether messages carry their origin's signature.
    pub form: Form,
    /// `membership`: whether a node that is removed is still waited for.
    pub membership: Membership,
}

impl Default for Neb {
    fn default() -> Self {
        let (form, membership) = (Form::default(), Membership::default());
        Self { slots: 256, message_len: 512, form, membership }
    }
}

/// Restart intensity: at most `max` restarts of one node's component within `within_s`
/// seconds; at the next one the node gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// `max`: restarts allowed within the window, 0 to 10 000; 0 means never again.
    pub max: usize,
    /// `within_s`: the window in seconds, 1 to 86 400.
    pub within_s: u64,
}

impl Restart {
    /// `within_s` as a duration.
    #[must_use]
    pub const fn within(&self) -> Duration {
        Duration::from_secs(self.within_s)
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { max: 200, within_s: 10 }
    }
}

/// Four nodes named `weft`.
impl Default for Cluster {
    fn default() -> Self {
        Self {
            name: ClusterName::default(),
            nodes: 4,
            wait: Wait::default(),
            mailbox: Mailbox::default(),
            fabric: FabricKind::default(),
            lane: Lane::default(),
            neb: Neb::default(),
            group: Group::default(),
            rendezvous: Rendezvous::default(),
            restart: Restart::default(),
            dirnet: DirNet::default(),
            tasks: Vec::new(),
            component: None,
            hooks: Hooks::default(),
            recovery: Recovery::default(),
            verbs: Verbs::default(),
            network: Network::default(),
            metrics: Metrics::default(),
        }
    }
}

impl Cluster {
    /// The largest number of nodes.
    pub const NODES_MAX: usize = 32;

    /// The longest cluster file in bytes; a file beyond is something else.
    pub const FILE_LEN_MAX: usize = 64 * 1024;

    /// A cluster with all defaults.
    ///
    /// # Errors
    /// The number of nodes is outside its limit.
    pub fn default_named(name: ClusterName, nodes: usize) -> Result<Self, LimitError> {
        key::NODES.limit.admit(key::NODES.path, nodes as u64)?;
        Ok(Self { name, nodes, ..Self::default() })
    }

    /// Whether its nodes hand tensors over to each other: all of them are on one host.
    #[must_use]
    pub const fn hands_over(&self) -> bool {
        !self.network.is_across_hosts()
            && matches!(self.rendezvous.path, TensorPath::HandOver)
            && self.rendezvous.pool_mib > 0
    }

    /// A number that differs, all but certainly, when two nodes would understand the memory of
    /// `layout` differently: by the layout, by the longest message, which its rounded slots may
    /// hide, by how a message is known to be whole, or by who takes part in broadcasts.
    #[must_use]
    pub fn layout_digest(&self, layout: &Layout) -> u64 {
        let lens = [self.mailbox.message_len, self.neb.message_len].map(|len| len as u64);
        let words = [layout.digest(), self.neb.membership as u64, self.mailbox.checksum as u64];
        fnv1a(words.into_iter().chain(lens))
    }

    /// The longest tensor in bytes that a client sends: one that fills the store.
    #[must_use]
    pub const fn longest_tensor(&self) -> u64 {
        if self.rendezvous.pool_mib == 0 { 0 } else { self.rendezvous.store_len() }
    }

    /// Reads a cluster file.
    ///
    /// # Errors
    /// The file cannot be read, is no regular file, is not text, is too long, or
    /// [`parse`](Self::parse) refuses it.
    pub fn load(path: &Path) -> Result<Self, ClusterError> {
        Self::read(path, regular_file::read_named(path))
    }

    /// Reads the copy of the cluster file that a running cluster keeps in its directory.
    ///
    /// # Errors
    /// As [`load`](Self::load); a symbolic link is refused, too.
    pub fn load_kept(path: &Path) -> Result<Self, ClusterError> {
        Self::read(path, regular_file::read(path))
    }

    fn read(path: &Path, opened: io::Result<File>) -> Result<Self, ClusterError> {
        let unreadable = |source| ClusterError::of_read(path, source);
        let mut bytes = Vec::new();
        opened
            .map_err(unreadable)?
            .take(Self::FILE_LEN_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() > Self::FILE_LEN_MAX {
            return Err(ClusterError::TooLong { origin: path.to_owned() });
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(ClusterError::Binary { origin: path.to_owned() });
        };
        Self::parse(&text, path)
    }

    /// Reads the text of a cluster file; `origin` only names it in errors.
    ///
    /// # Errors
    /// The text is not TOML, lacks `name` or `nodes`, has an unknown key, or a value of
    /// the wrong type or outside its limit.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ClusterError> {
        let table = toml::de::DeTable::parse(text)
            .map_err(|error| ClusterError::of_syntax(origin, text, &error))?;
        let top = FileSection::top(text, origin, table.get_ref())?;
        let mailbox = top.section(key::MAILBOX)?;
        let lane = top.section(key::LANE)?;
        let neb = top.section(key::NEB)?;
        let group = top.section(key::GROUP)?;
        let rendezvous = top.section(key::RENDEZVOUS)?;
        let restart = top.section(key::RESTART)?;
        let verbs = top.section(key::VERBS)?;
        let network = top.section(key::NETWORK)?;
        let metrics = top.section(key::METRICS)?;
        let component = top.section(key::COMPONENT)?;
        let hooks = top.section(key::HOOKS)?;
        let recovery = top.section(key::RECOVERY)?;
        let dirnet = top.section(key::DIRNET)?;
        let timing = dirnet.section(key::DIRNET_TIMING)?;
        let reset = dirnet.section(key::DIRNET_RESET)?;

        let name = top.word::<ClusterName>(key::NAME)?;
        let nodes = top.number(&key::NODES)?;
        let Some(name) = name else {
            return Err(top.missing(key::NAME));
        };
        let Some(nodes) = nodes else {
            return Err(top.missing(key::NODES.path));
        };
        let mut cluster = Self::default_named(name, nodes as usize)
            .map_err(|source| top.limit(key::NODES.path, source))?;

        let set = |target: &mut usize, value: Option<u64>| {
            *target = value.map_or(*target, |value| value as usize);
        };
        set(&mut cluster.mailbox.slots, mailbox.number(&key::MAILBOX_SLOTS)?);
        set(&mut cluster.mailbox.message_len, mailbox.number(&key::MAILBOX_MESSAGE_LEN)?);
        set(&mut cluster.lane.slots, lane.number(&key::LANE_SLOTS)?);
        set(&mut cluster.neb.slots, neb.number(&key::NEB_SLOTS)?);
        set(&mut cluster.neb.message_len, neb.number(&key::NEB_MESSAGE_LEN)?);
        cluster.neb.form = neb.word::<Form>(key::NEB_FORM)?.unwrap_or_default();
        let membership = neb.word::<Membership>(key::NEB_MEMBERSHIP)?;
        cluster.neb.membership = membership.unwrap_or_default();
        cluster.group = Group::read(&group)?;
        for section in top.sections(key::GROUPS.path)? {
            cluster.group.read_named(&section, cluster.nodes)?;
        }
        cluster.rendezvous = Rendezvous::read(&rendezvous)?;
        set(&mut cluster.restart.max, restart.number(&key::RESTART_MAX)?);
        if let Some(value) = mailbox.number(&key::MAILBOX_STALL_AFTER_US)? {
            cluster.mailbox.stall_after_us = value;
        }
        if let Some(value) = mailbox.number(&key::MAILBOX_HOLD_S)? {
            cluster.mailbox.hold_s = value;
        }
        let checksum = mailbox.word::<Checksum>(key::MAILBOX_CHECKSUM)?;
        cluster.mailbox.checksum = checksum.unwrap_or_default();
        if let Some(value) = restart.number(&key::RESTART_WITHIN_S)? {
            cluster.restart.within_s = value;
        }
        if let Some(wait) = top.word::<Wait>(key::WAIT)? {
            cluster.wait = wait;
        }
        for section in top.sections(key::TASKS.path)? {
            let task = read_task(&section, &cluster)?;
            cluster.tasks.push(task);
        }
        if let Some(fabric) = top.word::<FabricKind>(key::FABRIC)? {
            cluster.fabric = fabric;
        }
        cluster.component = read_program(&component)?;
        cluster.hooks = Hooks::read(&hooks)?;
        cluster.recovery = Recovery::read(&recovery)?;
        cluster.verbs = Verbs::read(&verbs)?;
        cluster.metrics = Metrics::read(&metrics)?;
        let addresses = network.texts(key::NETWORK_ADDRESSES)?;
        cluster.network.addresses = addresses.unwrap_or_default();
        cluster.network.discovery = network.text(key::NETWORK_DISCOVERY)?;
        cluster.network.key = network.text(key::NETWORK_KEY)?.map(PathBuf::from);
        cluster.dirnet.profile = dirnet.word::<Profile>(key::DIRNET_PROFILE)?.unwrap_or_default();
        cluster.dirnet.timing = Overrides::read(&timing)?;
        cluster.dirnet.roles = dirnet.words::<Part>(key::DIRNET_ROLES)?;
        let min_alive = dirnet.number(&key::DIRNET_MIN_ALIVE)?;
        cluster.dirnet.min_alive = min_alive.map(|it| u16::try_from(it).unwrap_or(u16::MAX));
        set(&mut cluster.dirnet.reset.max, reset.number(&key::DIRNET_RESET_MAX)?);
        let within_s = reset.number(&key::DIRNET_RESET_WITHIN_S)?;
        cluster.dirnet.reset.within_s = within_s.unwrap_or_else(|| cluster.dirnet.reset_window_s());
        // All that is left to be wrong is how many there are of something, and how values fit.
        let sections = [
            (key::NETWORK, &network),
            (key::DIRNET_RESET, &reset),
            (key::DIRNET, &dirnet),
            (key::COMPONENT, &component),
            (key::HOOKS, &hooks),
            (key::RECOVERY, &recovery),
        ];
        cluster.check().map_err(|error| {
            let source = match error {
                CheckError::Limit(source) => source,
                CheckError::Timing(source) => return timing.timing(source),
            };
            let is_in = |(name, _): &&(&str, _)| {
                source.key.strip_prefix(*name).is_some_and(|rest| rest.starts_with('.'))
            };
            let section = sections.iter().find(is_in).map_or(&verbs, |(_, section)| *section);
            section.limit(source.key, source)
        })?;
        Ok(cluster)
    }

    /// Whether every value is within its limit, and the timing keeps its rules.
    ///
    /// # Errors
    /// The first that is not, in the order of the file; then the first rule that is broken.
    pub fn check(&self) -> Result<(), CheckError> {
        let numbers = [
            (key::NODES, self.nodes as u64),
            (key::MAILBOX_SLOTS, self.mailbox.slots as u64),
            (key::MAILBOX_MESSAGE_LEN, self.mailbox.message_len as u64),
            (key::MAILBOX_STALL_AFTER_US, self.mailbox.stall_after_us),
            (key::MAILBOX_HOLD_S, self.mailbox.hold_s),
            (key::LANE_SLOTS, self.lane.slots as u64),
            (key::NEB_SLOTS, self.neb.slots as u64),
            (key::NEB_MESSAGE_LEN, self.neb.message_len as u64),
            (key::RESTART_MAX, self.restart.max as u64),
            (key::RESTART_WITHIN_S, self.restart.within_s),
        ];
        numbers.into_iter().try_for_each(|(key, value)| key.limit.admit(key.path, value))?;
        self.group.check(self.nodes)?;
        self.rendezvous.check()?;
        self.verbs.check()?;
        self.network.check(self.nodes)?;
        self.metrics.check()?;
        self.dirnet.check(self.nodes)?;
        self.check_tasks()?;
        self.component.as_ref().map_or(Ok(()), Program::check)?;
        self.hooks.check()?;
        self.recovery.check()?;
        Ok(TimingError::check(self.dirnet.timing())?)
    }

    /// Whether every program that the file names is an executable file of this host: of hooks, of
    /// the component, and of tasks.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_programs(&self) -> Result<(), MissingProgram> {
        self.hooks.check_programs()?;
        self.recovery.check_programs()?;
        let component = self.component.iter().map(|component| ("component", &component.program));
        let tasks = self.tasks.iter().map(|task| (task.name.as_str(), &task.program));
        component.chain(tasks).try_for_each(|(name, program)| {
            MissingProgram::check(format_args!("the program of {name}"), program)
        })
    }

    /// The file that describes this cluster; parsing it gives the same cluster again.
    #[must_use]
    pub fn to_toml(&self) -> String {
        template::render(self)
    }

    /// Every key, with its meaning, limit and default.
    #[must_use]
    pub fn keys() -> Vec<ExplainedKey> {
        explained::all()
    }

    /// The meaning, limit and default of the key `path`, such as `mailbox.slots`.
    ///
    /// # Errors
    /// There is no such key.
    pub fn explain_key(path: &str) -> Result<ExplainedKey, UnknownKey> {
        explained::one(path)
    }

    /// The cluster file as a JSON schema.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// A file with every key, its meaning, limit and default.
    #[must_use]
    pub fn template() -> String {
        Self::default().to_toml()
    }
}

/// The program of `[component]`, if the file has one.
fn read_program(section: &FileSection<'_>) -> Result<Option<Program>, ClusterError> {
    let program = section.text(key::COMPONENT_PROGRAM.path)?;
    let args = section.texts(key::COMPONENT_ARGS.path)?;
    let env = section.texts(key::COMPONENT_ENV.path)?;
    let state = section.text(key::COMPONENT_STATE)?;
    let working_s = section.number(&key::COMPONENT_WORKING_S)?;
    let is_set = args.is_some() || env.is_some() || state.is_some() || working_s.is_some();
    if program.is_none() && !is_set {
        return Ok(None);
    }
    // One that is left out comes from the command line; one that is empty means nothing.
    let limit = key::COMPONENT_PROGRAM.limit;
    let named = program.as_ref().map(|it| limit.admit_text(key::COMPONENT_PROGRAM.path, it));
    named.transpose().map_err(|source| section.limit(source.key, source))?;
    let program = program.unwrap_or_default();
    let (args, env) = (args.unwrap_or_default(), env.unwrap_or_default());
    let state = state.map_or(Ok(0), |text| Program::state_of(&text));
    let state = state.map_err(|source| section.limit(source.key, source))?;
    let working_s = working_s.unwrap_or(Program::default().working_s);
    Ok(Some(Program { program, args, env, state, working_s }))
}

/// One `[[task]]` behind those that `cluster` has already.
fn read_task(section: &FileSection<'_>, cluster: &Cluster) -> Result<Task, ClusterError> {
    let Some(name) = section.word::<TaskName>(key::TASK_NAME)? else {
        return Err(section.missing(key::TASK_NAME));
    };
    let Some(program) = section.text(key::TASK_PROGRAM.path)? else {
        return Err(section.missing(key::TASK_PROGRAM.path));
    };
    let mut task = Task::new(name, program);
    task.args = section.texts(key::TASK_ARGS.path)?.unwrap_or_default();
    task.nodes = section.ranks(key::TASK_NODES, cluster.nodes)?;
    task.beat_ms = section.number(&key::TASK_BEAT_MS)?;
    let restart = section.section(key::TASK_RESTART)?;
    if let Some(max) = restart.number(&key::TASK_RESTART_MAX)? {
        task.restart.max = max as usize;
    }
    if let Some(within_s) = restart.number(&key::TASK_RESTART_WITHIN_S)? {
        task.restart.within_s = within_s;
    }
    let checked = task.check(&cluster.tasks, cluster.nodes);
    checked.map_err(|source| section.limit(source.key, source))?;
    Ok(task)
}

#[cfg(test)]
mod tests;

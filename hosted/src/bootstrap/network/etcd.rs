//! The few calls of etcd that discovery needs, over its HTTP gateway (`/v3/...`): leases, a range,
//! and a put that holds only if the entry is what the caller has seen.
//!
//! Keys and values travel as base64, numbers as decimal strings. Each call ends within
//! [`CALL_TIMEOUT`]; the endpoints are tried in turn, the last one that answered first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::explain::{Code, Explain};

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest answer that is read.
const ANSWER_LEN_MAX: u64 = 1 << 20;
/// The most entries of one range.
const ENTRIES_MAX: u32 = 256;

/// Why a call of etcd, or the registration there, came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DirectoryFault {
    /// No endpoint has answered in time.
    #[error("etcd does not answer at {endpoints}")]
    Silent {
        /// The endpoints, as the cluster file names them.
        endpoints: String,
    },
    /// An endpoint answers with an HTTP error.
    #[error("etcd at {endpoint} answers with HTTP status {status}")]
    Status {
        /// The endpoint.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// What answers is not etcd.
    #[error("what answers at {endpoint} is not etcd's HTTP gateway")]
    NotEtcd {
        /// The endpoint.
        endpoint: String,
    },
    /// Another node keeps this one's rank registered.
    #[error("rank {rank} is registered at {address} by another node")]
    Registered {
        /// The rank.
        rank: u16,
        /// Where that node is met.
        address: String,
    },
}

impl Explain for DirectoryFault {
    fn code(&self) -> Code {
        match self {
            Self::Silent { .. } | Self::Status { .. } => Code::NodeUnreachable,
            Self::NotEtcd { .. } => Code::Protocol,
            Self::Registered { .. } => Code::NodeOutOfRange,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Silent { .. } => {
                "start etcd, or correct network.discovery; nodes that have met stay connected"
            }
            Self::Status { .. } => "see etcd's log for the reason",
            Self::NotEtcd { .. } => {
                "let network.discovery name the client address of etcd 3.4 or later"
            }
            Self::Registered { .. } => {
                "end that node, or start this one with another --rank; the entry of a node that \
                 has ended expires after ten seconds"
            }
        }
        .to_owned()
    }
}

/// An entry as etcd keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// Changes with each put.
    pub(super) revision: String,
    pub(super) lease: LeaseId,
}

/// The number of a lease, as etcd writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct LeaseId(String);

/// A client of one etcd cluster.
pub(super) struct EtcdClient {
    agent: ureq::Agent,
    endpoints: Vec<String>,
    /// The endpoint that answered last.
    preferred: AtomicUsize,
}

#[derive(Deserialize)]
struct Lease {
    #[serde(rename = "ID")]
    id: LeaseId,
    /// Left out where it is 0.
    #[serde(rename = "TTL", default)]
    ttl: String,
}

#[derive(Deserialize)]
struct KeepAliveResponse {
    result: Lease,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct KeyValue {
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    mod_revision: String,
    #[serde(default = "KeyValue::no_lease")]
    lease: LeaseId,
}

impl KeyValue {
    fn no_lease() -> LeaseId {
        LeaseId(String::new())
    }
}

#[derive(Deserialize)]
struct Transaction {
    #[serde(default)]
    succeeded: bool,
}

#[derive(Deserialize)]
struct Nothing {}

impl EtcdClient {
    /// A client of the etcd cluster that is reached at any of these `HOST:PORT`s.
    pub(super) fn new(endpoints: Vec<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(CALL_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            // The variables of the environment name proxies for the world outside.
            .proxy(None)
            .build();
        Self { agent: config.into(), endpoints, preferred: AtomicUsize::new(0) }
    }

    /// A lease of so long.
    pub(super) fn grant(&self, ttl: Duration) -> Result<LeaseId, DirectoryFault> {
        self.call("lease/grant", &json!({ "TTL": ttl.as_secs() })).map(|lease: Lease| lease.id)
    }

    /// Keeps a lease; whether etcd still has it.
    pub(super) fn keep_alive(&self, lease: &LeaseId) -> Result<bool, DirectoryFault> {
        match self.call("lease/keepalive", &json!({ "ID": lease.0 })) {
            Ok(KeepAliveResponse { result }) => {
                Ok(result.ttl.parse().is_ok_and(|seconds: i64| seconds > 0))
            }
            // Some versions answer so for a lease that they do not have.
            Err(DirectoryFault::Status { status: 404, .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Ends a lease, with the entries that it keeps.
    pub(super) fn revoke(&self, lease: &LeaseId) -> Result<(), DirectoryFault> {
        self.call("lease/revoke", &json!({ "ID": lease.0 })).map(|Nothing {}| ())
    }

    /// The entries whose keys begin with `prefix`, which must not end with the byte 255.
    pub(super) fn range(&self, prefix: &str) -> Result<Vec<Stored>, DirectoryFault> {
        let mut end = prefix.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let (key, range_end) = (STANDARD.encode(prefix), STANDARD.encode(end));
        let asked = json!({ "key": key, "range_end": range_end, "limit": ENTRIES_MAX });
        let range: Range = self.call("kv/range", &asked)?;
        // What is not base64 is not etcd's doing; such an entry says nothing.
        let stored = range.kvs.into_iter().filter_map(|it| {
            let (key, value) = (STANDARD.decode(it.key).ok()?, STANDARD.decode(it.value).ok()?);
            Some(Stored { key, value, revision: it.mod_revision, lease: it.lease })
        });
        Ok(stored.collect())
    }

    /// Puts an entry under a lease if it is still `seen`, or still missing; whether it was.
    pub(super) fn put_if(
        &self,
        key: &str,
        value: &[u8],
        lease: &LeaseId,
        seen: Option<&Stored>,
    ) -> Result<bool, DirectoryFault> {
        let key = STANDARD.encode(key);
        let compare = match seen {
            None => json!({ "key": key, "target": "CREATE", "create_revision": "0" }),
            Some(it) => json!({ "key": key, "target": "MOD", "mod_revision": it.revision }),
        };
        let put = json!({ "key": key, "value": STANDARD.encode(value), "lease": lease.0 });
        let asked = json!({ "compare": [compare], "success": [{ "request_put": put }] });
        self.call("kv/txn", &asked).map(|it: Transaction| it.succeeded)
    }

    fn call<T: DeserializeOwned>(&self, what: &str, asked: &Value) -> Result<T, DirectoryFault> {
        let first = self.preferred.load(Ordering::Relaxed);
        for index in 0..self.endpoints.len() {
            let index = (first + index) % self.endpoints.len();
            let endpoint = &self.endpoints[index];
            let answer = self.agent.post(format!("http://{endpoint}/v3/{what}")).send_json(asked);
            let mut answer = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::debug!(%error, endpoint, what, "etcd does not answer");
                    continue;
                }
            };
            self.preferred.store(index, Ordering::Relaxed);
            let (endpoint, status) = (endpoint.clone(), answer.status().as_u16());
            if status != 200 {
                return Err(DirectoryFault::Status { endpoint, status });
            }
            let body = answer.body_mut().with_config().limit(ANSWER_LEN_MAX).read_json();
            return body.map_err(|error| {
                tracing::debug!(%error, endpoint, what, "no answer of etcd's");
                DirectoryFault::NotEtcd { endpoint }
            });
        }
        Err(DirectoryFault::Silent { endpoints: self.endpoints.join(", ") })
    }
}

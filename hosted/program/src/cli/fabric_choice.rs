//! What carries a cluster's messages, as the command line has it.

use clap::Args;

use super::failure::Failure;
use crate::doctor;
use weft::cluster::{Cluster, FabricKind};
use weft::explain::{Code, Explain};
use weft::node::{VerbsError, VerbsPort};

/// What the driver cannot know of this machine, `weft doctor` does.
pub(super) fn explained(error: VerbsError) -> Failure {
    match error {
        VerbsError::Driver(error) => explained_driver(error),
        error => Failure::new(error),
    }
}

/// The same for what the driver itself says.
pub(super) fn explained_driver(error: weft_driver::Error) -> Failure {
    let no_rdma = error == weft_driver::Error::NoRdma;
    let error = VerbsError::Driver(error);
    if no_rdma {
        return Failure::of(error.code(), error.to_string(), doctor::cure_of_no_rdma());
    }
    Failure::new(error)
}

/// The choice of a fabric.
#[derive(Debug, Args)]
pub(super) struct FabricChoice {
    /// What carries messages, instead of what the file says: shm or verbs.
    #[arg(long, value_name = "FABRIC")]
    fabric: Option<String>,

    /// The RDMA devices of the nodes in the order of their ranks, taken in turn when there are
    /// fewer: rxe0,rxe1. Without it those of the file, or the first one.
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    devices: Vec<String>,
}

impl FabricChoice {
    /// Sets the fabric of `cluster`.
    pub(super) fn apply_fabric(&self, cluster: &mut Cluster) -> Result<(), Failure> {
        if let Some(text) = &self.fabric {
            cluster.fabric = text.parse().map_err(Failure::new)?;
        }
        Ok(())
    }

    /// Sets the devices of `cluster`.
    pub(super) fn apply_devices(&self, cluster: &mut Cluster) -> Result<(), Failure> {
        if self.devices.is_empty() {
            return Ok(());
        }
        if cluster.fabric != FabricKind::Verbs {
            let cause = format!("--devices has no effect over {}", cluster.fabric);
            return Err(Failure::of(Code::Usage, cause, "add `--fabric verbs`, or leave it out"));
        }
        if self.devices.iter().any(|device| device.trim().is_empty()) {
            let cause = "--devices has an empty name in it";
            let cure = "give names between commas, such as `--devices rxe0,rxe1`, or leave it out \
                        for the first device";
            return Err(Failure::of(Code::Usage, cause, cure));
        }
        cluster.verbs.devices.clone_from(&self.devices);
        Ok(())
    }

    /// Sets both, and looks whether every node of `cluster` finds its device on this machine.
    pub(super) fn apply_to_all(&self, cluster: &mut Cluster) -> Result<(), Failure> {
        self.apply_fabric(cluster)?;
        self.apply_devices(cluster)?;
        if cluster.fabric == FabricKind::Shm {
            return Ok(());
        }
        let first: &[Option<String>] = &[None];
        let named: Vec<_> = cluster.verbs.devices.iter().cloned().map(Some).collect();
        let devices = if named.is_empty() { first } else { &named };
        let check = |device: &Option<String>| VerbsPort::check_device(device.as_deref());
        devices.iter().try_for_each(check).map_err(explained)
    }
}

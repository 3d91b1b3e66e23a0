//! The sizes of an endpoint's machines, and the layout that follows from them.

use core::fmt;

use crate::fabric::{Layout, LayoutError};
use crate::rendezvous::{RendezvousConfig, RendezvousRegions};
use crate::{group, lane, mailbox, neb};

/// The sizes of all machines and their regions in the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    layout: Layout,
    mailbox: mailbox::Config,
    mailbox_regions: mailbox::Regions,
    lane: lane::Config,
    lane_regions: lane::Regions,
    broadcast: Option<(neb::Config, neb::Regions)>,
    groups: Option<(group::Config, group::Regions)>,
    rendezvous: Option<(RendezvousConfig, RendezvousRegions)>,
}

/// Why no layout follows from the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The machines are for different numbers of peers.
    Peers,
    /// The regions do not fit.
    Layout(LayoutError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers => f.write_str("the machines are for different numbers of peers"),
            Self::Layout(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PlanError {}

impl Plan {
    /// Lays out a mailbox and lanes of these sizes.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(mailbox: mailbox::Config, lane: lane::Config) -> Result<Self, PlanError> {
        if mailbox.peers() != lane.peers() {
            return Err(PlanError::Peers);
        }
        let mut layout = Layout::new(mailbox.peers());
        let mailbox_regions = mailbox.add_regions(&mut layout).map_err(PlanError::Layout)?;
        let lane_regions = lane.add_regions(&mut layout).map_err(PlanError::Layout)?;
        Ok(Self {
            layout,
            mailbox,
            mailbox_regions,
            lane,
            lane_regions,
            broadcast: None,
            groups: None,
            rendezvous: None,
        })
    }

    /// Lays out a broadcast of these sizes as well.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn with_broadcast(mut self, sizes: neb::Config) -> Result<Self, PlanError> {
        if sizes.peers() != self.layout.peers() {
            return Err(PlanError::Peers);
        }
        let regions = sizes.add_regions(&mut self.layout).map_err(PlanError::Layout)?;
        self.broadcast = Some((sizes, regions));
        Ok(self)
    }

    /// Lays out groups of these sizes as well.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn with_groups(mut self, sizes: group::Config) -> Result<Self, PlanError> {
        if sizes.sizes().peers != self.layout.peers() {
            return Err(PlanError::Peers);
        }
        let regions = sizes.add_regions(&mut self.layout).map_err(PlanError::Layout)?;
        self.groups = Some((sizes, regions));
        Ok(self)
    }

    /// Lays out a rendezvous of these sizes as well.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn with_rendezvous(mut self, sizes: RendezvousConfig) -> Result<Self, PlanError> {
        if sizes.sizes().peers != self.layout.peers() {
            return Err(PlanError::Peers);
        }
        let regions = sizes.add_regions(&mut self.layout).map_err(PlanError::Layout)?;
        self.rendezvous = Some((sizes, regions));
        Ok(self)
    }

    /// The regions of every endpoint.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The sizes of the mailbox.
    #[must_use]
    pub const fn mailbox(&self) -> mailbox::Config {
        self.mailbox
    }

    /// The sizes of the lanes.
    #[must_use]
    pub const fn lane(&self) -> lane::Config {
        self.lane
    }

    /// The regions of the mailbox.
    #[must_use]
    pub const fn mailbox_regions(&self) -> mailbox::Regions {
        self.mailbox_regions
    }

    /// The regions of the lanes.
    #[must_use]
    pub const fn lane_regions(&self) -> lane::Regions {
        self.lane_regions
    }

    /// The sizes and regions of the broadcast; `None` if there is none.
    #[must_use]
    pub const fn broadcast(&self) -> Option<(neb::Config, neb::Regions)> {
        self.broadcast
    }

    /// The sizes and regions of the groups; `None` if there are none.
    #[must_use]
    pub const fn groups(&self) -> Option<(group::Config, group::Regions)> {
        self.groups
    }

    /// The sizes and regions of the rendezvous; `None` if there is none.
    #[must_use]
    pub const fn rendezvous(&self) -> Option<(RendezvousConfig, RendezvousRegions)> {
        self.rendezvous
    }
}

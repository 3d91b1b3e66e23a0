//! The nodes of a script and their roles.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use weft_core::recovery::{NODES_MAX, Role};

use super::{Resolver, wrong};
use crate::code::DiagnosticCode as Code;
use crate::source::Span;
use crate::tree::{At, Statement};

/// How many nodes a cluster has.
const CLUSTER_NODES: RangeInclusive<u32> = 2..=32;

type Given = BTreeMap<u32, (Role, Span)>;

impl Resolver<'_> {
    /// How many nodes there are, and the role of each.
    pub(super) fn roles(&mut self, statements: &[At<Statement>]) {
        let given = self.given(statements);
        let nprocs = statements.iter().find_map(|At { it, span }| match it {
            Statement::Nprocs(number) => self.names.value(number, None).zip(Some(span)),
            _ => None,
        });
        let most = given.keys().last().map_or(1, |node| node + 1);
        let said = nprocs.map(|(count, _)| count);
        let known = self.names.cluster.map(|cluster| u32::from(cluster.nodes));
        let nodes = known.or(said).unwrap_or(most);
        let place = given.values().next_back().map(|(_, span)| span.clone());
        let place = place.or(nprocs.map(|(_, span)| span.clone())).unwrap_or(0..0);
        if let Some((count, span)) = nprocs.filter(|(count, _)| *count != nodes) {
            let message = format!("NPROCS is {count}, but the cluster has {nodes} nodes");
            let help = format!("write `NPROCS = {nodes}`");
            self.wrong.push(wrong(Code::ClusterNode, span, message, help));
        }
        // What the other declarations name is looked up all the same.
        self.names.nodes = u8::try_from(nodes.min(NODES_MAX as u32)).unwrap_or(u8::MAX);
        if nodes > *CLUSTER_NODES.end() {
            let message = format!("more than {} nodes", CLUSTER_NODES.end());
            let help = "a cluster has 2 to 32 nodes; the first is 0";
            self.wrong.push(wrong(Code::ClusterNode, &place, message, help));
            return;
        }
        if most > nodes {
            let message = format!("there is no node {} in a cluster of {nodes}", most - 1);
            let help = "use a node of the cluster; the first is 0";
            self.wrong.push(wrong(Code::ClusterNode, &place, message, help));
            self.names.nodes = u8::try_from(most.min(NODES_MAX as u32)).unwrap_or(u8::MAX);
            return;
        }
        let cluster = self.names.cluster.and_then(|cluster| cluster.roles.clone());
        self.names.roles = (0..nodes)
            .map(|node| match (given.get(&node), &cluster) {
                (Some((role, _)), _) => *role,
                (None, Some(roles)) => roles.get(node as usize).copied().unwrap_or(Role::Backup),
                // As in a cluster file without roles.
                (None, None) if node == 0 && known.is_some() && given.is_empty() => Role::Manager,
                (None, None) => Role::Backup,
            })
            .collect();
        if let Some(roles) = &cluster
            && *roles != self.names.roles
        {
            let message = "the cluster file gives the nodes other roles";
            let help = "correct one of them, or remove `dirnet.roles` or the DEFINE lines";
            self.wrong.push(wrong(Code::ClusterRole, &place, message, help));
        }
        if !self.wrong.is_empty() {
            return;
        }
        self.one_manager(&given, &place);
        if self.wrong.is_empty() && !CLUSTER_NODES.contains(&nodes) {
            let message = "a cluster has at least two nodes, and this is a script for one";
            let help = "declare the others: `DEFINE 1-2 = BACKUP`";
            self.wrong.push(wrong(Code::ClusterNode, &place, message, help));
        }
        let without = (0..nodes).filter(|node| !given.contains_key(node));
        let without: Vec<String> = without.map(|node| node.to_string()).collect();
        if self.wrong.is_empty() && cluster.is_none() && !given.is_empty() && !without.is_empty() {
            let message = match &without[..] {
                [node] => format!("node {node} has no role"),
                _ => format!("nodes {} have no role", without.join(", ")),
            };
            let help = "each is a BACKUP; `DEFINE` says that this is meant";
            self.wrong.push(wrong(Code::LintRole, &place, message, help));
        }
    }

    /// The roles of DEFINE.
    fn given(&mut self, statements: &[At<Statement>]) -> Given {
        let mut given = Given::new();
        for At { it, span } in statements {
            let Statement::Define { nodes, role } = it else { continue };
            for (first, last) in nodes {
                let last = (*last).min(first.saturating_add(NODES_MAX as u32));
                for node in *first..=last {
                    let Some((before, place)) = given.get(&node) else {
                        given.insert(node, (*role, span.clone()));
                        continue;
                    };
                    let message =
                        format!("node {node} is a {} and a {}", before.as_str(), role.as_str());
                    let found = wrong(Code::Twice, span, message, "remove one of the two roles");
                    self.wrong.push(found.beside(place.clone(), "the first"));
                }
            }
        }
        given
    }

    fn one_manager(&mut self, given: &Given, place: &Span) {
        let nodes = (0..).zip(&self.names.roles).filter(|(_, role)| **role == Role::Manager);
        let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
        let help = "name exactly one: `DEFINE 0 = MANAGER`";
        match nodes[..] {
            [_] => {}
            [] => self.wrong.push(wrong(Code::Managers, place, "no node is the manager", help)),
            [first, second, ..] => {
                let message = format!("node {first} and node {second} are both managers");
                let at = |node| given.get(&node).map(|(_, span)| span.clone());
                let span = at(second).unwrap_or_else(|| place.clone());
                let mut found = wrong(Code::Managers, &span, message, help);
                if let Some(before) = at(first).filter(|before| *before != span) {
                    found = found.beside(before, "the first");
                }
                self.wrong.push(found);
            }
        }
    }
}

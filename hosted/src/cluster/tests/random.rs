//! Cluster files at random: any that is valid round-trips, any other text is refused.
//!
//! Damage is small, so that most of it gets past the TOML parser and reaches the checks of this
//! crate.

use proptest::prelude::*;

use super::*;

/// For a cluster of any size: as many of these as it has nodes are its addresses.
fn any_addresses() -> impl Strategy<Value = Vec<String>> {
    let hosts = prop::collection::btree_set("[a-z0-9][a-z0-9.-]{0,19}[a-z0-9]", 32..=32);
    let whole = (hosts, 1_u16..)
        .prop_map(|(hosts, port)| hosts.into_iter().map(|host| format!("{host}:{port}")).collect());
    prop_oneof![Just(Vec::new()), whole]
}

fn any_cluster() -> impl Strategy<Value = Cluster> {
    let name = "[a-z0-9][a-z0-9_-]{0,31}".prop_map(|name| name.parse().expect("a legal name"));
    let wait = prop::sample::select(Wait::ALL.to_vec());
    let sizes = (4_u32..=12, 8_usize..=4000, 100_u64..=10_000_000, 0_u64..=86_400);
    let mailbox = (sizes, prop::sample::select(Checksum::ALL.to_vec())).prop_map(
        |((slots_log2, message_len, stall_after_us, hold_s), checksum)| Mailbox {
            slots: 1 << slots_log2,
            message_len,
            stall_after_us,
            hold_s,
            checksum,
        },
    );
    let lane = (4_u32..=10).prop_map(|slots_log2| Lane { slots: 1 << slots_log2 });
    let restart =
        (0_usize..=10_000, 1_u64..=86_400).prop_map(|(max, within_s)| Restart { max, within_s });
    let devices = prop::collection::vec("[a-z0-9_]{1,63}", 0..4);
    let reach = (devices, any_addresses(), prop::option::of(any::<String>()));
    let fabric = prop::sample::select(FabricKind::ALL.to_vec());
    let form = prop::sample::select(Form::ALL.to_vec());
    let words = (form, prop::sample::select(Membership::ALL.to_vec()));
    let neb = (6_u32..=12, 64_usize..=4096, words).prop_map(|(slots_log2, message_len, words)| {
        let (form, membership) = words;
        Neb { slots: 1 << slots_log2, message_len, form, membership }
    });
    let named = prop::sample::select(vec![0_usize, 0, 1, 7]);
    let travel = (prop::sample::select(Topology::ALL.to_vec()), 1_usize..=63);
    let group = (0_usize..=1, 3_u32..=10, 1_u32..=6, 12_u32..=20, (named, travel)).prop_map(
        |(count, entries, blocks, block_len, (named, (topology, latency)))| Group {
            count,
            entries: 1 << entries,
            blocks: 1 << blocks,
            // The windows of several groups fit below 4 GiB as well.
            block_len: 1 << if named > 0 { block_len.min(17) } else { block_len },
            topology,
            latency,
            named: (0..named)
                .map(|n| NamedGroup { name: format!("g-{n}"), members: vec![1, 0] })
                .collect(),
        },
    );
    let path = prop::sample::select(TensorPath::ALL.to_vec());
    let rendezvous = (0_usize..=4095, 0_usize..=4095, path)
        .prop_map(|(pool_mib, store_mib, path)| Rendezvous { pool_mib, store_mib, path });
    let neb = (neb, group, rendezvous);
    let parts = (any_tasks(), prop::option::of(any_program()), any_hooks(), any::<bool>(), neb);
    (name, 2_usize..=32, wait, fabric, mailbox, lane, restart, parts, reach).prop_map(
        |(name, nodes, wait, fabric, mailbox, lane, restart, parts, (devices, addresses, key))| {
            let (tasks, component, hooks, is_strange, (neb, group, rendezvous)) = parts;
            let addresses = addresses.into_iter().take(nodes).collect();
            let dirnet = if is_strange { any_dirnet(nodes) } else { DirNet::default() };
            Cluster {
                name,
                nodes,
                dirnet,
                wait,
                fabric,
                mailbox,
                lane,
                neb,
                group,
                rendezvous,
                restart,
                tasks,
                component,
                hooks,
                recovery: if is_strange { strange_recovery() } else { Recovery::default() },
                verbs: Verbs { devices, ..Verbs::default() },
                network: Network { addresses, discovery: None, key: key.map(PathBuf::from) },
                metrics: Metrics { port: if is_strange { 65_504 } else { 0 } },
            }
        },
    )
}

/// A DIR net with every key set: the last node is the manager, the first an agent.
fn any_dirnet(nodes: usize) -> DirNet {
    let mut roles = vec![Part::Backup; nodes];
    roles[0] = Part::Agent;
    roles[nodes - 1] = Part::Manager;
    let timing = Overrides {
        send_us: Some(50),
        receive_us: Some(400),
        clear_us: Some(40),
        alarm_us: Some(160),
        window_us: Some(210),
        delay_us: Some(45),
        losses: Some(3),
        candidate_us: Some(500),
        join_us: Some(900),
        clone_ms: Some(250),
        reboot_ms: Some(1_000),
    };
    let reset = Restart { max: 8, within_s: 86_400 };
    DirNet { profile: Profile::Rdma, timing, min_alive: Some(2), roles: Some(roles), reset }
}

/// A script, and bytes that are no image: what they are is found when a node starts.
fn strange_recovery() -> Recovery {
    let script = Some(PathBuf::from("a \"b\".rl"));
    let words = ["logger", "-t", "a \" b"].map(str::to_owned).to_vec();
    let calls = [("x y".to_owned(), words)].into();
    Recovery { script, answer_ms: 77, calls, image: Some(vec![0, 255, 7]) }
}

/// A program whose path, arguments and variables are any text.
fn any_program() -> impl Strategy<Value = Program> {
    let text =
        || any::<String>().prop_map(|text| text.replace('\0', "").chars().take(60).collect());
    let texts = || prop::collection::vec(text(), 0..4);
    (text(), texts(), texts(), 0..=Program::STATE_MAX, 0..=86_400_u64).prop_map(
        |(program, args, values, state, working_s): (String, _, Vec<String>, _, _)| {
            let env = values.into_iter().map(|value| format!("X={value}")).collect();
            Program { program: format!("/{program}"), args, env, state, working_s }
        },
    )
}

/// Commands for some events, whose arguments are any text.
fn any_hooks() -> impl Strategy<Value = Hooks> {
    let text = any::<String>().prop_map(|text| text.replace('\0', "").chars().take(60).collect());
    let command = prop::collection::vec(text, 0..4)
        .prop_map(|args: Vec<String>| [vec!["/program".to_owned()], args].concat());
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.key().is_some()).collect::<Vec<_>>();
    let commands = prop::collection::btree_map(prop::sample::select(kinds), command, 0..4);
    (1_u64..=3600, commands).prop_map(|(timeout_s, commands)| Hooks { timeout_s, commands })
}

/// Up to three tasks whose program and arguments are any text; their nodes are always there.
fn any_tasks() -> impl Strategy<Value = Vec<Task>> {
    let text =
        || any::<String>().prop_map(|text| text.replace('\0', "").chars().take(60).collect());
    let nodes = prop::option::of(prop::sample::subsequence(vec![0_u16, 1], 0..=2));
    let one = (text(), prop::collection::vec(text(), 0..4), nodes, prop::option::of(10_u64..=2499));
    prop::collection::vec(one, 0..3).prop_map(|tasks| {
        let numbered = tasks.into_iter().enumerate();
        numbered
            .map(|(number, (program, args, nodes, beat_ms))| {
                let name = format!("t{number}").parse().expect("a legal name");
                let program = format!("/{program}");
                Task { args, nodes, beat_ms, ..Task::new(name, program) }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn every_cluster_round_trips(cluster in any_cluster()) {
        prop_assert_eq!(cluster.check(), Ok(()));
        prop_assert_eq!(parse(&cluster.to_toml()).expect("its own file"), cluster);
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty() && !error.cure().is_empty());
        }
    }

    #[test]
    fn a_damaged_file_parses_within_limits_or_is_refused(
        at in any::<prop::sample::Index>(),
        removed in 0_usize..8,
        inserted in "[ -~\\n]{0,4}",
    ) {
        let mut text = Cluster::template();
        let start = at.index(text.len());
        let end = (start + removed).min(text.len());
        text.replace_range(start..end, &inserted);
        match parse(&text) {
            Ok(cluster) => prop_assert_eq!(cluster.check(), Ok(())),
            Err(error) => prop_assert!(!error.cure().is_empty(), "{}", error),
        }
    }

    #[test]
    fn a_number_outside_its_limit_is_refused_by_name(
        key in prop::sample::select(vec!["slots", "message_len", "stall_after_us", "hold_s"]),
        value in 10_000_001_u64..,
    ) {
        let error = refused(&format!("name = \"t\"\nnodes = 4\n[mailbox]\n{key} = {value}"));
        let ClusterError::Limit { source, .. } = error else { panic!("{error:?}") };
        prop_assert_eq!(source.key, format!("mailbox.{key}"));
        prop_assert_eq!(source.value, value.to_string());
    }
}

//! The DIR net of a cluster file: profiles satisfy the timing rules, restarts keep their
//! proportion.

use super::*;

#[test]
fn every_profile_keeps_the_rules() {
    for word in ["host", "lan", "rdma"] {
        let mut cluster = Cluster::default();
        cluster.dirnet.profile = word.parse().unwrap();
        assert!(config(&cluster, Rank(3)).is_ok(), "{word}");
    }
}

#[test]
fn the_restart_intensity_keeps_its_proportion() {
    let limit = |max, within_s| {
        let restart = cluster::Restart { max, within_s };
        restart_limit(&Cluster { restart, ..Cluster::default() })
    };
    let seconds = |s: u64| time::Duration::from_millis(s * 1_000);
    assert_eq!(limit(3, 10), RestartLimit { max: 3, within: seconds(10) });
    assert_eq!(limit(70, 10), RestartLimit { max: 7, within: seconds(1) });
    assert_eq!(limit(0, 1), RestartLimit { max: 0, within: seconds(1) });
}

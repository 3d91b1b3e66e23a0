//! What a drawing must be, whatever it shows.

use super::*;
use crate::demo::timeline::{BlowRecovery, Moment, MomentKind};
use crate::demo::{Summary, TextInput};

fn moment(after_us: u64, observer: Option<u16>, kind: MomentKind, what: &str) -> Moment {
    Moment { after_us, observer, node: 0, kind, what: what.to_owned() }
}

/// A summary with one act, in which the manager's node dies.
fn summary() -> Summary {
    let mut summary = Summary::new(&TextInput::own());
    summary.recoveries.push(BlowRecovery {
        name: "node",
        words: "the manager's node dies",
        node: 0,
        at_us: 1_000_000,
        incarnations: (1, 2),
        terms: [(1, 0), (2, 1)],
        away_us: 1_900_000,
        milestones: Vec::new(),
        survivors: Vec::new(),
        moments: vec![
            moment(0, None, MomentKind::Blow, "dies <at once> & for good"),
            moment(1_200, Some(1), MomentKind::Sign, "suspected"),
            moment(1_300, Some(1), MomentKind::Verdict, "takes over as manager"),
            moment(1_900_000, None, MomentKind::Return, "is back"),
        ],
    });
    summary
}

/// Every tag is closed by its own kind, in order; how many circles there are.
fn assert_well_formed(svg: &str) -> usize {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{tag}");
        let name = tag.split_whitespace().next().expect("a tag has a name");
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{tag}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
    svg.matches("<circle").count()
}

#[test]
fn every_moment_is_drawn_and_told_in_a_document_that_is_whole() {
    let svg = draw(&summary(), &ArrivalCounts::new(0), 0);
    assert_eq!(assert_well_formed(&svg), 8, "each moment in its lane and before its words");
    assert!(svg.contains("dies &lt;at once&gt; &amp; for good"), "{svg}");
    assert!(!svg.contains("http://") || svg.matches("http://").count() == 1, "one name space");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn the_reign_ends_with_the_old_manager_and_begins_with_the_next() {
    let svg = draw(&summary(), &ArrivalCounts::new(0), 0);
    assert_eq!(svg.matches("class=\"term\"").count(), 2);
    let mut same = summary();
    same.recoveries[0].terms = [(1, 0), (1, 0)];
    assert_eq!(draw(&same, &ArrivalCounts::new(0), 0).matches("class=\"term\"").count(), 1);
}

#[test]
fn numbers_that_would_cover_each_other_are_moved_apart() {
    let svg = draw(&summary(), &ArrivalCounts::new(0), 0);
    let places: Vec<f64> = svg
        .split("<g>")
        .skip(1)
        .map(|group| {
            let place = group.split("cx=\"").nth(1).expect("a circle").split('"').next();
            place.expect("a place").parse().expect("a number")
        })
        .collect();
    let [_, first, second, _] = places[..] else { panic!("four moments: {places:?}") };
    assert!(second - first >= 16.9, "{places:?}");
}

//! Scripts and facts, drawn from a grammar.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use weft_core::recovery::{NodeFact, TaskFact, TaskState};
use weft_core::time::Instant;

use super::oracle::{Facts, World};

/// What every drawn script declares.
pub(crate) const DECLARATIONS: &str = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\n\
    TASK 3 = \"a\" IS NODE 0, TASKID 0\nTASK 4 = \"b\" IS NODE 1, TASKID 0\n\
    TASK 5 = \"c\" IS NODE 1, TASKID 1\nTASK 6 = \"d\" IS NODE 2, TASKID 0\n\
    LOGICAL 1 = \"x\" IS TASK 3, 4 END LOGICAL\nLOGICAL 2 = \"y\" IS TASK 4, 5, 6 END LOGICAL\n\
    ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
    ALPHACOUNT T4 IS THRESHOLD = 2.0, FACTOR = 0.5 END\n";

pub(crate) fn world() -> World {
    World {
        nodes: 3,
        tasks: [(3, 0), (4, 1), (5, 1), (6, 2)].into(),
        groups: [(1, vec![3, 4]), (2, vec![4, 5, 6])].into(),
        thresholds: [(3, 768), (4, 512)].into(),
    }
}

/// An atom, and what its set is: T, G, N, or alone if it has no complement.
fn atom() -> impl Strategy<Value = (String, char, bool)> {
    let of_tasks = select(vec![
        "FAULTY",
        "RUNNING",
        "WAITING",
        "KILLED",
        "ISOLATED",
        "FINISHED",
        "PRESENT",
        "STARTED",
        "RESTARTED",
        "FIRED",
    ]);
    let of_nodes = select(vec!["FAULTY", "RUNNING", "DOWN", "ISOLATED", "PRESENT", "REBOOTED"]);
    prop_oneof![
        (of_tasks.clone(), select(vec!["T3", "T4", "T5", "T6"])).prop_map(|(status, of)| (
            format!("{status} {of}"),
            'T',
            true
        )),
        (of_tasks.clone(), select(vec!["T*", "G1", "G2"])).prop_map(|(status, of)| (
            format!("{status} {of}"),
            'T',
            false
        )),
        (of_tasks, Just("G*")).prop_map(|(status, of)| (format!("{status} {of}"), 'G', false)),
        select(vec!["TRANSIENT T3", "TRANSIENT T4"]).prop_map(|it| (it.to_owned(), 'T', true)),
        select(vec!["TRANSIENT T*", "TRANSIENT G1"]).prop_map(|it| (it.to_owned(), 'T', false)),
        (of_nodes.clone(), select(vec!["N0", "N1", "N2"])).prop_map(|(status, of)| (
            format!("{status} {of}"),
            'N',
            true
        )),
        of_nodes.prop_map(|status| (format!("{status} N*"), 'N', false)),
    ]
}

fn sum() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0_u8..9).prop_map(|number| number.to_string()),
        select(vec![
            "VAL(A)", "VAL(B)", "ERRN(T3)", "ERRN(G2)", "ERRN(N1)", "ERRT(T4)", "ERRT(G2)"
        ])
        .prop_map(str::to_owned),
        select(vec!["PHASE(T5)", "PHASE(T3)"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), select(vec!["+", "-", "*", "/"]), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            inner.prop_map(|inner| format!("-{inner}")),
        ]
    })
}

fn compared() -> impl Strategy<Value = String> {
    let comparison = select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let both = (sum(), comparison.clone(), sum());
    let decimal = (0..4_u8, 0..1_000_u16).prop_map(|(whole, parts)| format!("{whole}.{parts:03}"));
    let beside =
        prop_oneof![decimal, sum(), select(vec!["ALPHA(T4)", "4"]).prop_map(str::to_owned)];
    prop_oneof![
        1 => (comparison.clone(), beside.clone())
            .prop_map(|(it, sum)| format!("ALPHA(T3) {it} {sum}")),
        1 => (beside, comparison).prop_map(|(sum, it)| format!("{sum} {it} ALPHA(T4)")),
        3 => both.prop_map(|(left, comparison, right)| format!("{left} {comparison} {right}")),
        1 => (0..3_u8).prop_map(|node| format!("IS_MANAGER(N{node})")),
    ]
}

/// A change of state on a set that an atom of this sort keeps, or on a name.
fn change(number: usize, kind: char, is_alone: bool) -> BoxedStrategy<String> {
    let verbs = match kind {
        'N' => vec!["RESTART", "ISOLATE", "RELEASE", "STOP"],
        _ => vec!["RESTART", "STOP", "ISOLATE", "START", "RELEASE"],
    };
    let mut aims = vec![format!("@{number}"), format!("@{number} AND WARN T5")];
    if !is_alone {
        aims.extend([format!("~{number}"), format!("~{number} AND WARN G1")]);
    }
    let set = (select(verbs), select(aims)).prop_map(|(verb, aim)| format!("{verb} {aim}"));
    let mut up = Vec::new();
    if kind != 'N' {
        up.push(format!("ISOLATE N${number}"));
    }
    if kind == 'T' {
        up.push(format!("RESTART G${number}"));
    }
    if up.is_empty() { set.boxed() } else { prop_oneof![4 => set, 1 => select(up)].boxed() }
}

fn plain_action() -> impl Strategy<Value = String> {
    prop_oneof![
        (select(vec!["RESTART", "STOP", "START"]), select(vec!["T3", "T6", "G1"]))
            .prop_map(|(verb, of)| format!("{verb} {of}")),
        (select(vec!["A", "B"]), sum()).prop_map(|(letter, sum)| format!("LET {letter} = {sum}")),
        sum().prop_map(|sum| format!("SEND {sum} T4")),
        select(vec!["REMOVE ANY T* FROM ERRORLIST", "REMOVE 1 G2 FROM ERRORLIST"])
            .prop_map(|it| it.replace("T*", "T5")),
        select(vec!["CLEAR T3", "CLEAR T4", "ISOLATE N1", "RESTART N0"]).prop_map(str::to_owned),
    ]
}

/// A section with two arms and ELSE; the actions of an arm use its sets.
fn section(depth: u32) -> BoxedStrategy<String> {
    let inner = if depth == 0 {
        Just(String::new()).boxed()
    } else {
        prop_oneof![2 => Just(String::new()), 1 => section(depth - 1)].boxed()
    };
    let first = (atom(), atom(), select(vec!["AND", "OR"]), any::<bool>());
    let guards = (first, compared(), atom());
    (guards, vec(plain_action(), 0..3), inner)
        .prop_flat_map(|(((one, two, operator, is_not), compared, three), plain, inner)| {
            let not = if is_not { "NOT " } else { "" };
            // The third is under NOT and keeps no set.
            let guard = format!("{} {operator} {} {operator} {not}({compared})", one.0, two.0);
            let second = format!("NOT {} OR {compared}", three.0);
            let uses = (change(1, one.1, one.2), change(2, two.1, two.2), change(1, one.1, one.2));
            (Just((guard, second, plain, inner)), uses)
        })
        .prop_map(|((guard, second, plain, inner), (one, two, other))| {
            let plain = plain.join("\n");
            format!(
                "IF [ {guard} ] THEN\n{one}\n{inner}\n{plain}\n{two}\nELIF [ {second} ] THEN\n\
                 {plain}\n{other}\nELSE\n{other}\nFI\n"
            )
        })
        .boxed()
}

pub(crate) fn sections() -> impl Strategy<Value = String> {
    vec(section(1), 1..4).prop_map(|sections| sections.concat())
}

fn task_fact() -> impl Strategy<Value = TaskFact> {
    let state = select(vec![
        TaskState::Waiting,
        TaskState::Running,
        TaskState::Killed,
        TaskState::Isolated,
        TaskState::Finished,
    ]);
    let counts = (0..4_u32, 0..4_u32, 0..9_u16, 0..5_u64);
    let others = (0..1_200_u16, -3..4_i32, 0..2_u32, 0..2_u32, any::<bool>());
    (state, counts, others).prop_map(|(state, counts, others)| {
        let (errors, answered, error_kind, at) = counts;
        let (alpha, phase, starts, restarts, has_fired) = others;
        TaskFact {
            state,
            errors,
            answered: answered.min(errors),
            error_kind,
            error_at: Instant(at),
            alpha,
            phase,
            starts,
            restarts,
            has_fired,
        }
    })
}

pub(crate) fn facts() -> impl Strategy<Value = Facts> {
    let node = any::<[bool; 4]>().prop_map(|[is_member, is_removed, is_isolated, has_rebooted]| {
        NodeFact { is_member, is_removed, is_isolated, has_rebooted }
    });
    let (nodes, tasks) = (vec(node, 3), vec(task_fact(), 4));
    (nodes, tasks, 0..3_u8).prop_map(|(nodes, tasks, manager)| {
        let mut facts = Facts { manager, ..Facts::default() };
        facts.nodes.copy_from_slice(&nodes);
        facts.tasks[3..7].copy_from_slice(&tasks);
        facts
    })
}

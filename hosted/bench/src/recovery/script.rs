//! The scripts that are measured.
//!
//! ```text
//!   each task     a failure, three ways │ a spare │ a threshold │ phases │ a watchdog │ a start
//!   each group    has it failed as a whole      each node    has it returned, does it fail often
//!   all           what is isolated is released
//! ```

use std::fmt::{Display, Write};

use weft_core::recovery::Rcode;

use super::facts::TASKS;
use crate::error::BenchError;

/// Tasks of one node, and of one group.
pub(super) const TOGETHER: usize = 4;
/// The tasks about which a script of 3,000 words can say as much as one of 1,000 about its own.
const TASKS_OF_LONGEST: usize = 36;
/// The most words of an image.
const WORDS: u16 = 3_000;
/// The words of a section that only writes to the chronicle, without those that write.
const FRAME: u16 = 3;

/// An image, and the script that it was translated from.
#[derive(Debug)]
pub(super) struct SizedImage {
    pub(super) text: String,
    pub(super) bytes: Vec<u8>,
    pub(super) words: u16,
}

impl SizedImage {
    fn new(text: String) -> Result<Self, BenchError> {
        let bytes = translate(&text)?;
        let words = Rcode::new_checked(&bytes).map_err(refused)?.header().words;
        Ok(Self { text, bytes, words })
    }

    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

/// The script that is evaluated: it looks at 1,000 words where no guard holds.
pub(super) fn looked_at() -> Result<SizedImage, BenchError> {
    SizedImage::new(text(TASKS))
}

/// A script of more than 1,000 lines, and as many words as an image may have.
pub(super) fn longest() -> Result<SizedImage, BenchError> {
    let text = text(TASKS_OF_LONGEST);
    let part = SizedImage::new(text.clone())?;
    let lines = usize::from(WORDS.saturating_sub(part.words + FRAME));
    let filling = "LOG \"no task of group 0 runs\"\n".repeat(lines);
    SizedImage::new(format!("{text}IF [ KILLED G0 ] THEN\n{filling}FI\n"))
}

/// An image of `text`.
pub(super) fn translate(text: &str) -> Result<Vec<u8>, BenchError> {
    let mut reader = |_: &str, _: &str| Err("a measured script includes no other".to_owned());
    let translation = weft_rl::translate("measured.rl", text, None, &mut reader);
    let cause = translation.image.is_none().then(|| translation.render());
    translation.image.ok_or_else(|| BenchError::Script { cause: cause.unwrap_or_default() })
}

/// What the core says against a script.
pub(super) fn refused(reason: impl Display) -> BenchError {
    BenchError::Script { cause: reason.to_string() }
}

/// A script about so many tasks.
fn text(tasks: usize) -> String {
    let nodes = tasks.div_ceil(TOGETHER);
    let mut text = format!("DEFINE 0 = MANAGER\nDEFINE 1-{} = BACKUP\n", nodes - 1);
    let mut put = |section: String| text += &section;
    for task in 0..tasks {
        put(declaration(task));
    }
    for group in 0..nodes {
        put(logical(group));
    }
    for task in 0..tasks {
        put(of_task(task));
    }
    for node in 0..nodes {
        put(of_group_and_node(node));
    }
    put("IF [ KILLED N* ] THEN\nWARN T0\nFI\nIF [ ISOLATED T* ] THEN\nRELEASE @1\nFI\n".to_owned());
    text
}

fn declaration(task: usize) -> String {
    let (node, place) = (task / TOGETHER, task % TOGETHER);
    format!(
        "TASK {task} = \"worker{task}\" IS NODE {node}, TASKID {place}\n\
         ALPHACOUNT T{task} IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 1 S END\n"
    )
}

fn logical(group: usize) -> String {
    let first = group * TOGETHER;
    let members: Vec<String> = (first..first + TOGETHER).map(|task| task.to_string()).collect();
    format!("LOGICAL {group} = \"crew{group}\" IS TASK {} END LOGICAL\n", members.join(", "))
}

fn of_task(task: usize) -> String {
    let (node, other) = (task / TOGETHER, task ^ 1);
    let mut text = format!(
        "IF [ TRANSIENT T{task} ] THEN\nRESTART T{task}\n\
         ELIF [ FAULTY T{task} AND ERRN(T{task}) > 6 ] THEN\nISOLATE T{task} AND WARN T{other}\n\
         ELIF [ FAULTY T{task} ] THEN\nSTOP T{task}\nFI\n"
    );
    let mut put = |guard: String, action: String| {
        // Writing to a text cannot fail.
        let _ = write!(text, "IF [ {guard} ] THEN\n{action}\nFI\n");
    };
    put(
        format!("(KILLED T{task} AND RUNNING T{other}) AND NOT ISOLATED N{node}"),
        format!("START T{task}"),
    );
    put(
        format!("(ERRN(T{task}) > 4 AND ERRT(T{task}) == 7) AND ALPHA(T{task}) >= 2.5"),
        format!("ISOLATE T{task}"),
    );
    put(
        format!(
            "(PHASE(T{task}) == 2 AND NOT RUNNING T{other}) OR \
             (PHASE(T{task}) == 3 AND RUNNING T{other})"
        ),
        format!("SEND 1 T{task}"),
    );
    put(
        format!("FIRED T{task} AND (PRESENT N{node} OR IS_MANAGER(N{node}))"),
        format!("CLEAR T{task}"),
    );
    put(format!("STARTED T{task} AND ERRT(T{task}) == 9"), format!("WARN T{other}"));
    text
}

fn of_group_and_node(number: usize) -> String {
    format!(
        "IF [ FAULTY G{number} AND NOT PRESENT G{number} ] THEN\nWARN G{number}\nFI\n\
         IF [ REBOOTED N{number} AND FAULTY N{number} ] THEN\nWARN N{number}\nFI\n\
         IF [ PRESENT N{number} AND ERRN(N{number}) > 12 ] THEN\nRESTART N{number}\nFI\n"
    )
}

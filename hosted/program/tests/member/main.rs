//! The member from inside: this test starts itself as the program of a cluster, in one role after
//! the other.
//!
//! ```text
//!   this test ── weft run -n 2 -- this test ROLE ──▶ roles that judge themselves, and say so
//! ```

mod spawned;
mod tasks;
mod tensors;
mod together;
mod working;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weft::Member;
use weft::member::{Event, JoinError, PutError, Rank};
use weft::process::{Pidfd, Signal};

#[global_allocator]
static ALLOCATOR: weft::CountingAllocator = weft::CountingAllocator;

type Outcome = Result<(), Box<dyn Error>>;

/// How long anything may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// The messages of the measured exchange.
const MESSAGES: u64 = 1_000_000;

/// What a thread of a Rust program has if it asks for nothing else; the main thread has more.
const STACK: usize = 2 << 20;

fn main() -> ExitCode {
    let role = std::thread::Builder::new().stack_size(STACK).spawn(play).expect("a thread");
    role.join().expect("a role returns its error")
}

fn play() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("twice") => twice(),
        Some("forked") => forked(),
        Some("quiet") => quiet(),
        Some("stopped") => stopped(),
        Some("mute") => mute(),
        Some("finished") => finished(),
        Some("views") => views(),
        Some("shared") => spawned::shared(),
        Some("waiting") => spawned::waiting(),
        Some("together") => together::together(),
        Some("tensors") => tensors::tensors(),
        Some("tasks") => tasks::tasks(),
        Some("works") => working::works(),
        Some("overruns") => working::overruns(),
        // Filters of the test harness mean nothing here.
        _ => all(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// `weft run` of this program in a role.
struct Run {
    child: Child,
    place: std::path::PathBuf,
}

impl Run {
    fn start(role: &str) -> Result<Self, Box<dyn Error>> {
        let place = format!("m{}-{role}", std::process::id());
        let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        std::fs::create_dir_all(&place)?;
        std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let file = place.join("c.toml");
        let groups = u8::from(role == "shared" || role == "together");
        let (role, path) = role.split_once('.').unwrap_or((role, "hand_over"));
        let pool_mib = u8::from(role == "tensors");
        let pair = "[[groups]]\nname = \"pair\"\nmembers = [1, 0]\n";
        let pair = if groups == 1 { pair } else { "" };
        let tensors = format!("rendezvous.pool_mib = {pool_mib}\nrendezvous.path = \"{path}\"\n");
        let text = format!("nodes = 2\ngroup.count = {groups}\n{tensors}");
        let tasks = if role == "tasks" { tasks::TASKS } else { "" };
        std::fs::write(place.join("c.rl"), tasks::SCRIPT)?;
        std::fs::write(&file, format!("name = \"t\"\n{text}{pair}{tasks}"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_weft"))
            .arg("run")
            .arg(&file)
            .arg("--")
            .arg(std::env::current_exe()?)
            .arg(role)
            .env("WEFT_RUNTIME_DIR", &place)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { child, place })
    }

    /// Its exit status and all that it printed.
    fn end(self) -> Result<(Option<i32>, String), Box<dyn Error>> {
        let pidfd = Pidfd::from_child(&self.child)?;
        let watchdog = std::thread::spawn(move || {
            if pidfd.wait_dead(PATIENCE).is_ok_and(|it| it == weft::process::Liveness::Alive) {
                let _ = pidfd.kill();
            }
        });
        let said = self.child.wait_with_output()?;
        let _ = watchdog.join();
        std::fs::remove_dir_all(&self.place)?;
        let text = [said.stdout, said.stderr].concat();
        Ok((said.status.code(), String::from_utf8(text)?))
    }
}

fn all() -> Outcome {
    for (test, role, says) in [
        ("m2_a_process_joins_once", "twice", "joined once"),
        ("m2_a_fork_of_a_member_is_no_member", "forked", "not joined"),
        (
            "m3_a_member_that_polls_makes_no_system_call_and_allocates_nothing",
            "quiet",
            "allocations: 0",
        ),
        ("m3_threads_share_a_member_whose_loop_has_its_own", "shared", "all taken"),
        ("gt10_members_enter_barriers_and_all_gathers", "together", "left two barriers"),
        ("rz12_tensors_are_sent_received_refused_and_cancelled", "tensors", "all tensors"),
        ("rz3_tensors_are_read_and_the_long_ones_in_parts", "tensors.read", "all tensors"),
        ("rz3_tensors_are_written_and_the_long_ones_in_parts", "tensors.write", "all tensors"),
        ("rl10_members_vote_for_the_tasks_of_their_nodes", "tasks", "has voted"),
        ("m8_a_step_that_was_announced_is_no_hang", "works", "has worked"),
        ("m7_a_put_to_a_program_that_has_finished_is_refused", "finished", "the other finishes"),
    ] {
        let (status, said) = Run::start(role)?.end()?;
        if status != Some(0) || said.matches(says).count() != 2 {
            return Err(format!("{test}: status {status:?}, not twice {says:?} in\n{said}").into());
        }
        println!("test {test} ... ok");
    }
    members_show_the_same_views_in_one_order()?;
    a_stop_ends_the_calls_that_wait()?;
    a_member_that_is_stopped_ends_in_order()?;
    a_member_that_hangs_is_killed("m8_a_member_that_never_polls_is_killed", "mute")?;
    a_member_that_hangs_is_killed("m8_a_step_that_overruns_its_limit_is_killed", "overruns")
}

/// Member 1 dies once. Both print the views that they show, until both show its next incarnation.
fn members_show_the_same_views_in_one_order() -> Outcome {
    let (status, said) = Run::start("views")?.end()?;
    let (mut contents, mut last) = (BTreeMap::new(), BTreeMap::new());
    for line in said.lines() {
        let Some((who, view)) = line.split_once(" view ") else { continue };
        let (number, members) = view.split_once(' ').ok_or("a view has members")?;
        let number: u64 = number.parse()?;
        let shown = contents.entry(number).or_insert((members, 0));
        shown.1 += 1;
        let is_same = shown.0 == members;
        let rises = last.insert(who, number).is_none_or(|before| before < number);
        if !is_same || !rises {
            return Err(format!("m6_views: {line:?} in\n{said}").into());
        }
    }
    let is_last = |number| contents.last_key_value().is_some_and(|(last, _)| last == number);
    let agree = last.len() == 2 && last.values().all(is_last);
    if status != Some(0) || !agree || !said.contains("fenced before: true") {
        return Err(format!("m6_views: status {status:?} in\n{said}").into());
    }
    println!("test m6_members_show_the_same_views_in_one_order ... ok");
    Ok(())
}

fn views() -> Outcome {
    let mut member = Member::join()?;
    let (first, mut removed) = (member.incarnation(), false);
    loop {
        member.wait(Duration::from_millis(10))?;
        while let Some(event) = member.next_event() {
            removed |= matches!(event, Event::Removed { .. });
            let Event::View { number, members } = event else { continue };
            let Some(view) = member.view().filter(|view| view.number() == number) else { continue };
            let of = |rank| view.incarnation(rank).map(|it| it.to_string());
            println!("view {} {members:?} {:?} {:?}", number.to_bits(), of(Rank(0)), of(Rank(1)));
            let has_returned = view.incarnation(Rank(1)).is_some_and(|it| it.generation > 0);
            if members.count() == 2 && !has_returned && member.rank() == Rank(1) {
                assert!(first == member.incarnation() && !member.is_view_stale());
                std::process::abort();
            }
            if has_returned {
                println!("fenced before: {}", removed || member.rank() == Rank(1));
                return both_are_there(&mut member);
            }
        }
    }
}

/// Returns once the other program has come so far.
fn both_are_there(member: &mut Member) -> Outcome {
    let (other, mut sent, mut heard) = (Rank(1 - member.rank().0), false, false);
    loop {
        sent = sent || member.put(other, b"here").is_ok();
        member.poll()?;
        member.events().for_each(drop);
        if !heard && let Some(receipt) = member.take().map(|it| it.receipt) {
            member.release(receipt)?;
            heard = true;
        }
        if sent && heard && member.unput(other) == 0 {
            return Ok(());
        }
    }
}

fn a_member_that_is_stopped_ends_in_order() -> Outcome {
    stop("m5_a_member_that_is_stopped_ends_in_order", "stopped", "ended in order", 2)
}

fn a_stop_ends_the_calls_that_wait() -> Outcome {
    stop("m3_a_stop_ends_the_calls_that_wait", "waiting", "no longer waits", 6)
}

/// Orders a cluster in `role` to end: its members say `says` so many times, and nothing fails.
fn stop(test: &str, role: &str, says: &str, times: usize) -> Outcome {
    let mut run = Run::start(role)?;
    let stdout = run.child.stdout.take().ok_or("it is piped")?;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    for _ in 0..2 {
        let line = lines.next().ok_or("it ended before it ran")??;
        assert!(line.ends_with("runs"), "{line}");
    }
    Pidfd::from_child(&run.child)?.signal(Signal::TERM)?;
    let rest: Vec<String> = lines.collect::<Result<_, _>>()?;
    let (status, said) = run.end()?;
    let ended = rest.iter().filter(|line| line.ends_with(says)).count();
    if (status, ended) != (Some(130), times) {
        return Err(format!("{test}: status {status:?}, {rest:?}\n{said}").into());
    }
    println!("test {test} ... ok");
    Ok(())
}

/// The second incarnation polls.
fn a_member_that_hangs_is_killed(test: &str, role: &str) -> Outcome {
    let (status, said) = Run::start(role)?.end()?;
    if status != Some(0) || !said.contains("node 1: its program was killed by signal 9") {
        return Err(format!("{test}: status {status:?}\n{said}").into());
    }
    println!("test {test} ... ok");
    Ok(())
}

/// Polls until the other member has joined.
fn meet(member: &mut Member) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while member.members().count() < 2 {
        assert!(Instant::now() < deadline, "alone");
        member.wait(Duration::from_millis(10))?;
    }
    Ok(())
}

fn twice() -> Outcome {
    let mut member = Member::join()?;
    assert!(matches!(Member::join(), Err(JoinError::AlreadyJoined)));
    meet(&mut member)?;
    println!("joined once");
    Ok(())
}

fn forked() -> Outcome {
    let member = Member::join()?;
    // SAFETY: the child makes one call that reads an atomic, and exits.
    match unsafe { libc::fork() } {
        0 => {
            let refused = matches!(Member::join(), Err(JoinError::Forked));
            // SAFETY: it ends this process, and runs nothing of it.
            unsafe { libc::_exit(i32::from(!refused)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the child is this process' own, and the number lives on this stack.
            let reaped = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((reaped, status), (child, 0), "it was refused as a fork");
        }
    }
    drop(member);
    println!("not joined");
    Ok(())
}

/// Numbers to the other member and back: what that allocates, in a thread that the kernel kills
/// with its first system call.
fn quiet() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    // What an exchange allocates once, and the steps that follow an admission.
    exchange(&mut member, MESSAGES / 20)?;
    let warm_until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < warm_until {
        member.poll()?;
    }
    // To wake a member that sleeps is a system call: from here to the end none does.
    both_are_there(&mut member)?;
    let measured = Arc::new(Mutex::new(None));
    let is_measured = Arc::new(AtomicBool::new(false));
    let (slot, done) = (Arc::clone(&measured), Arc::clone(&is_measured));
    std::thread::spawn(move || {
        forbid_system_calls();
        let before = weft::allocations::allocations();
        let exchanged = exchange(&mut member, MESSAGES);
        let allocations = weft::allocations::allocations() - before;
        if let (Ok(()), Ok(mut slot)) = (exchanged, slot.lock()) {
            *slot = Some((member, allocations));
        }
        done.store(true, Ordering::Release);
        loop {
            // It may not even end.
            std::hint::spin_loop();
        }
    });
    while !is_measured.load(Ordering::Acquire) {
        // The thread may make no system call, so none that would wake this one.
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let measured = measured.lock().map_err(|_| "a panic")?.take();
    let (mut member, allocations) = measured.ok_or("an error in the measured exchange")?;
    println!("allocations: {allocations}");
    both_are_there(&mut member)
}

/// Puts so many numbers to the other member, and takes as many.
fn exchange(member: &mut Member, messages: u64) -> Outcome {
    let other = Rank(1 - member.rank().0);
    let (mut sent, mut seen) = (0, 0);
    while sent < messages || seen < messages || member.unput(other) > 0 {
        while sent < messages {
            match member.put(other, &(sent + 1_u64).to_le_bytes()) {
                Ok(()) => sent += 1,
                Err(PutError::Full { .. } | PutError::NotAMember) => break,
                Err(error) => return Err(error.into()),
            }
        }
        member.poll()?;
        while seen < messages
            && let Some(message) = member.take()
        {
            seen += 1;
            assert_eq!(message.payload, seen.to_le_bytes());
            let receipt = message.receipt;
            member.release(receipt)?;
        }
        while member.next_event().is_some() {}
    }
    Ok(())
}

/// From now on the kernel kills this process with the first system call of this thread.
fn forbid_system_calls() {
    let return_constant = u16::try_from(libc::BPF_RET | libc::BPF_K).expect("a code");
    let mut kill = libc::sock_filter {
        code: return_constant,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_KILL_PROCESS,
    };
    let filter = libc::sock_fprog { len: 1, filter: &raw mut kill };
    // SAFETY: the call takes numbers alone.
    let privileged = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(privileged, 0);
    let (mode, filter) = (libc::SECCOMP_MODE_FILTER, &raw const filter);
    // SAFETY: the kernel copies one instruction, which lives on this stack.
    let filtered = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, filter) };
    assert_eq!(filtered, 0);
}

/// Member 1 finishes; member 0, which might be started again after that, learns so from its put.
fn finished() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    while member.rank() == Rank(0) {
        match member.put(Rank(1), b"one more") {
            Err(PutError::Finished) => break,
            Ok(()) | Err(PutError::Full { .. } | PutError::NotAMember) => {}
            Err(error) => return Err(error.into()),
        }
        member.wait(Duration::from_millis(10))?;
        while member.next_event().is_some() {}
    }
    println!("the other finishes");
    Ok(())
}

fn stopped() -> Outcome {
    let mut member = Member::join()?;
    println!("runs");
    while !member.is_stopping() {
        member.wait(Duration::MAX)?;
        for event in member.events() {
            if event == Event::Stop {
                println!("ended in order");
            }
        }
    }
    Ok(())
}

fn mute() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    if member.rank() == Rank(1) && member.incarnation().0 == 1 {
        std::thread::park_timeout(PATIENCE);
        return Err("it was not killed".into());
    }
    Ok(())
}

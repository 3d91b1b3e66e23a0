//! One turn of the supervisor's loop: wait for any input, then control, then clients, then time.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use weft_core::time::Instant;

use super::deadlines::Timer;
use super::event::{SupervisorEvent, SupervisorInbox};
use super::{Supervisor, SupervisorFlow};
use crate::clock::now_ns;
use crate::node::NodeError;
use crate::readiness::await_any;
use crate::runtime_dir::ClaimedDir;

/// The longest sleep of the loop, whatever the deadlines.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// How often the node checks that its directory still belongs to it.
const LOOK_HOME_EVERY_NS: u64 = 100_000_000;
/// The most events that are handled in one turn.
const EVENTS_A_TURN: usize = 1024;
/// The most requests of clients that are read in one turn, and their payload bytes.
const REQUESTS_A_TURN: usize = 64;
const PAYLOAD_A_TURN: usize = 512 * 1024;

/// The result of a wait.
#[derive(Default)]
struct Ready {
    /// The component has sent something, or can be sent what waits.
    link: bool,
    /// The process of the component has ended.
    ended: bool,
    /// The clients that have sent something, have left or take replies; 0 is one that connects.
    clients: Vec<(u64, PollFlags)>,
}

impl Supervisor {
    pub(super) fn run(
        &mut self,
        inbox: &SupervisorInbox,
        home: &ClaimedDir,
    ) -> Result<(), NodeError> {
        let (mut first, mut look_at_ns) = (0, 0);
        loop {
            let ready = self.wait(inbox);
            self.progress.note_supervisor();
            let now_ns = now_ns();
            if now_ns >= look_at_ns {
                look_at_ns = now_ns + LOOK_HOME_EVERY_NS;
                home.check_kept().map_err(NodeError::Directory)?;
            }
            let mut flow = self.take_control(inbox, &ready);
            if flow == SupervisorFlow::On {
                flow = self.serve_clients(&ready, &mut first);
            }
            self.take_time();
            self.flush_link();
            if flow == SupervisorFlow::End {
                return Ok(());
            }
            if let Some(over) = self.program.take_over() {
                return over;
            }
        }
    }

    /// Waits for any input, or for the next deadline.
    fn wait(&mut self, inbox: &SupervisorInbox) -> Ready {
        let timeout = self.timeout();
        let none = PollFlags::empty();
        let mut fds = vec![PollFd::new(inbox, PollFlags::IN)];
        if let Some(component) = &self.component {
            let mut flags = none;
            flags.set(PollFlags::IN, component.speaks);
            flags.set(PollFlags::OUT, component.speaks && !component.outgoing.is_empty());
            fds.push(PollFd::new(&component.spawned.pidfd, PollFlags::IN));
            if component.speaks {
                fds.push(PollFd::new(&component.link, flags));
            }
        }
        let own = fds.len();
        let watched: Vec<_> = self.clients.watched(now_ns()).collect();
        fds.extend(watched.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
        if let Err(errno) = await_any(&mut fds, timeout) {
            // Sleeps nevertheless, so that the loop does not spin; the next turn tries again.
            tracing::error!(%errno, "the supervisor cannot wait for its sockets");
            std::thread::park_timeout(SLEEP_MAX);
        }
        let shows = |at: usize| fds.get(at).is_some_and(|fd| fd.revents() != none);
        let (ended, link) = (own > 1 && shows(1), own > 2 && shows(2));
        let clients = std::iter::zip(&watched, &fds[own..]);
        let clients = clients.map(|((client, ..), fd)| (*client, fd.revents()));
        Ready { link, ended, clients: clients.filter(|(_, flags)| *flags != none).collect() }
    }

    /// Handles all that the node itself needs.
    fn take_control(&mut self, inbox: &SupervisorInbox, ready: &Ready) -> SupervisorFlow {
        if let Err(errno) = inbox.hush() {
            tracing::error!(%errno, "the bell cannot be silenced");
        }
        while let Ok((boot, order)) = inbox.orders.try_recv() {
            self.handle_order(boot, order);
        }
        for _ in 0..EVENTS_A_TURN {
            match inbox.events.try_recv() {
                Ok(SupervisorEvent::Stop) => return SupervisorFlow::End,
                Ok(SupervisorEvent::Bootstrap(event)) => self.handle_bootstrap_event(event),
                Ok(SupervisorEvent::TaskEnded(run)) => self.tasks.handle_ended(run, now_ns()),
                Err(_) => break,
            }
        }
        if ready.link {
            self.hear_component();
            self.flush_link();
        }
        // If a component was started meanwhile, it has not ended.
        if ready.ended && self.has_component_ended() {
            self.reap_component();
        }
        SupervisorFlow::On
    }

    fn has_component_ended(&self) -> bool {
        let is_dead = |component: &super::StartedComponent| component.spawned.pidfd.is_dead();
        self.component.as_ref().is_some_and(|it| matches!(is_dead(it), Ok(true)))
    }

    /// Sends replies to the clients and reads their requests, a bounded number in each turn,
    /// beginning with the client after the last one that was served.
    fn serve_clients(&mut self, ready: &Ready, first: &mut u64) -> SupervisorFlow {
        let now_ns = now_ns();
        let (mut requests, mut payload) = (0, 0);
        let (before, behind): (Vec<_>, Vec<_>) =
            ready.clients.iter().copied().partition(|(client, _)| *client < *first);
        for (client, flags) in behind.into_iter().chain(before) {
            if client == 0 {
                self.clients.accept(now_ns);
                continue;
            }
            if flags.contains(PollFlags::OUT) {
                self.clients.flush(client, now_ns);
            }
            while requests < REQUESTS_A_TURN && payload < PAYLOAD_A_TURN {
                let Some((ticket, want, fds)) = self.clients.hear(client, flags, now_ns) else {
                    break;
                };
                (requests, payload) = (requests + 1, payload + want.payload_len());
                *first = client + 1;
                if self.handle_request(ticket, want, fds) == SupervisorFlow::End {
                    return SupervisorFlow::End;
                }
            }
        }
        self.clients.end_unread(now_ns);
        self.take_leave();
        SupervisorFlow::On
    }

    /// Handles the expired deadlines.
    fn take_time(&mut self) {
        let now_ns = now_ns();
        self.deadlines.pass(now_ns);
        self.supervision.handle_time(Instant(now_ns));
        self.obey();
        self.reach.forget_dead();
        self.tasks.handle_time(now_ns);
        self.tell_isolated();
        self.tasks.keep_note();
        self.tell_all_named();
        self.pass_starts(now_ns);
        self.tell_changes();
        self.learn_past(now_ns);
        self.pass_turn(now_ns);
        self.answer_watchers(now_ns);
        self.answer_guests(now_ns);
        self.admit_tensors(now_ns);
        self.answer_tensors(now_ns);
        self.run_hooks();
        self.note_calls();
        if self.clients.next_deadline_ns().is_some() {
            let status = self.status();
            self.clients.answer_awaits(&status, now_ns);
        }
    }

    /// How long the loop may sleep: until the earliest deadline in its wheel.
    fn timeout(&mut self) -> Duration {
        self.deadlines.keep(Timer::Fence, self.supervision.poll_timeout().map(|at| at.0));
        self.deadlines.keep(Timer::Clients, self.clients.next_deadline_ns());
        self.deadlines.keep(Timer::Tensors, self.tensors.next_deadline_ns());
        self.deadlines.keep(Timer::SendQueue, self.broadcasts.send_queue.next_deadline_ns());
        self.deadlines.keep(Timer::Tasks, self.tasks.next_deadline_ns());
        self.deadlines.keep(Timer::Starts, self.starts.poll_timeout().map(|at| at.0));
        self.deadlines.sleep(now_ns(), SLEEP_MAX)
    }
}

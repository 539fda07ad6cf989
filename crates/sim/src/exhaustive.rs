//! Exhaustive exploration of small plans: every possible next input, down to a depth.

use crate::oracle::Oracle;
use crate::plan::{ITEMS, VERDICT};
use crate::world::{REPLAYS, run_id, summary};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{
    Choice, Effect, Event, Failure, GateDecision, Input, JobKey, Outcome, Program, Run, Start, StepPhase,
    Timestamp, View,
};
use windlass_ir::Value;

/// The limits of the exploration.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub depth: u32,
    pub states: u64,
}

#[derive(Clone)]
struct Branch {
    run: Run,
    view: View,
    oracle: Oracle,
    journal: Vec<Event>,
    now: Timestamp,
    log: Vec<String>,
}

/// Tries every possible input to a run of this program, and returns the number of states.
pub fn explore(program: &Arc<Program>, bounds: Bounds) -> u64 {
    let mut branch = Branch {
        run: Run::new(run_id(), program.clone()),
        view: View::new(program.clone()),
        oracle: Oracle::new(windlass_ir::Plan::clone(&program.plan), run_id()),
        journal: Vec::new(),
        now: Timestamp(0),
        log: Vec::new(),
    };
    let inputs = Value::map([(VERDICT, Value::text("")), (ITEMS, Value::list([Value::Int(1)]))]);
    branch.take(Input::Start(Box::new(Start::with(inputs))));
    let mut seen = 0;
    branch.go_on(program, bounds.depth, bounds.states, &mut seen);
    seen
}

impl Branch {
    fn go_on(&self, program: &Arc<Program>, depth: u32, states: u64, seen: &mut u64) {
        *seen += 1;
        if depth == 0 || *seen >= states || self.run.outcome().is_some() {
            return;
        }
        let moves = self.moves();
        assert!(!moves.is_empty(), "no input is possible:\n{}", self.log.join("\n"));
        for (later, input) in moves {
            let mut next = self.clone();
            next.now = later;
            next.take(input);
            next.check(program);
            next.go_on(program, depth - 1, states, seen);
        }
    }

    fn take(&mut self, input: Input) {
        self.log.push(format!("{input:?}"));
        let mut input = Some(input);
        while let Some(next) = input.take() {
            let answer = self.run.handle(self.now, next.clone()).expect("every possible input is accepted");
            answer.events.iter().for_each(|event| self.view.apply(event).expect("the run accepted it"));
            let last_at = self.journal.last().map_or(self.now, |last| last.at);
            self.journal.extend(answer.events);
            self.oracle.accept(self.now.max(last_at), last_at, &next, false);
            input = answer.again.then_some(Input::Tick);
        }
    }

    /// Every possible input: all answers to all jobs, decisions, signals, and time.
    fn moves(&self) -> Vec<(Timestamp, Input)> {
        let mut moves = Vec::new();
        for effect in self.run.outstanding() {
            match effect {
                Effect::Dispatch(job) => {
                    let job = job.key;
                    let done = Outcome::Done(Value::map([("n", Value::Int(1))]));
                    moves.push(Input::Reported { job: job.clone(), outcome: done });
                    let failed = Outcome::Failed(Failure::new("transient", "it broke"));
                    moves.push(Input::Reported { job: job.clone(), outcome: failed });
                    moves.push(Input::Lost { job, started: true });
                }
                Effect::Abort(job) => {
                    moves.push(Input::Reported { job, outcome: Outcome::Cancelled("told to".into()) });
                }
                // These plans use no shared resources.
                Effect::Ask { .. }
                | Effect::Release { .. }
                | Effect::Subscribe(_)
                | Effect::Unsubscribe(_)
                | Effect::Conclude(_) => {}
            }
        }
        let mut waits = false;
        for (path, step) in self.view.steps() {
            match &step.phase {
                StepPhase::Asking { .. } => {
                    for (choice, by) in
                        [(Choice::Approve, "cid"), (Choice::Approve, "dan"), (Choice::Reject, "cid")]
                    {
                        let decision =
                            GateDecision { choice, by: by.into(), reason: None, form: Value::Null };
                        let id = format!("{}-{by}", self.log.len()).into();
                        let input = Input::Decide { id, path: path.clone(), decision };
                        if self.run.clone().handle(self.now, input.clone()).is_ok() {
                            moves.push(input);
                        }
                    }
                }
                StepPhase::Waiting { .. } => waits = true,
                StepPhase::Dormant
                | StepPhase::Pending
                | StepPhase::Queued { .. }
                | StepPhase::Running
                | StepPhase::Backoff { .. }
                | StepPhase::Joined
                | StepPhase::Inside
                | StepPhase::Settled(_) => {}
            }
        }
        if waits {
            let value = Value::map([("k", Value::map([("v", Value::Int(1))]))]);
            let (id, name, by) = (format!("s{}", self.log.len()).into(), "go".into(), "eve".into());
            moves.push(Input::Signal { id, name, by, value, to: None });
        }
        let mut moves: Vec<(Timestamp, Input)> = moves.into_iter().map(|input| (self.now, input)).collect();
        moves.extend(self.run.next_deadline().map(|due| (self.now.max(due), Input::Tick)));
        moves
    }

    fn check(&self, program: &Arc<Program>) {
        let log = || self.log.join("\n");
        let replayed = Run::replay(run_id(), program.clone(), &self.journal).expect(REPLAYS);
        assert!(replayed == self.run, "the live run differs from its replay:\n{}", log());
        let owed: BTreeSet<JobKey> = self.run.outstanding().iter().filter_map(Effect::job).cloned().collect();
        assert_eq!(owed, self.oracle.jobs(), "the run waits for unexpected jobs:\n{}", log());
        let outcomes = (self.run.outcome().map(summary), self.oracle.outcome().map(summary));
        assert_eq!(outcomes.0, outcomes.1, "the run ended in an unexpected way:\n{}", log());
    }
}

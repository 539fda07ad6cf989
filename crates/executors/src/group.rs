//! The process group of one job: everything that a command starts and that stays in the group. Signals go to all of
//! it, and it is ended as a whole.

use std::time::Duration;
use tokio::process::Child;
use tokio::time::timeout;

/// Members that survive SIGKILL belong to another user; the wait for them ends after this.
const KILLED_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Sent {
    Terminate,
    Kill,
}

/// Kills the group when dropped, so that a job whose future is dropped leaves nothing behind.
pub struct Group {
    id: Option<system::Id>,
}

impl Group {
    /// The group that a child leads, which was started with `process_group(0)` and has not been waited for.
    pub fn led_by(child: &Child) -> Self {
        Self { id: child.id().and_then(system::id) }
    }

    /// From here on, remaining members may stay.
    pub fn release(mut self) {
        self.id = None;
    }

    /// Ends the leader and all members: SIGTERM, wait, SIGKILL. Pass no leader if it has already been waited for.
    ///
    /// Returns when the leader is gone, however long that takes: as long as it runs there is nothing to report.
    pub async fn end(mut self, mut leader: Option<&mut Child>, grace: Duration) {
        // Searching for members takes longer than signaling; if many jobs end at once, the last would be signaled
        // late.
        if leader.is_some() || self.lives() {
            self.send(Sent::Terminate);
            if timeout(grace, self.gone(&mut leader)).await.is_err() {
                self.send(Sent::Kill);
                if let Some(leader) = &mut leader {
                    // Without process groups. Either error would mean that it is no longer our child.
                    let _ = leader.start_kill();
                    let _ = leader.wait().await;
                }
                // Members of another user cannot be killed, which is the only possible error.
                let _ = timeout(KILLED_WAIT, self.gone(&mut None)).await;
            }
        }
        self.id = None;
    }

    /// There is no notification when the last member of a group ends, so this polls less and less often. The first
    /// check suffices unless something ignores the signal.
    async fn gone(&self, leader: &mut Option<&mut Child>) {
        if let Some(leader) = leader {
            // As above.
            let _ = leader.wait().await;
        }
        let mut pause = Duration::from_millis(1);
        while self.lives() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn send(&self, signal: Sent) {
        if let Some(id) = self.id {
            system::send(id, signal);
        }
    }

    fn lives(&self) -> bool {
        self.id.is_some_and(system::lives)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Sent::Kill);
    }
}

#[cfg(unix)]
mod system {
    use super::Sent;
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    pub type Id = Pid;

    pub fn id(leader: u32) -> Option<Id> {
        i32::try_from(leader).ok().and_then(Pid::from_raw)
    }

    pub fn send(group: Id, signal: Sent) {
        let signal = match signal {
            Sent::Terminate => Signal::TERM,
            Sent::Kill => Signal::KILL,
        };
        // It fails if no member is left, which is the goal.
        let _ = kill_process_group(group, signal);
    }

    pub fn lives(group: Id) -> bool {
        match test_kill_process_group(group) {
            Err(rustix::io::Errno::SRCH) => false,
            // Also true for zombies, which do not matter here.
            Ok(()) | Err(_) => has_running_member(group),
        }
    }

    #[cfg(target_os = "linux")]
    fn has_running_member(group: Id) -> bool {
        let group = group.as_raw_nonzero().get();
        crate::proc::all()
            .map_or(true, |all| all.iter().any(|process| process.group == group && !process.is_dead))
    }

    #[cfg(not(target_os = "linux"))]
    fn has_running_member(_group: Id) -> bool {
        true
    }
}

/// Without process groups only the leader is known, and Tokio ends it when its handle is dropped.
#[cfg(not(unix))]
mod system {
    use super::Sent;

    pub type Id = u32;

    pub fn id(leader: u32) -> Option<Id> {
        Some(leader)
    }

    pub fn send(_group: Id, _signal: Sent) {}

    pub fn lives(_group: Id) -> bool {
        false
    }
}

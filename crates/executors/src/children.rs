//! Processes left by a crashed owner: a file of started process groups, the marks that every child carries, and how
//! leftovers are ended before anything is delivered again.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_engine::{Job, JobKey, RunId};

/// Which delivery of which job a process belongs to.
const JOB: &str = "WINDLASS_JOB";

/// The data folder: run ids are unique only within it, and another folder may have a run with the same name.
pub const FOLDER: &str = "WINDLASS_FOLDER";

/// The folder in the data folder with the files in which commands leave their outputs.
const OUTPUTS: &str = "outputs";

/// Why a process of an earlier owner may still be running. Nothing may be delivered again before it is gone.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    #[error("cannot search for processes of an earlier owner: {0}")]
    Look(#[from] std::io::Error),
    #[error("process {pid}, left by an earlier owner, does not end; kill it, then try again")]
    Stuck { pid: i32 },
}

/// The groups that this owner starts, written without a flush: the file has to outlive the process, not the machine.
#[derive(Debug)]
pub struct Children {
    /// The folder as in the mark.
    folder: PathBuf,
    /// The jobs that the last owner started a process for. `None` after a reboot, because the list may have lost its
    /// last lines.
    earlier: Option<HashSet<String>>,
    #[cfg(target_os = "linux")]
    list: std::sync::Mutex<list::List>,
}

impl Children {
    /// Only the owner of the data folder may do this.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        let earlier = list::started(folder)?;
        #[cfg(not(target_os = "linux"))]
        let earlier = None;
        // Files that a crash has left behind.
        let _ = std::fs::remove_dir_all(folder.join(OUTPUTS));
        Ok(Self {
            folder: folder.canonicalize()?,
            earlier,
            #[cfg(target_os = "linux")]
            list: list::List::open(folder)?.into(),
        })
    }

    /// Where commands leave their outputs.
    pub fn outputs(&self) -> PathBuf {
        self.folder.join(OUTPUTS)
    }

    /// Whether an earlier owner may have started a process for this delivery. False only if that is certain.
    pub fn may_have_started(&self, job: &JobKey) -> bool {
        self.earlier.as_ref().is_none_or(|started| started.contains(&in_one_line(job)))
    }

    /// Remembers the group that a process leads. The process must not have been waited for yet.
    ///
    /// Failures are ignored: the group can still be found by its mark.
    pub fn started(&self, leader: u32, job: &JobKey) {
        #[cfg(target_os = "linux")]
        if let (Ok(leader), Ok(mut list)) = (i32::try_from(leader), self.list.lock()) {
            let _ = list.add(leader, job);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (leader, job);
    }
}

/// Whether a new owner can find processes of an earlier one on this system. It needs `/proc`.
pub const FINDS_ORPHANS: bool = cfg!(target_os = "linux");

/// The environment of every process that is started for a job.
pub fn marks(job: &Job, children: Option<&Children>) -> Vec<(&'static str, OsString)> {
    let mut marks = vec![
        (JOB, job.key.to_string().into()),
        ("WINDLASS_OPERATION", job.operation().to_string().into()),
        ("WINDLASS_ATTEMPT", job.key.attempt.to_string().into()),
    ];
    marks.extend(children.map(|children| (FOLDER, children.folder.clone().into_os_string())));
    marks
}

/// Ends what an earlier owner of this data folder left running, and returns the number of processes: the groups in
/// the list whose leader is still the same process, every process whose environment names this folder and one of
/// `is_ours`' runs, and all their descendants. Never the caller itself nor its ancestors.
///
/// Blocks until they are gone. Only the owner of the data folder may call it, before it starts anything for these
/// runs. Without `/proc` nothing can be found, and the result is 0.
pub fn end_orphans(folder: &Path, is_ours: impl Fn(&RunId) -> bool) -> Result<usize, EndError> {
    #[cfg(target_os = "linux")]
    return {
        let folder = folder.canonicalize()?;
        orphans::Search::Runs { folder: &folder, is_ours: &is_ours }.end()
    };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (folder, is_ours);
        Ok(0)
    }
}

/// The runs of a data folder that have left processes, possibly with some that have not.
pub fn orphaned_runs(folder: &Path) -> Result<BTreeSet<RunId>, EndError> {
    #[cfg(target_os = "linux")]
    return orphans::runs(&folder.canonicalize()?);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        Ok(BTreeSet::new())
    }
}

/// Processes of one job that have left its group and still carry its mark.
#[derive(Clone, Debug)]
pub struct Strays {
    job: String,
    folder: Option<PathBuf>,
    /// Members of this group are not searched for.
    group: Option<u32>,
}

impl Strays {
    pub fn of(job: &JobKey, children: Option<&Children>, group: Option<u32>) -> Self {
        Self { job: job.to_string(), folder: children.map(|children| children.folder.clone()), group }
    }

    /// Ends them: SIGTERM, wait, SIGKILL. Without `/proc` nothing can be found.
    ///
    /// Failures are ignored, for example if too many files are open: recovery of the run searches again.
    pub async fn end(self, grace: Duration) {
        // If many jobs end at once, all groups are signaled before any strays are searched for.
        tokio::task::yield_now().await;
        #[cfg(target_os = "linux")]
        if marked::now().await.iter().any(|one| one.is_of(&self)) {
            let _ = tokio::task::spawn_blocking(move || orphans::end_strays(&self, grace)).await;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (self, grace);
    }
}

/// A job key as written in the list.
fn in_one_line(job: &JobKey) -> String {
    job.to_string().replace(['\n', '\r'], " ")
}

/// The run of a written job key.
#[cfg(target_os = "linux")]
fn run_of(job: &str) -> Option<RunId> {
    RunId::new(job.split_once(':')?.0).ok()
}

/// The file: one line per group, with the id of its leader, its start time, the boot, and the job.
#[cfg(target_os = "linux")]
mod list {
    use super::{in_one_line, run_of};
    use crate::proc::{self, Identity};
    use std::collections::HashSet;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::{Path, PathBuf};
    use windlass_engine::{JobKey, RunId};

    const NAME: &str = "children";

    /// In place of a job, marks the line that says that an owner opened the list during this boot.
    const OPENED: &str = "opened";

    /// Above this size, lines about ended groups are removed from the file.
    const COMPACT_BYTES: u64 = 64 * 1024;

    #[derive(Debug)]
    pub struct List {
        path: PathBuf,
        file: File,
        boot: String,
        bytes: u64,
        compact_at: u64,
    }

    pub struct Entry {
        pub leader: Identity,
        pub boot: String,
        pub run: RunId,
    }

    impl List {
        pub fn open(folder: &Path) -> io::Result<Self> {
            let (path, boot) = (folder.join(NAME), proc::boot_id()?);
            let file = append_to(&path)?;
            let mut list = Self { path, file, boot, bytes: 0, compact_at: COMPACT_BYTES };
            list.compact()?;
            Ok(list)
        }

        pub fn add(&mut self, leader: i32, job: &JobKey) -> io::Result<()> {
            // Already gone: there is nothing to end.
            let Some(process) = proc::process(leader) else { return Ok(()) };
            let (since, job) = (process.identity.start_time, in_one_line(job));
            let line = format!("{leader} {since} {} {job}\n", self.boot);
            self.file.write_all(line.as_bytes())?;
            self.bytes += line.len() as u64;
            if self.bytes >= self.compact_at { self.compact() } else { Ok(()) }
        }

        /// Rewrites the file with the groups that still run. A crash leaves either the old file or the new one.
        fn compact(&mut self) -> io::Result<()> {
            let text = std::fs::read(&self.path)?;
            let text = String::from_utf8_lossy(&text);
            let lives = |line: &&str| {
                parse(line).is_some_and(|entry| entry.boot == self.boot && is_running(entry.leader))
            };
            let opened = format!("0 0 {} {OPENED}", self.boot);
            let kept = std::iter::once(&*opened).chain(text.lines().filter(lives));
            let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
            let fresh = self.path.with_extension("new");
            let mut file = private().write(true).truncate(true).open(&fresh)?;
            file.write_all(kept.as_bytes())?;
            std::fs::rename(&fresh, &self.path)?;
            self.file = append_to(&self.path)?;
            self.bytes = kept.len() as u64;
            self.compact_at = COMPACT_BYTES.max(self.bytes * 2);
            Ok(())
        }
    }

    fn append_to(path: &Path) -> io::Result<File> {
        private().append(true).open(path)
    }

    /// A file that is created for no other user to open.
    fn private() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        options
    }

    /// The jobs in the list, if an owner opened it during this boot. Jobs whose processes are gone may be missing.
    pub fn started(folder: &Path) -> io::Result<Option<HashSet<String>>> {
        let boot = proc::boot_id()?;
        let text = read(folder)?;
        let line = |line: &str| -> Option<String> {
            let mut parts = line.splitn(4, ' ').skip(2);
            (parts.next()? == boot).then(|| parts.next().map(str::to_owned))?
        };
        let jobs: HashSet<String> = text.lines().filter_map(line).collect();
        Ok(jobs.contains(OPENED).then_some(jobs))
    }

    fn read(folder: &Path) -> io::Result<String> {
        match std::fs::read(folder.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => Ok(String::from_utf8_lossy(&read?).into_owned()),
        }
    }

    /// The groups in the list that belong to this boot and whose leader still exists, which keeps the id of the group
    /// from being reused.
    pub fn living(folder: &Path) -> io::Result<Vec<Entry>> {
        let boot = proc::boot_id()?;
        let text = read(folder)?;
        // An unreadable line was being written when the machine stopped.
        let entries = text.lines().filter_map(parse);
        Ok(entries.filter(|entry| entry.boot == boot && is_running(entry.leader)).collect())
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut parts = line.splitn(4, ' ');
        let leader = Identity { pid: parts.next()?.parse().ok()?, start_time: parts.next()?.parse().ok()? };
        Some(Entry { leader, boot: parts.next()?.to_owned(), run: run_of(parts.next()?)? })
    }

    pub fn is_running(leader: Identity) -> bool {
        proc::process(leader.pid).is_some_and(|process| process.identity == leader)
    }
}

/// The marked processes of this owner, for jobs that look for their strays. Jobs that end at the same time share one
/// search of `/proc`.
#[cfg(target_os = "linux")]
mod marked {
    use super::{FOLDER, JOB, Strays};
    use crate::proc::{self, Variables};
    use std::ffi::OsStr;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::Mutex;

    pub struct Marked {
        job: String,
        folder: Option<PathBuf>,
        group: i32,
    }

    impl Marked {
        /// Whether it has left the group of its job.
        pub fn is_of(&self, strays: &Strays) -> bool {
            let inside = u32::try_from(self.group).ok() == strays.group;
            !inside && self.job == strays.job && self.folder == strays.folder
        }
    }

    /// The number of searches that have begun.
    static BEGUN: AtomicU64 = AtomicU64::new(0);

    /// The number and the result of the last search.
    static LAST: Mutex<(u64, Option<Arc<[Marked]>>)> = Mutex::const_new((0, None));

    /// The result of a search that began after this call.
    pub async fn now() -> Arc<[Marked]> {
        let before = BEGUN.load(Ordering::SeqCst);
        let mut last = LAST.lock().await;
        if let (number, Some(found)) = &*last
            && *number > before
        {
            return found.clone();
        }
        let number = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
        // Without a result, recovery of the run searches again.
        let found: Arc<[Marked]> = tokio::task::spawn_blocking(search).await.unwrap_or_default().into();
        *last = (number, Some(found.clone()));
        found
    }

    /// Skips processes that are older than this one, which has not started them.
    fn search() -> Vec<Marked> {
        let own = i32::try_from(std::process::id()).ok().and_then(proc::process);
        let since = own.map_or(0, |own| own.identity.start_time);
        let processes = proc::all().unwrap_or_default().into_iter();
        let young = processes.filter(|one| !one.is_dead && one.identity.start_time >= since);
        let marks = young.filter_map(|one| {
            let variables = Variables::of(one.identity.pid)?;
            let job = variables.get(JOB).and_then(OsStr::to_str)?.to_owned();
            Some(Marked { job, folder: variables.get(FOLDER).map(PathBuf::from), group: one.group })
        });
        marks.collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn jobs_that_end_together_share_a_search() {
            let before = BEGUN.load(Ordering::SeqCst);
            let searches = (0..100).map(|_| tokio::spawn(now()));
            for search in searches.collect::<Vec<_>>() {
                search.await.expect("no panic");
            }
            // The first job does not wait for others, and the second search is for all of them.
            assert_eq!(BEGUN.load(Ordering::SeqCst) - before, 2);
        }
    }
}

#[cfg(target_os = "linux")]
mod orphans {
    use super::{EndError, FOLDER, JOB, Strays, list, run_of};
    use crate::proc::{self, Identity, Process, Variables};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fd::OwnedFd;
    use rustix::io::{Errno, retry_on_intr};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::collections::BTreeSet;
    use std::ffi::OsStr;
    use std::path::Path;
    use std::time::{Duration, Instant};
    use windlass_engine::RunId;

    /// A killed process disappears quickly unless it belongs to another user or waits for a broken disk.
    const WAIT_MAX: Duration = Duration::from_secs(10);

    /// The maximum number of searches. Processes that multiply faster than they can be stopped are not caught by more
    /// of them.
    const ROUNDS_MAX: usize = 100;

    /// What to search for.
    pub enum Search<'a> {
        /// Everything left by runs of a data folder, including the groups in its list.
        Runs {
            folder: &'a Path,
            is_ours: &'a dyn Fn(&RunId) -> bool,
        },
        Strays(&'a Strays),
    }

    /// Sends SIGTERM, and kills processes that do not end in time.
    pub fn end_strays(strays: &Strays, grace: Duration) -> Result<(), EndError> {
        let search = Search::Strays(strays);
        let found = search.look()?;
        if found.is_empty() {
            return Ok(());
        }
        for one in &found {
            send(*one, Signal::TERM)?;
        }
        let deadline = Instant::now() + grace;
        // The rest is killed.
        let _ = found.iter().try_for_each(|one| wait(*one, deadline));
        search.end().map(drop)
    }

    /// The runs of processes in the list or with a mark. Searches twice: a process that was just being started is
    /// there the second time.
    pub fn runs(folder: &Path) -> Result<BTreeSet<RunId>, EndError> {
        let mut runs: BTreeSet<RunId> = list::living(folder)?.into_iter().map(|entry| entry.run).collect();
        for _ in 0..2 {
            for process in proc::all()? {
                let Some(variables) = Variables::of(process.identity.pid) else { continue };
                let here = variables.get(FOLDER).map(Path::new) == Some(folder);
                let job = variables.get(JOB).and_then(OsStr::to_str).filter(|_| here);
                runs.extend(job.and_then(run_of));
            }
        }
        Ok(runs)
    }

    impl Search<'_> {
        /// First stops everything found until nothing new turns up: once a parent is killed, its children are
        /// reparented, and those without a mark could no longer be found. Then kills all of them.
        pub fn end(&self) -> Result<usize, EndError> {
            let found = self.stop()?;
            for one in &found {
                send(*one, Signal::KILL)?;
            }
            let deadline = Instant::now() + WAIT_MAX;
            for one in &found {
                wait(*one, deadline)?;
            }
            match self.look()?.first() {
                Some(left) => Err(EndError::Stuck { pid: left.pid }),
                None => Ok(found.len()),
            }
        }

        fn stop(&self) -> Result<BTreeSet<Identity>, EndError> {
            let mut found = BTreeSet::new();
            for _ in 0..ROUNDS_MAX {
                let fresh: Vec<Identity> = self.look()?.difference(&found).copied().collect();
                if fresh.is_empty() {
                    break;
                }
                for one in fresh {
                    send(one, Signal::STOP)?;
                    found.insert(one);
                }
            }
            Ok(found)
        }

        fn look(&self) -> Result<BTreeSet<Identity>, EndError> {
            let processes = proc::all()?;
            let spared = with_ancestors(&processes);
            let others =
                || processes.iter().filter(|one| !one.is_dead && !spared.contains(&one.identity.pid));
            let groups = self.groups()?;
            let mut found: BTreeSet<Identity> = others()
                .filter(|one| groups.contains(&one.group) || self.is_marked(one))
                .map(|one| one.identity)
                .collect();
            // Including all descendants.
            loop {
                let parents: BTreeSet<i32> = found.iter().map(|one| one.pid).collect();
                let before = found.len();
                found.extend(others().filter(|one| parents.contains(&one.parent)).map(|one| one.identity));
                if found.len() == before {
                    return Ok(found);
                }
            }
        }

        fn groups(&self) -> Result<BTreeSet<i32>, EndError> {
            let Self::Runs { folder, is_ours } = self else { return Ok(BTreeSet::new()) };
            let entries = list::living(folder)?.into_iter();
            Ok(entries.filter(|entry| is_ours(&entry.run)).map(|entry| entry.leader.pid).collect())
        }

        fn is_marked(&self, one: &Process) -> bool {
            let Some(variables) = Variables::of(one.identity.pid) else { return false };
            let Some(job) = variables.get(JOB).and_then(OsStr::to_str) else { return false };
            let marked_folder = variables.get(FOLDER).map(Path::new);
            match self {
                Self::Runs { folder, is_ours } => {
                    marked_folder == Some(*folder) && run_of(job).is_some_and(|run| is_ours(&run))
                }
                Self::Strays(strays) => {
                    let inside = u32::try_from(one.group).ok() == strays.group;
                    !inside && job == strays.job && marked_folder == strays.folder.as_deref()
                }
            }
        }
    }

    /// This process and its ancestors: a step may itself have called the command that recovers its run.
    fn with_ancestors(processes: &[Process]) -> BTreeSet<i32> {
        let mut next = i32::try_from(std::process::id()).ok();
        let mut line = BTreeSet::new();
        while let Some(pid) = next.filter(|pid| line.insert(*pid)) {
            next = processes.iter().find(|one| one.identity.pid == pid).map(|one| one.parent);
        }
        line
    }

    /// A handle of exactly this process; `None` if it is gone. Its id may be reused between the search and the
    /// opening, but not while the handle is held.
    fn handle(one: Identity) -> Result<Option<OwnedFd>, EndError> {
        let Some(pid) = Pid::from_raw(one.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(list::is_running(one).then_some(handle)),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(EndError::Look(error.into())),
        }
    }

    fn send(one: Identity, signal: Signal) -> Result<(), EndError> {
        if let Some(handle) = handle(one)? {
            // Refused for another user's process. It may still end with those around it; if not, waiting for it
            // fails.
            let _ = pidfd_send_signal(handle, signal);
        }
        Ok(())
    }

    /// Until it has ended, as the handle reports.
    fn wait(one: Identity, deadline: Instant) -> Result<(), EndError> {
        let Some(handle) = handle(one)? else { return Ok(()) };
        let ended = retry_on_intr(|| {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
            poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout))
        });
        match ended.map_err(std::io::Error::from)? {
            0 => Err(EndError::Stuck { pid: one.pid }),
            _ => Ok(()),
        }
    }
}

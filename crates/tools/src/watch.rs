//! Waiting for a change of files: a test that would otherwise ask again and again blocks until something was written.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use std::path::Path;
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks whenever a file in one of the folders has changed, until there is something to see. None when it takes too long.
/// A folder may appear later if its parent is among the others.
pub fn until<T>(folders: &[&Path], mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let changes = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("Linux has inotify");
    let kinds = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO;
    let ends = Instant::now() + PATIENCE;
    loop {
        // Watched before the look: a change in between is not missed.
        for folder in folders.iter().filter(|folder| folder.exists()) {
            add_watch(&changes, *folder, kinds).expect("a folder of our own");
        }
        if let Some(seen) = look() {
            return Some(seen);
        }
        let left = ends.checked_duration_since(Instant::now())?;
        let left = Timespec::try_from(left).expect("less than a minute");
        poll(&mut [PollFd::new(&changes, PollFlags::IN)], Some(&left)).expect("a file of our own");
        let mut bytes = [0; 4096];
        while rustix::io::read(&changes, &mut bytes).is_ok_and(|count| count > 0) {}
    }
}

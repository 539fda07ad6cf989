//! Real processes through the public API of the crate, in one binary.

#[cfg(target_os = "linux")]
mod assistant;
#[cfg(target_os = "linux")]
mod builtin;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod shell;
mod shell_native;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod task;

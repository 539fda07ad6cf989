//! The bytes of a record: a header that is stable across formats, then the body.
//!
//! Byte 0 is the format, byte 1 flags, bytes 2 to 9 a checksum over the run, the previous record, the first two bytes
//! and the body. The checksum does not depend on the format, so an older program can tell a newer record from a
//! broken one. The body of format 1 is a JSON list of events.

use crate::apart;
use crate::blobs::{BLOB_BYTES_MIN, BlobId, ReadBlob};
use crate::deep;
use crate::error::Error;
use crate::journal::Lsn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass_engine::{AddedPlan, Event, RunId, What};
use windlass_ir::Plan;

/// The newest format of a record that this program reads, and the one it writes.
pub const FORMAT: u8 = 1;

/// The maximum body of a record, without the values above 64 KiB, which are stored separately.
pub const BODY_BYTES_MAX: usize = 256 << 20;

const HEADER_BYTES: usize = 10;
const CHECKSUM: std::ops::Range<usize> = 2..HEADER_BYTES;

/// This record closes the run.
const ENDS: u8 = 1;
/// Large values are stored separately; the body refers to them.
const APART: u8 = 2;
/// This record removes the run with all its records.
pub(crate) const REMOVES: u8 = 4;

/// Large values of a record, which are stored separately.
pub(crate) type Values = BTreeMap<BlobId, Vec<u8>>;

/// A plan that an event adds to its run is stored separately above this size, because the rounds of a loop add the
/// same one repeatedly.
const PLAN_BYTES_MIN: usize = 4 << 10;

/// The frame of a record of a run, and the values stored separately.
pub(crate) fn encode_run(run: &RunId, events: &[Event]) -> Result<(Arc<[u8]>, Values), Error> {
    let refuse = |cause: String| Error::Unstorable { run: run.clone(), cause };
    let ends = matches!(events.last(), Some(Event { what: What::Closed, .. }));
    let (mut events, mut values) = (Cow::Borrowed(events), Values::new());
    for at in 0..events.len() {
        let Some(plan) = events[at].added_plan().and_then(AddedPlan::whole) else { continue };
        let content = serde_json::to_vec(plan).map_err(|error| refuse(error.to_string()))?;
        if content.len() > PLAN_BYTES_MIN {
            deep::check(&content).map_err(refuse)?;
            let id = BlobId::of(&content);
            if let Some(plan) = events.to_mut()[at].added_plan_mut() {
                *plan = AddedPlan::Apart { id: id.as_str().into() };
            }
            values.insert(id, content);
        }
    }
    encode(run, &events, if ends { ENDS } else { 0 }, values)
}

/// The frame of a record and the values taken out of it, in addition to `values`. The checksum is filled in later: it
/// covers the previous record, which may not have its number yet.
pub(crate) fn encode<E: Serialize>(
    run: &RunId,
    events: &[E],
    flags: u8,
    values: Values,
) -> Result<(Arc<[u8]>, Values), Error> {
    encode_within(run, events, flags, values, BODY_BYTES_MAX)
}

fn encode_within<E: Serialize>(
    run: &RunId,
    events: &[E],
    flags: u8,
    mut values: Values,
    bytes_max: usize,
) -> Result<(Arc<[u8]>, Values), Error> {
    let refuse = |cause: String| Error::Unstorable { run: run.clone(), cause };
    let mut frame = Vec::with_capacity(1024);
    frame.extend([FORMAT, flags, 0, 0, 0, 0, 0, 0, 0, 0]);
    serde_json::to_writer(&mut frame, events).map_err(|error| refuse(error.to_string()))?;
    // A record that could not be read back must not be written.
    deep::check(&frame[HEADER_BYTES..]).map_err(refuse)?;
    if frame.len() > BLOB_BYTES_MIN || !values.is_empty() {
        let json = deep::from_slice(&frame[HEADER_BYTES..]).map_err(refuse)?;
        frame.truncate(HEADER_BYTES);
        let body = apart::take_out(json, &mut |content| {
            let id = BlobId::of(&content);
            values.insert(id.clone(), content);
            id
        });
        frame[1] |= APART;
        serde_json::to_writer(&mut frame, &body).map_err(|error| refuse(error.to_string()))?;
    }
    // Only now, because values that are stored separately do not count.
    let bytes = frame.len() - HEADER_BYTES;
    if bytes > bytes_max {
        return Err(refuse(format!("it has {bytes} bytes, more than {bytes_max}")));
    }
    Ok((frame.into(), values))
}

/// The frame as it is stored after this record.
pub(crate) fn sealed(run: &RunId, prev: Option<Lsn>, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let sum = checksum(run, prev, &frame);
    frame[CHECKSUM].copy_from_slice(&sum);
    frame
}

/// Whether values of this frame are stored separately.
pub(crate) fn is_apart(frame: &[u8]) -> bool {
    frame.get(1).is_some_and(|flags| flags & APART != 0)
}

/// The events of a frame with its large values restored.
pub(crate) fn decode_whole<E: DeserializeOwned + Send>(
    frame: &[u8],
    get: &ReadBlob<'_>,
) -> Result<Vec<E>, String> {
    if !is_apart(frame) {
        return decode(frame);
    }
    let json: serde_json::Value = deep::from_slice(frame.get(HEADER_BYTES..).unwrap_or_default())?;
    let whole = apart::put_back(json, &mut |id| fetch(id, get))?;
    serde_json::from_value(whole).map_err(|error| error.to_string())
}

/// The same for the record of a run. `plans` contains the plans added by earlier records, by the names of their
/// values.
pub(crate) fn decode_run(
    frame: &[u8],
    get: &ReadBlob<'_>,
    plans: &mut HashMap<Arc<str>, Arc<Plan>>,
) -> Result<Vec<Event>, String> {
    let mut events: Vec<Event> = decode_whole(frame, get)?;
    for plan in events.iter_mut().filter_map(Event::added_plan_mut) {
        if let AddedPlan::Apart { id } = plan {
            let known = match plans.entry(id.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(fetch(id, get)?),
            };
            *plan = AddedPlan::Whole(known.clone());
        }
    }
    Ok(events)
}

fn fetch<T: DeserializeOwned + Send>(id: &str, get: &ReadBlob<'_>) -> Result<T, String> {
    let found = BlobId::parse(id).map_or(Ok(None), |id| get(&id)).map_err(|error| error.to_string())?;
    deep::from_slice(&found.ok_or_else(|| format!("the value `{id}` that it refers to is missing"))?)
}

/// The events of an intact frame, or why this program cannot read them.
pub(crate) fn decode<E: DeserializeOwned + Send>(frame: &[u8]) -> Result<Vec<E>, String> {
    match frame.first() {
        Some(&FORMAT) => deep::from_slice(frame.get(HEADER_BYTES..).unwrap_or_default()),
        Some(format) => Err(format!("it has format {format}, but this version reads up to {FORMAT}")),
        None => Err("it is empty".into()),
    }
}

/// The separately stored values that these bytes name: those of a record, or of such a value itself. Text that only
/// looks like a name is included, which is harmless.
pub fn named(bytes: &[u8]) -> Vec<BlobId> {
    const BEFORE: &[u8] = br#""$blob":""#;
    let starts = bytes.windows(BEFORE.len()).enumerate().filter(|(_, window)| *window == BEFORE);
    let names = starts.filter_map(|(at, _)| bytes.get(at + BEFORE.len()..at + BEFORE.len() + 64));
    names.filter_map(|name| BlobId::parse(std::str::from_utf8(name).ok()?)).collect()
}

/// One event as JSON, at any depth.
pub fn read_event(json: &[u8]) -> Result<Event, String> {
    deep::from_slice(json)
}

/// Whether these are the bytes that were written for this run after that record.
pub(crate) fn is_whole(run: &RunId, prev: Option<Lsn>, frame: &[u8]) -> bool {
    frame.len() >= HEADER_BYTES && frame[CHECKSUM] == checksum(run, prev, frame)
}

pub(crate) fn ends(frame: &[u8]) -> bool {
    frame.get(1).is_some_and(|flags| flags & ENDS != 0)
}

pub(crate) fn removes(frame: &[u8]) -> bool {
    frame.get(1).is_some_and(|flags| flags & REMOVES != 0)
}

/// The checksum in a frame; a fingerprint of the record.
pub(crate) fn seal(frame: &[u8]) -> &[u8] {
    frame.get(CHECKSUM).unwrap_or_default()
}

/// The run and the previous record are covered too: an intact body in the wrong row would be another run's history.
fn checksum(run: &RunId, prev: Option<Lsn>, frame: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(run.as_str().len() as u64).to_le_bytes());
    hasher.update(run.as_str().as_bytes());
    hasher.update(&prev.map_or(0, |lsn| lsn.0).to_le_bytes());
    hasher.update(&frame[..CHECKSUM.start]);
    hasher.update(&frame[HEADER_BYTES..]);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Path, Timestamp};
    use windlass_ir::Value;

    /// One record per line: run, previous record, header in hexadecimal, body. Lines are added, never changed:
    /// everything written once stays readable.
    const GOLDEN: &str = include_str!("../golden/records.txt");

    fn golden() -> impl Iterator<Item = (RunId, Option<Lsn>, Vec<u8>)> {
        GOLDEN.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let mut parts = line.splitn(4, ' ');
            let mut next = || parts.next().expect("four parts");
            let run = RunId::new(next()).expect("a run id");
            let prev = next().parse().ok().map(Lsn);
            let header = next();
            let byte = |at: usize| u8::from_str_radix(&header[at..at + 2], 16).expect("hexadecimal");
            let mut frame: Vec<u8> = (0..header.len()).step_by(2).map(byte).collect();
            frame.extend(next().as_bytes());
            (run, prev, frame)
        })
    }

    #[test]
    fn golden_records_are_read_and_written_the_same() {
        let mut seen = 0;
        for (run, prev, frame) in golden() {
            assert!(is_whole(&run, prev, &frame), "{run} after {prev:?}");
            let events: Vec<Event> = decode(&frame).expect("events");
            let (again, _) = encode_run(&run, &events).expect("a frame");
            let again = sealed(&run, prev, &again);
            assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&frame));
            assert_eq!(again, frame);
            assert_eq!(ends(&frame), matches!(events.last().map(|event| &event.what), Some(What::Closed)));
            seen += 1;
        }
        assert!(seen >= 4, "{seen}");
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let (run, prev, frame) = golden().next().expect("a record");
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_whole(&run, prev, &damaged), "bit {bit}");
        }
        for length in 0..frame.len() {
            assert!(!is_whole(&run, prev, &frame[..length]), "{length} bytes");
        }
        assert!(!is_whole(&RunId::new("other").expect("a run id"), prev, &frame));
        assert!(!is_whole(&run, Some(Lsn(99)), &frame));
    }

    #[test]
    fn a_newer_format_is_intact_but_unreadable() {
        let (run, prev, mut frame) = golden().next().expect("a record");
        frame[0] = FORMAT + 1;
        let sum = checksum(&run, prev, &frame);
        frame[CHECKSUM].copy_from_slice(&sum);
        assert!(is_whole(&run, prev, &frame));
        assert_eq!(
            decode::<Event>(&frame).expect_err("newer"),
            "it has format 2, but this version reads up to 1"
        );
    }

    /// The results of a large fan-out are collected in one record.
    #[test]
    fn values_stored_separately_do_not_count_toward_the_size() {
        let run = RunId::new("r").expect("a run id");
        let text = |n: usize, bytes: usize| Value::text(format!("{n}{}", "x".repeat(bytes)));
        let noted = |value| {
            let what = What::Noted { path: Path::default(), key: "k".into(), value };
            [Event { at: Timestamp(1), what }]
        };
        let within = |value, max| encode_within(&run, &noted(value), 0, Values::new(), max);
        let large = Value::list((0..4).map(|n| text(n, BLOB_BYTES_MIN)));
        let (frame, values) = within(large, 1_000).expect("small enough without its values");
        assert!(frame.len() < 1_000 && values.len() == 4, "{} bytes, {} values", frame.len(), values.len());
        let many = Value::list((0..4).map(|n| text(n, 1_000)));
        let refused = within(many, 1_000).expect_err("no value is large").to_string();
        assert!(refused.contains("more than 1000"), "{refused}");
    }

    #[test]
    fn an_unknown_event_is_named() {
        let cause = |body: &str| {
            decode::<Event>(&[&[FORMAT; HEADER_BYTES], body.as_bytes()].concat()).expect_err("unreadable")
        };
        let unknown = cause(r#"[{"at":1,"event":"teleported"}]"#);
        assert!(unknown.starts_with("unknown variant `teleported`"), "{unknown}");
        assert!(cause("[").starts_with("EOF"), "{}", cause("["));
        assert!(decode::<Event>(&[]).is_err() && decode::<Event>(&[FORMAT]).is_err());
    }
}

//! The bytes of a record: a header that every format keeps, then the body.
//!
//! Byte 0 is the format, byte 1 flags, bytes 2 to 9 a checksum over the run, the record before, both first bytes and the
//! body. Because the checksum stands outside the format, an older program can tell a newer record from a broken one.
//! The body of format 1 is the JSON of a list of events.

use crate::apart;
use crate::blobs::{BLOB_BYTES_MIN, BlobId, Blobs};
use crate::deep;
use crate::error::Error;
use crate::journal::Lsn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use windlass_engine::{Event, RunId, What};

/// The newest format of a record that this program reads, and the one it writes.
pub const FORMAT: u8 = 1;

/// The largest body of a record. Values above 64 KiB are stored apart, so that nothing comes near it.
pub const BODY_BYTES_MAX: usize = 256 << 20;

const HEADER_BYTES: usize = 10;
const CHECKSUM: std::ops::Range<usize> = 2..HEADER_BYTES;

/// The run is closed by this record.
const ENDS: u8 = 1;
/// Large values are kept apart, and references to them stand in the body.
const APART: u8 = 2;

/// Whether the run is closed by these.
pub(crate) fn closes(events: &[Event]) -> bool {
    matches!(events.last(), Some(Event { what: What::Closed, .. }))
}

/// The frame of a record, its checksum still to be filled in: that covers the record before, which may not have its number yet.
pub(crate) fn encode<E: Serialize>(run: &RunId, events: &[E], ends: bool) -> Result<Arc<[u8]>, Error> {
    let refuse = |cause: String| Error::Unstorable { run: run.clone(), cause };
    let flags = if ends { ENDS } else { 0 };
    let mut frame = Vec::with_capacity(1024);
    frame.extend([FORMAT, flags, 0, 0, 0, 0, 0, 0, 0, 0]);
    serde_json::to_writer(&mut frame, events).map_err(|error| refuse(error.to_string()))?;
    let body = &frame[HEADER_BYTES..];
    if body.len() > BODY_BYTES_MAX {
        return Err(refuse(format!("it has {} bytes, more than {BODY_BYTES_MAX}", body.len())));
    }
    // What could not be read again must not be written.
    deep::check(body).map_err(refuse)?;
    Ok(frame.into())
}

/// The frame as it is stored after this record.
pub(crate) fn sealed(run: &RunId, prev: Option<Lsn>, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let sum = checksum(run, prev, &frame);
    frame[CHECKSUM].copy_from_slice(&sum);
    frame
}

/// The same with large values apart. Blobs are durable before this returns.
pub(crate) fn encode_apart<E: Serialize>(
    run: &RunId,
    events: &[E],
    ends: bool,
    blobs: &dyn Blobs,
) -> Result<Arc<[u8]>, Error> {
    let whole = encode(run, events, ends)?;
    if whole.len() <= BLOB_BYTES_MIN {
        return Ok(whole);
    }
    let refuse = |cause: String| Error::Unstorable { run: run.clone(), cause };
    let json: serde_json::Value = deep::from_slice(&whole[HEADER_BYTES..]).map_err(refuse)?;
    let body = apart::take_out(json, &mut |content| blobs.put(content))?;
    let mut frame = whole[..HEADER_BYTES].to_vec();
    frame[1] |= APART;
    serde_json::to_writer(&mut frame, &body).map_err(|error| refuse(error.to_string()))?;
    Ok(frame.into())
}

/// The events of a frame with its large values back in their places.
pub(crate) fn decode_whole<E: DeserializeOwned + Send>(
    frame: &[u8],
    blobs: &dyn Blobs,
) -> Result<Vec<E>, String> {
    if frame.get(1).is_none_or(|flags| flags & APART == 0) {
        return decode(frame);
    }
    let json: serde_json::Value = deep::from_slice(frame.get(HEADER_BYTES..).unwrap_or_default())?;
    let mut lost = None;
    let whole = apart::put_back(json, &mut |id| {
        let content = BlobId::parse(id).and_then(|id| blobs.get(&id).transpose());
        match content {
            Some(Ok(content)) => deep::from_slice(&content).or_else(|cause| {
                lost = Some(cause);
                Ok(serde_json::Value::Null)
            }),
            Some(Err(error)) => {
                lost = Some(error.to_string());
                Ok(serde_json::Value::Null)
            }
            None => {
                lost = Some(format!("the value `{id}` that it names is not there"));
                Ok(serde_json::Value::Null)
            }
        }
    });
    let whole = whole.map_err(|error| error.to_string())?;
    match (lost, whole) {
        (Some(cause), _) => Err(cause),
        (None, None) => Err("it holds a value that would fill the memory".into()),
        (None, Some(whole)) => serde_json::from_value(whole).map_err(|error| error.to_string()),
    }
}

/// The events of a frame that is whole, or why this program cannot read them.
pub(crate) fn decode<E: DeserializeOwned + Send>(frame: &[u8]) -> Result<Vec<E>, String> {
    match frame.first() {
        Some(&FORMAT) => deep::from_slice(frame.get(HEADER_BYTES..).unwrap_or_default()),
        Some(format) => Err(format!("it has format {format} and this version reads up to {FORMAT}")),
        None => Err("it is empty".into()),
    }
}

/// The values kept apart that these bytes name: those of a record, or of a value that was kept apart itself. Text that only looks
/// like a name is among them, which does no harm to whoever keeps what is named.
pub fn named(bytes: &[u8]) -> Vec<BlobId> {
    const BEFORE: &[u8] = br#""$blob":""#;
    let starts = bytes.windows(BEFORE.len()).enumerate().filter(|(_, window)| *window == BEFORE);
    let names = starts.filter_map(|(at, _)| bytes.get(at + BEFORE.len()..at + BEFORE.len() + 64));
    names.filter_map(|name| BlobId::parse(std::str::from_utf8(name).ok()?)).collect()
}

/// One event as JSON, however deep its values are.
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

/// The checksum in a frame; a fingerprint of the record.
pub(crate) fn seal(frame: &[u8]) -> &[u8] {
    frame.get(CHECKSUM).unwrap_or_default()
}

/// Run and predecessor are covered too: a whole body in the wrong row would be another run's history.
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

    /// One record a line: run, record before, header in hexadecimal, body. Lines are added, never changed: whatever was
    /// written once is read for ever.
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
            let again = encode(&run, &events, closes(&events)).expect("a frame");
            let again = sealed(&run, prev, &again);
            assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&frame));
            assert_eq!(again, frame);
            assert_eq!(ends(&frame), matches!(events.last().map(|event| &event.what), Some(What::Closed)));
            seen += 1;
        }
        assert!(seen >= 4, "{seen}");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (run, prev, frame) = golden().next().expect("a record");
        for bit in 0..frame.len() * 8 {
            let mut hurt = frame.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_whole(&run, prev, &hurt), "bit {bit}");
        }
        for length in 0..frame.len() {
            assert!(!is_whole(&run, prev, &frame[..length]), "{length} bytes");
        }
        assert!(!is_whole(&RunId::new("other").expect("a run id"), prev, &frame));
        assert!(!is_whole(&run, Some(Lsn(99)), &frame));
    }

    #[test]
    fn a_newer_format_is_whole_and_unreadable() {
        let (run, prev, mut frame) = golden().next().expect("a record");
        frame[0] = FORMAT + 1;
        let sum = checksum(&run, prev, &frame);
        frame[CHECKSUM].copy_from_slice(&sum);
        assert!(is_whole(&run, prev, &frame));
        assert_eq!(
            decode::<Event>(&frame).expect_err("newer"),
            "it has format 2 and this version reads up to 1"
        );
    }

    #[test]
    fn an_event_nobody_knows_is_named() {
        let cause = |body: &str| {
            decode::<Event>(&[&[FORMAT; HEADER_BYTES], body.as_bytes()].concat()).expect_err("unreadable")
        };
        let unknown = cause(r#"[{"at":1,"event":"teleported"}]"#);
        assert!(unknown.starts_with("unknown variant `teleported`"), "{unknown}");
        assert!(cause("[").starts_with("EOF"), "{}", cause("["));
        assert!(decode::<Event>(&[]).is_err() && decode::<Event>(&[FORMAT]).is_err());
    }
}

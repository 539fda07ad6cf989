//! Names of rounds and items in expressions: `loop:step:2` is `step` in the third round of `loop`.

use super::state::{Place, State};
use std::sync::Arc;
use windlass_ir::workflow::Kind;

/// The steps inside loops and fan-outs of one workflow, with their names.
pub fn all(state: &State, from: Option<Place>) -> Vec<(Place, Arc<str>)> {
    let unit = from.map_or(0, |from| state.at(from).unit);
    let places = (0..state.instances.count()).map(Place);
    let own = places.filter(|place| state.at(*place).unit == unit && state.at(*place).started_at.is_some());
    own.filter_map(|place| Some((place, name(state, place)?.into()))).collect()
}

/// The name of a step in an item, or in a round after the first. Steps nested deeper have none.
fn name(state: &State, place: Place) -> Option<String> {
    let instance = state.at(place);
    let frame = instance.parent.filter(|_| instance.frame.is_none())?;
    let number = state.at(frame).frame?;
    let around = state.at(frame).parent?;
    let first = match state.kind(frame) {
        Kind::ForEach(_) => 0,
        _ => 1,
    };
    if number < first {
        return None;
    }
    let id = &state.program(place).step(instance.step).id;
    let own = &state.program(place).step(state.at(around).step).id;
    let scope = name(state, around).unwrap_or_else(|| own.to_string());
    Some(format!("{scope}:{id}:{number}"))
}

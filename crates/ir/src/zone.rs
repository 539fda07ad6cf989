//! Time zones by their names in the built-in tz database. Names must be spelled exactly; near misses get a
//! suggestion.

use crate::suggest::nearest;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Unknown time zone; `suggest` is the one that the author probably meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone `{name}`")]
pub struct UnknownZone {
    pub name: String,
    pub suggest: Option<String>,
}

impl UnknownZone {
    pub const HELP: &str = "use a name from the tz database, such as `Europe/Berlin`";
}

/// The zone with exactly this name.
pub fn zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let database = TimeZoneDatabase::bundled();
    match database.get(name) {
        Ok(zone) if zone.iana_name() == Some(name) && !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => Err(UnknownZone { name: name.to_owned(), suggest: meant(name, &database) }),
    }
}

/// The same letters in another case, or a near miss of the last part in the same area. Numbers in names are offsets,
/// so they are not treated as typos.
fn meant(name: &str, database: &TimeZoneDatabase) -> Option<String> {
    let names: Vec<String> = database.available().map(|name| name.to_string()).collect();
    if let Some(same) = names.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Some(same.clone());
    }
    if name.is_empty() || name.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (area, city) = name.rsplit_once('/').unwrap_or(("", name));
    let in_area = names.iter().filter_map(|known| {
        let (other, city) = known.rsplit_once('/').unwrap_or(("", known));
        other.eq_ignore_ascii_case(area).then_some((city, known))
    });
    let in_area: Vec<(&str, &String)> = in_area.collect();
    let near = nearest(city, in_area.iter().map(|(city, _)| *city))?;
    in_area.iter().find(|(city, _)| *city == near).map(|(_, known)| (*known).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_must_match_the_database_exactly() {
        let check = |name: &str, expected: Result<(), Option<&str>>| {
            let found = zone(name).map(|_| ()).map_err(|unknown| unknown.suggest);
            assert_eq!(found, expected.map_err(|suggest| suggest.map(str::to_owned)), "{name}");
        };
        for name in
            ["UTC", "Europe/Berlin", "EST", "Etc/GMT+2", "America/Argentina/Ushuaia", "GMT", "Etc/UTC"]
        {
            check(name, Ok(()));
        }
        check("america/new_york", Err(Some("America/New_York")));
        check("utc", Err(Some("UTC")));
        check("Europe/Berln", Err(Some("Europe/Berlin")));
        check("Mars/Olympus", Err(None));
        check("Europe/Atlantis", Err(None));
        check("Etc/Unknown", Err(None));
        for name in ["", "GMT+2", "local", "+02:00", " UTC", "UTC\0", "../UTC"] {
            assert!(zone(name).is_err(), "{name:?}");
        }
        check("GMT+2", Err(None));
    }
}

//! Paths that a webhook listens on: whether a router can serve a path, and which paths conflict.

/// Why a path cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadPath {
    pub(super) cause: String,
    pub(super) help: &'static str,
    pub(super) suggest: Option<String>,
}

pub(super) fn check(path: &str) -> Result<(), BadPath> {
    let Some(rest) = path.strip_prefix('/') else {
        let suggest = Some(format!("/{}", path.trim_start())).filter(|meant| meant.len() > 1);
        let help = "start it with a slash";
        return Err(BadPath { cause: "it does not start with `/`".to_owned(), help, suggest });
    };
    let segments: Vec<&str> = rest.split('/').collect();
    let last = segments.len() - 1;
    let mut numbered = segments.iter().enumerate();
    let checked = numbered.try_for_each(|(number, segment)| check_segment(segment, number == last));
    checked.map_err(|cause| {
        let suggest = Some(modern(path)).filter(|meant| meant != path);
        BadPath { cause, help: HELP, suggest }
    })
}

const HELP: &str = "a segment is literal text, or `{name}` for any text; only the last one may be `{*name}`, \
    for the rest of the path";

fn check_segment(segment: &str, is_last: bool) -> Result<(), String> {
    if modern(segment) != segment {
        return Err(format!("`{segment}` is the old syntax for `{}`", modern(segment)));
    }
    let Some((before, inside)) = segment.split_once('{') else {
        return match segment.contains('}') {
            true => Err(format!("`{segment}` has a `}}` without a `{{`")),
            false => Ok(()),
        };
    };
    let Some(name) = inside.strip_suffix('}') else {
        return Err(format!("`{segment}` does not end with `}}`"));
    };
    let (star, name) = name.strip_prefix('*').map_or((false, name), |name| (true, name));
    match () {
        () if name.is_empty() => Err(format!("`{segment}` has no name between its braces")),
        () if name.contains(['{', '}', '*']) => Err(format!("`{segment}` contains more than one name")),
        () if star && !(is_last && before.is_empty()) => {
            Err(format!("`{segment}` matches the rest of the path, but it is not the last segment"))
        }
        () => Ok(()),
    }
}

/// The path with braces around names that older servers mark with a colon or a star.
fn modern(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.split_at_checked(1) {
        Some((":", name)) => format!("{{{name}}}"),
        Some(("*", name)) => format!("{{*{name}}}"),
        Some(_) | None => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The path without its names: a router cannot distinguish two paths of the same shape.
pub(super) fn shape(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.split_once('{') {
        Some((before, inside)) if inside.starts_with('*') => format!("{before}{{*}}"),
        Some((before, _)) => format!("{before}{{}}"),
        None => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_paths_can_be_served() {
        for path in
            ["/", "/x", "//", "/mcp", "/ a", "/a/{id}", "/a/v{id}/b", "/a/{*rest}", "/{*rest}", "/a:b", "/a*"]
        {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        let bad = [
            "", "x", " /x", "/a/*rest", "/:id", "/a/:id/b", "/{}", "/{*}", "/{a", "/a}", "/{a}b", "/{a}{b}",
            "/{*a}/b", "/x{*a}", "/{a*}",
        ];
        for path in bad {
            assert!(check(path).is_err(), "{path}");
        }
        let suggest = |path: &str| check(path).expect_err("not served").suggest;
        assert_eq!(suggest("/a/:id/*rest").as_deref(), Some("/a/{id}/{*rest}"));
        assert_eq!(suggest(" x").as_deref(), Some("/x"));
        assert_eq!(suggest(""), None);
    }

    #[test]
    fn names_do_not_distinguish_paths() {
        assert_eq!(shape("/a/{id}/b"), shape("/a/{x}/b"));
        assert_ne!(shape("/a/{id}"), shape("/a/{*id}"));
        assert_ne!(shape("/a"), shape("/a/"));
    }
}

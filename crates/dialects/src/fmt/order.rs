//! The canonical order of keys, as data: which keys a mapping has, in which order, and what stands below each of them.
//! The formatter knows nothing else about a dialect.

/// What is known about the order of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyOrder {
    /// The author's order is kept, all the way down: names and values of the user's own.
    Author,
    /// A mapping with these keys, or a list of such mappings.
    Keys(&'static Keys),
    /// A mapping of the user's own names, in the author's order, to values of this kind.
    Named(&'static Keys),
}

/// The keys of one kind of mapping, in their order, each with what stands below it.
#[derive(Debug)]
pub(super) struct Keys(pub(super) &'static [(&'static str, KeyOrder)]);

impl KeyOrder {
    /// What holds below a key.
    pub(super) fn below(self, key: &str) -> Self {
        match self {
            Self::Author => Self::Author,
            Self::Keys(keys) => {
                keys.0.iter().find(|(name, _)| *name == key).map_or(Self::Author, |(_, order)| *order)
            }
            Self::Named(keys) => Self::Keys(keys),
        }
    }

    /// What holds for the items of a list.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Keys(_) => self,
            Self::Author | Self::Named(_) => Self::Author,
        }
    }

    /// Where a key belongs; none where the author decides. A merge comes first, and what nobody knows comes last.
    pub(super) fn rank(self, key: &str) -> Option<usize> {
        match self {
            Self::Author | Self::Named(_) => None,
            Self::Keys(_) if key == "<<" => Some(0),
            Self::Keys(keys) => {
                Some(1 + keys.0.iter().position(|(name, _)| *name == key).unwrap_or(keys.0.len()))
            }
        }
    }
}

//! What is known of something on the server.

/// Proven, or as it was last, or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known<T> {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// It was like this, and may have changed since.
    Stale(T),
    /// It is like this.
    Proven(T),
}

impl<T> Known<T> {
    /// What it is, where that is certain.
    pub(crate) fn proven(&self) -> Option<&T> {
        match self {
            Known::Proven(value) => Some(value),
            Known::Stale(_) | Known::Unknown => None,
        }
    }

    /// What it was last.
    pub(crate) fn last(&self) -> Option<&T> {
        match self {
            Known::Proven(value) | Known::Stale(value) => Some(value),
            Known::Unknown => None,
        }
    }

    /// True when it is certain.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven().is_some()
    }

    /// The same of what it was or is.
    pub(crate) fn map(self, of: impl FnOnce(T) -> T) -> Self {
        match self {
            Known::Proven(value) => Known::Proven(of(value)),
            Known::Stale(value) => Known::Stale(of(value)),
            Known::Unknown => Known::Unknown,
        }
    }

    /// It may have changed.
    pub(crate) fn doubt(&mut self) {
        *self = match std::mem::take(self) {
            Known::Proven(value) | Known::Stale(value) => Known::Stale(value),
            Known::Unknown => Known::Unknown,
        };
    }
}

/// What was told now.
impl<T> From<Option<T>> for Known<T> {
    fn from(told: Option<T>) -> Self {
        told.map_or(Known::Unknown, Known::Proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_doubted_is_stale_and_nothing_else_changes() {
        let mut known = Known::from(Some(7));
        assert_eq!((known.proven(), known.last()), (Some(&7), Some(&7)));
        for _ in 0..2 {
            known.doubt();
            assert_eq!((known.proven(), known.last()), (None, Some(&7)));
        }
        let mut unknown = Known::<u8>::from(None);
        unknown.doubt();
        assert_eq!((unknown.is_proven(), unknown.last()), (false, None));
    }
}

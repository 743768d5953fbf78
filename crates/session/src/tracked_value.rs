//! What is known of something on the server.

/// Proven, or as it was last, or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackedValue<T> {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// It was like this, and may have changed since.
    Stale(T),
    /// It is like this.
    Proven(T),
}

impl<T> TrackedValue<T> {
    /// What it is, where that is certain.
    pub(crate) fn proven(&self) -> Option<&T> {
        match self {
            TrackedValue::Proven(value) => Some(value),
            TrackedValue::Stale(_) | TrackedValue::Unknown => None,
        }
    }

    /// What it was last.
    pub(crate) fn last_value(&self) -> Option<&T> {
        match self {
            TrackedValue::Proven(value) | TrackedValue::Stale(value) => Some(value),
            TrackedValue::Unknown => None,
        }
    }

    /// True when it is certain.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven().is_some()
    }

    /// The same of what it was or is.
    pub(crate) fn map(self, of: impl FnOnce(T) -> T) -> Self {
        match self {
            TrackedValue::Proven(value) => TrackedValue::Proven(of(value)),
            TrackedValue::Stale(value) => TrackedValue::Stale(of(value)),
            TrackedValue::Unknown => TrackedValue::Unknown,
        }
    }

    /// It may have changed.
    pub(crate) fn invalidate(&mut self) {
        *self = match std::mem::take(self) {
            TrackedValue::Proven(value) | TrackedValue::Stale(value) => TrackedValue::Stale(value),
            TrackedValue::Unknown => TrackedValue::Unknown,
        };
    }
}

/// What was told now.
impl<T> From<Option<T>> for TrackedValue<T> {
    fn from(told: Option<T>) -> Self {
        told.map_or(TrackedValue::Unknown, TrackedValue::Proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_doubted_is_stale_and_nothing_else_changes() {
        let mut known = TrackedValue::from(Some(7));
        assert_eq!((known.proven(), known.last_value()), (Some(&7), Some(&7)));
        for _ in 0..2 {
            known.invalidate();
            assert_eq!((known.proven(), known.last_value()), (None, Some(&7)));
        }
        let mut unknown = TrackedValue::<u8>::from(None);
        unknown.invalidate();
        assert_eq!((unknown.is_proven(), unknown.last_value()), (false, None));
    }
}

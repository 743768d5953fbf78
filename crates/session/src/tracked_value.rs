//! What is known of a value on the server.

/// Proven, or the last known value, or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackedValue<T> {
    #[default]
    Unknown,
    /// The value was this, and may have changed since.
    Stale(T),
    Proven(T),
}

impl<T> TrackedValue<T> {
    /// The value, if certain.
    pub(crate) fn proven(&self) -> Option<&T> {
        match self {
            TrackedValue::Proven(value) => Some(value),
            TrackedValue::Stale(_) | TrackedValue::Unknown => None,
        }
    }

    pub(crate) fn last_value(&self) -> Option<&T> {
        match self {
            TrackedValue::Proven(value) | TrackedValue::Stale(value) => Some(value),
            TrackedValue::Unknown => None,
        }
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.proven().is_some()
    }

    pub(crate) fn map(self, change: impl FnOnce(T) -> T) -> Self {
        match self {
            TrackedValue::Proven(value) => TrackedValue::Proven(change(value)),
            TrackedValue::Stale(value) => TrackedValue::Stale(change(value)),
            TrackedValue::Unknown => TrackedValue::Unknown,
        }
    }

    pub(crate) fn invalidate(&mut self) {
        *self = match std::mem::take(self) {
            TrackedValue::Proven(value) | TrackedValue::Stale(value) => TrackedValue::Stale(value),
            TrackedValue::Unknown => TrackedValue::Unknown,
        };
    }
}

impl<T> From<Option<T>> for TrackedValue<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(TrackedValue::Unknown, TrackedValue::Proven)
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

//! Timelines as values: definitions, ids, and how pages are merged.

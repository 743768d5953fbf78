//! The text of a command, and what it means for a timeline.

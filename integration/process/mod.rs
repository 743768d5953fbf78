//! Stories of the process: start, settings, limits, signals.

//! Stories, each told against real servers.

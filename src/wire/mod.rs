//! MySQL bytes to values and back: no sockets, no clock.

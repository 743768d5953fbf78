//! Which Headwater this is: its number, the commit that it was built from, and how (`build.rs`).

/// Of the package.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// The commit and its day, with `modified` behind them where the sources were others; `unknown commit` where nobody told.
pub const COMMIT: &str = env!("HEADWATER_BUILD_COMMIT");

/// With optimisation or without, and for which machine: `release, x86_64-unknown-linux-gnu`.
pub const BUILD: &str = concat!(
    env!("HEADWATER_BUILD_PROFILE"),
    ", ",
    env!("HEADWATER_BUILD_TARGET")
);

/// All of it, as `headwater --version` says it behind the name.
pub const WHOLE: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("HEADWATER_BUILD_COMMIT"),
    ", ",
    env!("HEADWATER_BUILD_PROFILE"),
    ", ",
    env!("HEADWATER_BUILD_TARGET"),
    ")"
);

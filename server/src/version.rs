//! Headwater's version: the number, the commit that it was built from, and the build's profile and target (`build.rs`).

/// The package's version.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// The commit and its day, followed by `modified` if the sources differed; `unknown commit` if the build did not provide it.
pub const COMMIT: &str = env!("HEADWATER_BUILD_COMMIT");

/// Build profile and target: `release, x86_64-unknown-linux-gnu`.
pub const BUILD: &str = concat!(
    env!("HEADWATER_BUILD_PROFILE"),
    ", ",
    env!("HEADWATER_BUILD_TARGET")
);

/// The whole, as `headwater --version` prints it after the name.
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

//! One cap for the memory of the process (`memory.limit`), divided by use.

use serde::{Deserialize, Serialize};

use super::ServeSettings;
use crate::session_capacity;
use headwater_proxy::binlog::BinlogLimits;

/// The settings file's section `memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySection {
    /// Bytes for all of Headwater; 0: [`default_limit`].
    #[serde(deserialize_with = "headwater_proxy::size::read")]
    pub limit: usize,
}

/// Less memory is of no use, and surely a mistake: the value is in bytes, not mebibytes.
pub(super) const MIN_LIMIT: usize = 32 << 20;
/// Upper bound of the default, however large the machine is.
const MAX_DEFAULT_LIMIT: usize = 1 << 30;
/// The longest reply to a load that is read, in bytes.
const LOAD_BYTES: usize = 64 << 20;

/// The default of `memory.limit`: the lesser of 1 GiB and a quarter of the memory of the machine or the control group.
#[must_use]
pub fn default_limit() -> usize {
    let all = [
        session_capacity::meminfo("MemTotal:"),
        session_capacity::cgroup_memory_limit(),
    ];
    let all = all.into_iter().flatten().min();
    all.map_or(MAX_DEFAULT_LIMIT, |all| {
        (all / 4).clamp(MIN_LIMIT, MAX_DEFAULT_LIMIT)
    })
}

/// Fits the requested bounds into `limit`. A quarter is for sessions and transient buffers; index and cached rows share the rest, in the
/// requested proportion if both do not fit.
#[must_use]
pub fn fit_limits(limit: usize, requested: BinlogLimits) -> BinlogLimits {
    let available = limit - limit / 4;
    let both = requested.memory_bytes.saturating_add(requested.rows_bytes);
    let rows_bytes = match both <= available {
        true => requested.rows_bytes,
        false => share(available, requested.rows_bytes, both),
    };
    let index_bytes = available - rows_bytes;
    BinlogLimits {
        memory_bytes: requested.memory_bytes.min(index_bytes),
        index_bytes,
        rows_bytes,
        // Two loads run at a time.
        load_bytes: LOAD_BYTES.min(limit / 16),
        event_bytes: requested.event_bytes.min(limit / 8),
        ..requested
    }
}

fn share(all: usize, part: usize, both: usize) -> usize {
    let share = (all as u128) * (part as u128) / (both.max(1) as u128);
    usize::try_from(share).unwrap_or(all).min(all)
}

impl ServeSettings {
    /// Describes what does not fit into `memory.limit`, and the remedy.
    #[must_use]
    pub fn memory_shortage(&self) -> Option<String> {
        shortage(self.memory.limit, &self.requested_limits, &self.binlog)
    }
}

fn shortage(limit: usize, wished: &BinlogLimits, got: &BinlogLimits) -> Option<String> {
    let reduced: Vec<String> = [
        ("index.memory_bytes", wished.memory_bytes, got.memory_bytes),
        ("rows.memory_bytes", wished.rows_bytes, got.rows_bytes),
        ("binlog.event_bytes", wished.event_bytes, got.event_bytes),
    ]
    .into_iter()
    .filter(|(_, wished, got)| got < wished)
    .map(|(name, wished, got)| format!("{name} = {wished} is held to {got}"))
    .collect();
    (!reduced.is_empty()).then(|| {
        format!(
            "memory.limit = {limit} (--memory-limit, HEADWATER_MEMORY_LIMIT) leaves less than these ask for: {}. Raise it, or lower them",
            reduced.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: usize = 1 << 20;

    fn wished(index: usize, rows: usize) -> BinlogLimits {
        BinlogLimits {
            memory_bytes: index,
            index_bytes: index,
            preload: false,
            wait_ms: 1_000,
            rows_bytes: rows,
            load_bytes: 64 * MIB,
            transaction_rows: 200_000,
            data_nodes: true,
            event_bytes: 65 * MIB,
        }
    }

    #[test]
    fn what_is_usual_fits_a_gibibyte_and_shares_less() {
        let usual = wished(256 * MIB, 256 * MIB);
        let got = fit_limits(1 << 30, usual);
        assert_eq!((got.memory_bytes, got.rows_bytes), (256 * MIB, 256 * MIB));
        assert_eq!((got.event_bytes, got.load_bytes), (65 * MIB, 64 * MIB));
        // More timelines share the rest.
        assert_eq!(got.index_bytes, 512 * MIB);
        assert_eq!(shortage(1 << 30, &usual, &got), None);
        let got = fit_limits(256 * MIB, usual);
        assert_eq!((got.memory_bytes, got.rows_bytes), (96 * MIB, 96 * MIB));
        let told = shortage(256 * MIB, &usual, &got).unwrap_or_default();
        assert!(
            told.contains("index.memory_bytes = 268435456 is held to 100663296"),
            "{told}"
        );
    }

    proptest! {
        #[test]
        fn all_uses_together_fit(
            limit in MIN_LIMIT..1 << 40,
            index in 0_usize..1 << 42,
            rows in 0_usize..1 << 42,
        ) {
            let wished = wished(index, rows);
            let got = fit_limits(limit, wished);
            let moment = 2 * got.load_bytes + got.event_bytes;
            prop_assert!(got.index_bytes + got.rows_bytes + moment <= limit);
            prop_assert!(got.memory_bytes <= index && got.rows_bytes <= rows);
            prop_assert!(got.memory_bytes <= got.index_bytes);
            // What fits is had.
            if index + rows <= limit - limit / 4 {
                prop_assert_eq!((got.memory_bytes, got.rows_bytes), (index, rows));
            }
        }
    }
}

//! Results of shadow comparisons: counts, and the last difference with both answers.

use std::time::UNIX_EPOCH;

use serde::Serialize;

use headwater_lookup::lookup::LookupResult;
use headwater_proxy::session::shared_state::SharedState;

/// Counts of comparisons; empty if nothing is compared.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShadowReport {
    /// False: `shadow.rate` is 0, or there is no memory.
    compares: bool,
    same: u64,
    different: u64,
    unsure: u64,
    last: Option<DifferenceReport>,
}

/// The last answer that differed.
#[derive(Debug, Serialize)]
struct DifferenceReport {
    /// Seconds since 1970.
    at: u64,
    definition: String,
    database: String,
    call: String,
    headwater: DifferenceAnswer,
    procedure: DifferenceAnswer,
}

#[derive(Debug, Serialize)]
struct DifferenceAnswer {
    ids: Vec<u64>,
    /// Of a bounded call: authors, each with its head.
    heads: Vec<[u64; 2]>,
}

pub(super) fn report(shared: &SharedState) -> ShadowReport {
    let Some(shadow) = &shared.shadow else {
        return ShadowReport::default();
    };
    let [(_, same), (_, different), (_, unsure)] = shadow.compared();
    let last = shadow.last_difference().map(|last| DifferenceReport {
        at: last
            .at
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        definition: last.definition,
        database: last.database,
        call: last.call,
        headwater: answer(last.headwater),
        procedure: answer(last.procedure),
    });
    ShadowReport {
        compares: true,
        same,
        different,
        unsure,
        last,
    }
}

fn answer(mut result: LookupResult) -> DifferenceAnswer {
    result.ids.sort_unstable_by(|one, other| other.cmp(one));
    let heads = result.heads.iter().map(|head| [head.author, head.id]);
    let mut heads: Vec<_> = heads.collect();
    heads.sort_unstable();
    DifferenceAnswer {
        ids: result.ids,
        heads,
    }
}

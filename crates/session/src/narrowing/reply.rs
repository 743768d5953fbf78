//! What of a reply follows the plan: key flags of its columns, and status flags.

use headwater_feed::variants::{Columns, Ends};
use headwater_wire::capability::Capabilities;
use headwater_wire::reply::layout::{Layout, flags, put};

/// Reads both of a whole reply that ended well.
pub(super) fn read(reply: &[u8], capabilities: Capabilities) -> Option<(Columns, Ends)> {
    let layout = Layout::read(reply, capabilities)?;
    let definitions = layout
        .definitions
        .iter()
        .filter_map(|range| reply.get(range.clone()));
    let columns = Columns::read(definitions)?;
    let ends = Ends {
        columns: layout.columns_end.map_or(Some(0), |at| flags(reply, at))?,
        last: flags(reply, layout.last)?,
    };
    Some((columns, ends))
}

/// Has both be as they are directly. False, where that cannot be.
pub(super) fn put_back(
    reply: &mut [u8],
    capabilities: Capabilities,
    learned: impl FnOnce(&mut [&mut [u8]]) -> Option<Ends>,
) -> bool {
    let Some(layout) = Layout::read(reply, capabilities) else {
        return false;
    };
    let mut definitions = Vec::with_capacity(layout.definitions.len());
    let mut rest = &mut *reply;
    let mut passed = 0;
    for range in &layout.definitions {
        let Some((before, behind)) = rest.split_at_mut_checked(range.end - passed) else {
            return false;
        };
        let Some(definition) = before.get_mut(range.start - passed..) else {
            return false;
        };
        definitions.push(definition);
        (rest, passed) = (behind, range.end);
    }
    let Some(ends) = learned(&mut definitions) else {
        return false;
    };
    if let Some(at) = layout.columns_end {
        put(reply, at, Ends::FLAGS, ends.columns);
    }
    put(reply, layout.last, Ends::FLAGS, ends.last);
    true
}

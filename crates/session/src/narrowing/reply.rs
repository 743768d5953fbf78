//! What of a reply follows the plan: key flags of its columns, and status flags.

use headwater_feed::variants::{Columns, Ends};
use headwater_wire::capability::Capabilities;
use headwater_wire::reply::layout::{self, Layout, flags, put};

/// What a whole reply that ended well says.
pub(super) struct Said {
    /// `None`: they are left out, as the client has them.
    pub(super) columns: Option<Columns>,
    pub(super) ends: Ends,
}

pub(super) fn read(reply: &[u8], capabilities: Capabilities) -> Option<Said> {
    let layout = Layout::read(reply, capabilities)?;
    let columns = match &layout.definitions {
        Some(definitions) => {
            let each = definitions
                .iter()
                .filter_map(|range| reply.get(range.clone()));
            Some(Columns::read(each)?)
        }
        None => None,
    };
    let ends = Ends {
        columns: layout.columns_end.map_or(Some(0), |at| flags(reply, at))?,
        last: flags(reply, layout.last)?,
    };
    Some(Said { columns, ends })
}

/// Has both be as they are directly. False, where that cannot be.
pub(super) fn put_back(
    reply: &mut [u8],
    capabilities: Capabilities,
    columns: &Columns,
    ends: Ends,
) -> bool {
    let Some(layout) = Layout::read(reply, capabilities) else {
        return false;
    };
    if let Some(at) = layout.columns_end {
        put(reply, at, Ends::FLAGS, ends.columns);
    }
    put(reply, layout.last, Ends::FLAGS, ends.last);
    let ranges = layout.definitions.unwrap_or_default();
    let mut definitions = Vec::with_capacity(ranges.len());
    let mut rest = reply;
    let mut passed = 0;
    for range in ranges {
        let Some((before, behind)) = rest.split_at_mut_checked(range.end - passed) else {
            return false;
        };
        let Some(definition) = before.get_mut(range.start - passed..) else {
            return false;
        };
        definitions.push(definition);
        (rest, passed) = (behind, range.end);
    }
    columns.put(&mut definitions);
    true
}

/// Has it say nothing of columns that its client has.
pub(super) fn leave_out(reply: Vec<u8>, capabilities: Capabilities) -> Vec<u8> {
    layout::without_definitions(&reply, capabilities).unwrap_or(reply)
}

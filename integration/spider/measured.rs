//! The bench measures a private Spider node.

use crate::kit::proxy::headwater;
use crate::process::bench::nothing_differs;

#[test]
fn a_bench_of_data_nodes_compares_what_it_measures() {
    if crate::kit::spider::spider(0, &[]).is_none() {
        return;
    }
    let output = headwater(&[])
        .args(["bench", "--spider", "2", "--spread-messages", "20000"])
        .args(["--seconds", "0.5", "--connections", "1", "--pages", "1,2"])
        .args(["--readers", "5", "--idle-sessions", "0"])
        .output()
        .unwrap();
    nothing_differs(&output);
}

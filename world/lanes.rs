//! A trace as a page: a lane for each who, time from above to below.

use std::fmt::Write;

use crate::trace::TraceLine;

const HEAD: &str = "<!doctype html><meta charset=utf-8><title>A world</title><style>\
body{font:12px/1.4 monospace;margin:1em}table{border-collapse:collapse}\
th{position:sticky;top:0;background:#fff;text-align:left}th,td{padding:1px 8px;border-left:1px solid #ddd;vertical-align:top;max-width:44em;overflow-wrap:anywhere}\
td:first-child{border:0;text-align:right;white-space:nowrap;color:#777}.fault{background:#fdd;font-weight:bold}</style>";

/// Connections to the server are many: all are one lane, and say their number.
fn lane(who: &str) -> &str {
    match who.strip_prefix("server ") {
        Some(_) => "server",
        None => who,
    }
}

/// The page. What was wrong stands at its end.
pub(crate) fn page(lines: &[TraceLine], fault: Option<&str>) -> String {
    let mut lanes: Vec<&str> = Vec::new();
    for line in lines {
        let lane = lane(&line.who);
        if !lanes.contains(&lane) {
            lanes.push(lane);
        }
    }
    lanes.sort_unstable();
    let mut page = format!("{HEAD}<table><tr><th>ms");
    for lane in &lanes {
        let _ = write!(page, "<th>{}", escaped(lane));
    }
    for line in lines {
        let _ = write!(page, "\n<tr><td>{:.3}", line.at.as_secs_f64() * 1000.0);
        for of in &lanes {
            page.push_str("<td>");
            if lane(&line.who) == *of {
                if let Some(number) = line.who.strip_prefix("server ") {
                    let _ = write!(page, "<b>{}</b> ", escaped(number));
                }
                page.push_str(&escaped(&line.what));
            }
        }
    }
    if let Some(fault) = fault {
        let (width, fault) = (lanes.len() + 1, escaped(fault).replace('\n', "<br>"));
        let _ = write!(page, "\n<tr><td class=fault colspan={width}>{fault}");
    }
    page.push_str("</table>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

//! A trace as an HTML page: a lane for each participant, time from top to bottom.

use std::fmt::Write;

use crate::trace::TraceLine;

const HEAD: &str = "<!doctype html><meta charset=utf-8><title>A world</title><style>\
body{font:12px/1.4 monospace;margin:1em}table{border-collapse:collapse}\
th{position:sticky;top:0;background:#fff;text-align:left}th,td{padding:1px 8px;border-left:1px solid #ddd;vertical-align:top;max-width:44em;overflow-wrap:anywhere}\
td:first-child{border:0;text-align:right;white-space:nowrap;color:#777}.fault{background:#fdd;font-weight:bold}</style>";

/// All server connections share one lane, and show their number.
fn lane(who: &str) -> &str {
    match who.strip_prefix("server ") {
        Some(_) => "server",
        None => who,
    }
}

/// The page; the fault is at its end.
pub(crate) fn page(lines: &[TraceLine], fault: Option<&str>) -> String {
    let mut tallies: Vec<&str> = Vec::new();
    for line in lines {
        let tally = lane(&line.who);
        if !tallies.contains(&tally) {
            tallies.push(tally);
        }
    }
    tallies.sort_unstable();
    let mut page = format!("{HEAD}<table><tr><th>ms");
    for tally in &tallies {
        let _ = write!(page, "<th>{}", escaped(tally));
    }
    for line in lines {
        let _ = write!(page, "\n<tr><td>{:.3}", line.at.as_secs_f64() * 1000.0);
        for of in &tallies {
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
        let (width, fault) = (tallies.len() + 1, escaped(fault).replace('\n', "<br>"));
        let _ = write!(page, "\n<tr><td class=fault colspan={width}>{fault}");
    }
    page.push_str("</table>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

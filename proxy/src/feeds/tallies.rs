//! Outcomes of statements, by feed and by template, for display.

use std::cmp::Reverse;

use super::{FeedRegistry, TemplateEntry, TemplateStatus};

/// The most templates shown: those with the most statements.
const MAX_TEMPLATES_SHOWN: usize = 20;

impl FeedRegistry {
    /// A line for each feed, and one for each of the templates with the most statements.
    #[must_use]
    pub fn tallies(&self) -> Vec<String> {
        let state = self.state();
        let feeds = state.feeds.iter().filter(|feed| feed.counted.total() > 0);
        let feeds = feeds.map(|feed| format!("feed {}: {}", feed.definition.name, feed.counted));
        let mut entries: Vec<&TemplateEntry> =
            state.templates.iter().map(|(_, entry)| entry).collect();
        entries.sort_by_cached_key(|entry| (Reverse(entry.counted.total()), entry.shown.clone()));
        let templates = entries.into_iter().take(MAX_TEMPLATES_SHOWN).map(|entry| {
            let (mut of, mut times) = (String::new(), String::new());
            if let TemplateStatus::Known {
                outcome: Ok(template),
                ..
            } = &entry.status
            {
                let feed = state.feed(template.feed, self.first_number);
                of = feed.map_or_else(String::new, |feed| format!(" of {}", feed.definition.name));
                if let Some((directly, narrowed)) = template.times() {
                    times = format!(
                        ", {} directly, {} narrowed",
                        milliseconds(directly),
                        milliseconds(narrowed)
                    );
                }
            }
            format!("statements{of}: {}{times}: {}", entry.counted, entry.shown)
        });
        feeds.chain(templates).collect()
    }
}

fn milliseconds(microseconds: f64) -> String {
    format!("{:.2} ms", microseconds / 1_000.0)
}

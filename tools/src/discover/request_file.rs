//! A file for `headwater bench --request`, made of the SELECTs that went by: what an app asks for one page.

use headwater_feed::FeedDefinition;
use headwater_feed::tally::StatementStats;
use headwater_feed::words::{ListKind, StatementWords, WordKind};
use headwater_sql::quoted;

/// The most statements of a request.
const MOST: usize = 30;
/// A statement belongs to each page if it is seen at least this often, compared to the most frequent page.
const LEAST_SHARE: f64 = 0.25;

/// The lines of the file, if who reads is known: a feed with a table of follows.
pub(super) fn request_lines(
    feed: &FeedDefinition,
    database: &str,
    statements: &[StatementStats],
) -> Option<Vec<String>> {
    let follow = feed.follow.as_ref()?;
    let (table, reader) = (quoted(&follow.table), quoted(&follow.reader));
    let mut own: Vec<&StatementStats> = statements
        .iter()
        .filter(|stats| stats.database.as_deref() == Some(database))
        .collect();
    own.sort_by_key(|stats| stats.first_seen);
    let is_page = |stats: &&&StatementStats| has_word(&stats.text, "LIMIT");
    let most = own.iter().filter(is_page).map(|stats| stats.times).max()?;
    #[allow(clippy::cast_precision_loss, reason = "a share of counts")]
    let is_frequent = |stats: &&&StatementStats| stats.times as f64 >= most as f64 * LEAST_SHARE;
    let mut lines = vec![
        "# If the app connects for each page, begin with a line `connect`, and with the statements that follow its login.".to_owned(),
        format!("readers SELECT DISTINCT {reader} FROM {table}"),
    ];
    let mut has_page = false;
    for stats in own.iter().filter(is_frequent).take(MOST) {
        let line = request_line(&stats.text, &follow.reader, has_page);
        lines.push(line.unwrap_or_else(|| {
            format!(
                "# write its values and remove the sign in front: {}",
                one_line(&stats.text)
            )
        }));
        has_page |= has_word(&stats.text, "LIMIT");
    }
    Some(lines)
}

fn has_word(text: &str, word: &str) -> bool {
    headwater_sql::contains_ignoring_case(text.as_bytes(), word)
}

/// The statement with placeholders. `None`: it has a parameter whose value is not known.
fn request_line(text: &str, reader: &str, has_page: bool) -> Option<String> {
    let words = StatementWords::read(text.as_bytes())?;
    let name = |at: usize| {
        let text = words.text(at, text.as_bytes());
        let inner = text.strip_prefix(b"`").and_then(|it| it.strip_suffix(b"`"));
        String::from_utf8_lossy(inner.unwrap_or(text)).into_owned()
    };
    let is =
        |at: Option<usize>, word: &str| at.is_some_and(|at| name(at).eq_ignore_ascii_case(word));
    let (mut line, mut done) = (String::new(), 0);
    for (at, word) in words.words.iter().enumerate() {
        let before = |count: usize| at.checked_sub(count);
        let placeholder = match word.kind {
            WordKind::Number | WordKind::Text | WordKind::Parameter
                if is(before(1), "=") && is(before(2), reader) =>
            {
                "{reader}"
            }
            WordKind::Number | WordKind::Parameter if is(before(1), "OFFSET") => "{page}",
            WordKind::List(ListKind::Numbers | ListKind::Parameters)
                if has_page && is(before(1), "IN") && !is(before(2), "NOT") =>
            {
                "({ids})"
            }
            WordKind::Parameter | WordKind::List(ListKind::Parameters) => return None,
            _ => continue,
        };
        line.push_str(&escaped(text.get(done..word.start)?));
        line.push_str(placeholder);
        done = word.end;
    }
    line.push_str(&escaped(text.get(done..)?));
    Some(one_line(&line))
}

/// A brace that begins no placeholder is written twice.
fn escaped(text: &str) -> String {
    text.replace('{', "{{")
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_become_placeholders() {
        let of = |text: &str| request_line(text, "user_id", true);
        assert_eq!(
            of("SELECT * FROM posts p JOIN follows f ON f.author = p.author\n WHERE f.`user_id` = 7 AND kind = 'a' ORDER BY id DESC LIMIT 20 OFFSET 40")
                .unwrap(),
            "SELECT * FROM posts p JOIN follows f ON f.author = p.author WHERE f.`user_id` = {reader} AND kind = 'a' ORDER BY id DESC LIMIT 20 OFFSET {page}"
        );
        assert_eq!(
            of("SELECT COUNT(*) FROM posts WHERE author IN (SELECT author FROM follows WHERE user_id = ?)").unwrap(),
            "SELECT COUNT(*) FROM posts WHERE author IN (SELECT author FROM follows WHERE user_id = {reader})"
        );
        assert_eq!(
            of("SELECT * FROM likes WHERE post IN (1, 2, 3) AND a = '{b}'").unwrap(),
            "SELECT * FROM likes WHERE post IN ({ids}) AND a = '{{b}'"
        );
        assert_eq!(of("SELECT * FROM users WHERE id = ?"), None);
        let first = request_line("SELECT * FROM a WHERE b IN (1, 2)", "user_id", false);
        assert_eq!(first.unwrap(), "SELECT * FROM a WHERE b IN (1, 2)");
    }

    #[test]
    fn a_request_holds_what_every_page_asks() {
        let feed: FeedDefinition = toml::from_str(
            "name = 'home'\n[message]\ntable = 'posts'\nauthor = 'user_id'\n[follow]\ntable = 'follows'\nreader = 'reader'\nauthor = 'author'",
        )
        .unwrap();
        let seen = |text: &str, times, first_seen| StatementStats {
            database: Some("app".to_owned()),
            text: text.to_owned(),
            times,
            first_seen,
            ..StatementStats::default()
        };
        let all = [
            seen("SELECT COUNT(*) FROM follows WHERE reader = 7", 90, 2),
            seen(
                "SELECT id FROM posts WHERE user_id = 3 ORDER BY id DESC LIMIT 5",
                100,
                1,
            ),
            seen("SELECT * FROM settings", 3, 0),
            seen("SELECT * FROM users WHERE id = ?", 100, 3),
        ];
        let lines = request_lines(&feed, "app", &all).unwrap();
        assert_eq!(
            lines.get(1..).unwrap(),
            [
                "readers SELECT DISTINCT `reader` FROM `follows`",
                "SELECT id FROM posts WHERE user_id = 3 ORDER BY id DESC LIMIT 5",
                "SELECT COUNT(*) FROM follows WHERE reader = {reader}",
                "# write its values and remove the sign in front: SELECT * FROM users WHERE id = ?",
            ]
        );
        assert_eq!(request_lines(&feed, "other", &all), None);
    }
}

//! Whether a token of a logged statement may be the name of a watched table, or of its database.

use super::lexer::LoggedToken;
use crate::routes::TableRoutes;

/// Longer tokens are not names: 64 characters of at most four bytes, each of them perhaps doubled.
const MAX_NAME_BYTES: usize = 64 * 4 * 2;

/// The watched tables, for a statement that ran in the database `schema`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoutedTableNames<'a> {
    pub(crate) routes: &'a TableRoutes,
    pub(crate) schema: &'a [u8],
}

impl RoutedTableNames<'_> {
    /// True if a name may be one of the tables; `database` is its qualifier, if any.
    pub(crate) fn is_table(
        &self,
        database: Option<&LoggedToken<'_>>,
        name: &LoggedToken<'_>,
    ) -> bool {
        let routes = &self.routes;
        routes.routes.iter().any(|route| {
            let database_matches = match database {
                Some(database) => self.may_match(database, &route.database),
                None => routes.is_same_name(route.database.as_bytes(), self.schema),
            };
            database_matches && self.may_match(name, &route.name)
        })
    }

    pub(crate) fn is_database(&self, name: &LoggedToken<'_>) -> bool {
        let mut routes = self.routes.routes.iter();
        routes.any(|route| self.may_match(name, &route.database))
    }

    /// True if this text cannot name any of the tables, however it is read.
    pub(crate) fn no_table_in(&self, text: &[u8]) -> bool {
        let mut routes = self.routes.routes.iter();
        routes.all(|route| self.is_absent(&route.name, text))
    }

    /// The same for the databases.
    pub(crate) fn no_database_in(&self, text: &[u8]) -> bool {
        let mut routes = self.routes.routes.iter();
        routes.all(|route| self.is_absent(&route.database, text))
    }

    /// The letters of a name are the same bytes in every character set that a client may use. With case folding, a letter beyond ASCII may
    /// equal an ASCII one (`K`, the Kelvin sign).
    fn is_absent(&self, name: &str, text: &[u8]) -> bool {
        if self.routes.caseless && !text.is_ascii() {
            return false;
        }
        let mut parts = name.as_bytes().split(|byte| !is_plain(*byte));
        let longest = parts.clone().map(<[u8]>::len).max().unwrap_or_default();
        parts
            .find(|part| part.len() == longest)
            .is_some_and(|part| {
                longest > 0
                    && !text
                        .windows(longest)
                        .any(|window| window.eq_ignore_ascii_case(part))
            })
    }

    /// True if a token may be this name: which letters its bytes beyond ASCII are depends on the character set.
    fn may_match(&self, token: &LoggedToken<'_>, name: &str) -> bool {
        if token.text.len() > MAX_NAME_BYTES {
            return false;
        }
        let plain = name.bytes().all(is_plain);
        let caseless = self.routes.caseless;
        if plain && !caseless {
            return unescaped_bytes(token).eq(name.bytes());
        }
        let bytes: Vec<u8> = unescaped_bytes(token).collect();
        let is_wild = |byte: u8| byte >= 0x80 || !plain && !is_plain(byte);
        let same = |expected: u8, other: u8| {
            expected == other || caseless && expected.eq_ignore_ascii_case(&other)
        };
        matches_pattern(&bytes, name.as_bytes(), is_wild, same)
    }
}

/// A byte that is the same letter or digit in every character set.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// The bytes of a token, with doubled quotes once.
fn unescaped_bytes<'a>(token: &LoggedToken<'a>) -> impl Iterator<Item = u8> + use<'a> {
    let quote = token.quote;
    let mut before = false;
    token.text.iter().copied().filter(move |byte| {
        let second = before && *byte == quote && quote != 0;
        before = *byte == quote && !second;
        !second
    })
}

/// True if a name matches a pattern in which each wild byte stands for any bytes, or none.
fn matches_pattern(
    pattern: &[u8],
    name: &[u8],
    is_wild: impl Fn(u8) -> bool,
    same: impl Fn(u8, u8) -> bool,
) -> bool {
    let (mut at, mut name_at) = (0, 0);
    // The position of the last wild byte, and how much of the name it has matched.
    let mut last: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(name_at).copied() {
        match pattern.get(at).copied() {
            Some(wild) if is_wild(wild) => {
                last = Some((at, name_at));
                at += 1;
            }
            Some(other) if same(other, byte) => {
                at += 1;
                name_at += 1;
            }
            _ => match &mut last {
                Some((wild, taken)) => {
                    *taken += 1;
                    (at, name_at) = (*wild + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|byte| is_wild(*byte))
}

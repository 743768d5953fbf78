//! Whether a server distinguishes names of databases, tables and aliases by case (`lower_case_table_names`).

use std::borrow::Cow;

/// How a server compares these names (MySQL manual, *Identifier Case Sensitivity*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameCase {
    /// Byte by byte (0).
    #[default]
    Sensitive,
    /// In lower case, as its catalogue and its log have them (1).
    Folded,
}

impl NameCase {
    /// From the server's variable. 2 (names stay as written and compare in lower case) is for file systems without case. It counts as
    /// sensitive: only names written as in the catalogue are found.
    #[must_use]
    pub fn from_variable(value: &str) -> NameCase {
        match value {
            "1" => NameCase::Folded,
            _ => NameCase::Sensitive,
        }
    }

    /// Returns the name as the server stores it. Letters beyond ASCII are not folded, so a name with a capital one is not found.
    #[must_use]
    pub fn fold(self, name: &[u8]) -> Cow<'_, [u8]> {
        match self {
            NameCase::Folded if name.iter().any(u8::is_ascii_uppercase) => {
                Cow::Owned(name.to_ascii_lowercase())
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// Like [`NameCase::fold`], in place.
    pub fn fold_text(self, name: &mut str) {
        if self == NameCase::Folded {
            name.make_ascii_lowercase();
        }
    }

    /// True if the server takes the two names for one.
    #[must_use]
    pub fn is_same_name(self, one: &str, other: &str) -> bool {
        match self {
            NameCase::Sensitive => one == other,
            NameCase::Folded => one.eq_ignore_ascii_case(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_where_the_server_takes_them_for_one() {
        let [kept, folded] = ["0", "1"].map(NameCase::from_variable);
        assert!(!kept.is_same_name("Posts", "posts") && folded.is_same_name("Posts", "posts"));
        assert!(!folded.is_same_name("posts", "post"));
        assert_eq!(&*kept.fold(b"Posts"), b"Posts");
        assert_eq!(&*folded.fold("PÖsts".as_bytes()), "pÖsts".as_bytes());
        let mut name = "Posts".to_owned();
        kept.fold_text(&mut name);
        assert_eq!(name, "Posts");
        folded.fold_text(&mut name);
        assert_eq!(name, "posts");
    }
}

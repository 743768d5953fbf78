//! Whether a server tells names of databases, tables and aliases apart by the case of their letters (`lower_case_table_names`).

use std::borrow::Cow;

/// How a server compares these names (MySQL manual, *Identifier Case Sensitivity*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameCase {
    /// Byte by byte (0).
    #[default]
    Sensitive,
    /// As they are in small letters, in which its catalogue and its log have them (1).
    Folded,
}

impl NameCase {
    /// As the server's variable says. 2 (names are kept as they are written, and compared in small letters) is that of systems whose files
    /// have no case, where names are found that were written as the catalogue has them.
    #[must_use]
    pub fn from_variable(value: &str) -> NameCase {
        match value {
            "1" => NameCase::Folded,
            _ => NameCase::Sensitive,
        }
    }

    /// A name as the server has it. Letters beyond ASCII stay as they are: a name with a capital one is not found.
    #[must_use]
    pub fn fold(self, name: &[u8]) -> Cow<'_, [u8]> {
        match self {
            NameCase::Folded if name.iter().any(u8::is_ascii_uppercase) => {
                Cow::Owned(name.to_ascii_lowercase())
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// The same in its place.
    pub fn fold_text(self, name: &mut str) {
        if self == NameCase::Folded {
            name.make_ascii_lowercase();
        }
    }

    /// True where two names are one to the server.
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

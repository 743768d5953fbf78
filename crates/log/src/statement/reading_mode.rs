//! The ways in which a server may have read the bytes of a logged statement.
//!
//! A query event contains the session's character set and `sql_mode` at the time when the statement *ran*. A prepared statement was
//! parsed earlier, under the settings of that time, which neither server logs (MariaDB 10.11, MySQL 9.7). So a text is read in every
//! mode that gives other tokens, and the worst result counts. For most texts there is only one mode.

/// How bytes above 0x7F are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HighBytes {
    /// As letters: UTF-8, and character sets without white space above 0x7F. In EUC-JP, GB 2312 and EUC-KR no character contains a byte
    /// with another meaning, nor do four-byte characters of GB 18030.
    Letters,
    /// This byte is white space, the others are letters: 0xA0 in armscii8, cp1250, dec8, geostd8, greek, hebrew, latin1, latin2, latin5,
    /// latin7; 0xFF in cp852, cp866, keybcs2 (verified on both servers, for each byte of each character set).
    Space(u8),
    /// GBK and GB 18030: a byte from 0x81 on includes the next one in its character, even a back quote or a backslash.
    Gbk,
    /// Big5: the same, from 0xA1 on.
    Big5,
    /// Shift JIS and cp932: the same, but half-width letters are single bytes.
    Sjis,
}

/// Where a backslash escapes the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackslashEscapes {
    /// In quotes of either kind.
    Both,
    /// In single quotes: double ones enclose names (`ANSI_QUOTES`).
    Single,
    /// Nowhere (`NO_BACKSLASH_ESCAPES`).
    Nowhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadingMode {
    pub(crate) high_bytes: HighBytes,
    pub(crate) escapes: BackslashEscapes,
    /// Square brackets quote names (MariaDB's `sql_mode=MSSQL`).
    pub(crate) brackets: bool,
    /// The content of `/*M! */` is executed: on MariaDB.
    pub(crate) for_mariadb: bool,
    /// The content of `/*!nnnnn */` is executed, if the version is not one that every current server executes. Servers that do not execute
    /// it overwrite the `!`.
    pub(crate) for_later: bool,
}

const ALL_HIGH_BYTES: [HighBytes; 6] = [
    HighBytes::Letters,
    HighBytes::Space(0xa0),
    HighBytes::Space(0xff),
    HighBytes::Gbk,
    HighBytes::Big5,
    HighBytes::Sjis,
];
const ALL_ESCAPES: [BackslashEscapes; 3] = [
    BackslashEscapes::Both,
    BackslashEscapes::Single,
    BackslashEscapes::Nowhere,
];

impl ReadingMode {
    /// The first of all modes, and the only one for most texts.
    pub(crate) const PLAIN: ReadingMode = ReadingMode {
        high_bytes: HighBytes::Letters,
        escapes: BackslashEscapes::Both,
        brackets: false,
        for_mariadb: true,
        for_later: true,
    };

    /// Every mode in which this text may give other tokens.
    pub(crate) fn applicable_to(text: &[u8]) -> impl Iterator<Item = ReadingMode> + Clone {
        let holds = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        let highs = first_or_all(&ALL_HIGH_BYTES, !text.is_ascii());
        let escapes = first_or_all(&ALL_ESCAPES, holds(b"\\"));
        let brackets = first_or_all(&[false, true], holds(b"["));
        let for_mariadb = first_or_all(&[true, false], holds(b"/*M!"));
        let for_later = first_or_all(&[true, false], holds(b"/*!"));
        highs.iter().flat_map(move |high| {
            escapes.iter().flat_map(move |escapes| {
                brackets.iter().flat_map(move |brackets| {
                    for_mariadb.iter().flat_map(move |for_mariadb| {
                        for_later.iter().map(move |for_later| ReadingMode {
                            high_bytes: *high,
                            escapes: *escapes,
                            brackets: *brackets,
                            for_mariadb: *for_mariadb,
                            for_later: *for_later,
                        })
                    })
                })
            })
        })
    }

    /// The size of the character that begins with these two bytes, outside of quotes and in them.
    pub(crate) fn character_bytes(self, first: u8, second: Option<u8>) -> usize {
        let (leads, trails) = match self.high_bytes {
            HighBytes::Letters | HighBytes::Space(_) => (false, false),
            HighBytes::Gbk => (
                matches!(first, 0x81..=0xfe),
                matches!(second, Some(0x40..=0x7e | 0x80..=0xfe)),
            ),
            HighBytes::Big5 => (
                matches!(first, 0xa1..=0xf9),
                matches!(second, Some(0x40..=0x7e | 0xa1..=0xfe)),
            ),
            HighBytes::Sjis => (
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc),
                matches!(second, Some(0x40..=0x7e | 0x80..=0xfc)),
            ),
        };
        if leads && trails { 2 } else { 1 }
    }

    pub(crate) fn is_space(self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
            || self.high_bytes == HighBytes::Space(byte)
    }

    /// A byte of an unquoted name, at the start of a character.
    pub(crate) fn is_word_byte(self, byte: u8) -> bool {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        plain || byte >= 0x80 && !self.is_space(byte)
    }
}

fn first_or_all<T>(all: &'static [T], every: bool) -> &'static [T] {
    if every {
        all
    } else {
        all.get(..1).unwrap_or_default()
    }
}

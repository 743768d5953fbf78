//! What the program is told. What cargo says to all tests alike (`--skip`, `--nocapture`, names) changes nothing.

/// What stands behind an option; `None`: the option is not there.
pub(crate) fn value_after<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let place = arguments.iter().position(|it| it == name)?;
    Some(arguments.get(place + 1).map_or("", String::as_str))
}

/// The same, as a number.
pub(crate) fn number(arguments: &[String], name: &str, radix: u32) -> Result<Option<u64>, String> {
    let number = value_after(arguments, name).map(|text| {
        u64::from_str_radix(text, radix).map_err(|_| format!("{name} takes a number, not {text:?}"))
    });
    number.transpose()
}

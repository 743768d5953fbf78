//! The program's arguments. Those that cargo passes to all tests (`--skip`, `--nocapture`, names) are ignored.

/// The value after an option; `None`: the option is not given.
pub(crate) fn value_after<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let index = arguments.iter().position(|it| it == name)?;
    Some(arguments.get(index + 1).map_or("", String::as_str))
}

/// The same, as a number.
pub(crate) fn number(arguments: &[String], name: &str, radix: u32) -> Result<Option<u64>, String> {
    let number = value_after(arguments, name).map(|text| {
        u64::from_str_radix(text, radix).map_err(|_| format!("{name} takes a number, not {text:?}"))
    });
    number.transpose()
}

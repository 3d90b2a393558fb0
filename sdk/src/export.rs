//! The macro that makes a plugin of tools, and its table.

use crate::bindings::exports::toolcrib::plugin::tools::{Definition, Guest, Output};
use crate::bindings::toolcrib::plugin::types;
use crate::{Failure, Result, Tool, tool};

/// Makes a plugin of the tools: `export!(Encode, Decode);`, once in a crate.
///
/// The component exports them, and its custom section `toolcrib:tools` lists their names, a line each, so that a host
/// finds a tool without compiling every component. A native build checks the names and links nothing of the host.
#[macro_export]
macro_rules! export {
    ($($tool:ty),+ $(,)?) => {
        const _: () = {
            struct Plugin;

            impl $crate::__private::Plugin for Plugin {
                const TOOLS: &'static [$crate::__private::Entry] = &[$($crate::__private::Entry::of::<$tool>()),+];
            }

            const TOOLS: &[$crate::__private::Entry] = <Plugin as $crate::__private::Plugin>::TOOLS;

            #[used]
            #[cfg_attr(target_arch = "wasm32", unsafe(link_section = "toolcrib:tools"))]
            static _NAMES: [u8; $crate::__private::names_len(TOOLS)] = $crate::__private::names(TOOLS);

            #[cfg(target_arch = "wasm32")]
            $crate::bindings::__export_component!(Plugin with_types_in $crate::bindings);
        };
    };
}

/// One tool of a plugin.
pub struct Entry {
    name: &'static str,
    definition: fn() -> Definition,
    call: fn(&str) -> Result<Output>,
}

impl Entry {
    /// Returns the row of that tool.
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, definition: tool::definition::<T>, call: tool::call::<T> }
    }
}

/// What `export!` implements; the component's exports follow from it.
pub trait Plugin {
    /// The tools, in the order in which they are listed.
    const TOOLS: &'static [Entry];
}

impl<P: Plugin> Guest for P {
    fn definitions() -> Vec<Definition> {
        P::TOOLS.iter().map(|tool| (tool.definition)()).collect()
    }

    fn call(name: String, arguments: String) -> std::result::Result<Output, types::Failure> {
        let tool = P::TOOLS.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| Failure::internal(format!("this plugin has no tool `{name}`")).into_wit())?;
        (tool.call)(&arguments).map_err(Failure::into_wit)
    }
}

/// Returns the length of [`names`]. Names that no host accepts do not compile.
pub const fn names_len(tools: &[Entry]) -> usize {
    let mut len = tools.len() - 1;
    let mut tool = 0;
    while tool < tools.len() {
        let name = tools[tool].name.as_bytes();
        assert!(!name.is_empty() && name.len() <= 64, "the name of a tool has 1 to 64 characters");
        let mut at = 0;
        while at < name.len() {
            let fits = name[at].is_ascii_alphanumeric() || name[at] == b'_' || name[at] == b'-';
            assert!(fits, "the name of a tool is made of A-Za-z0-9_-");
            at += 1;
        }
        len += name.len();
        tool += 1;
    }
    len
}

/// Returns the names of the tools, a line each.
pub const fn names<const LEN: usize>(tools: &[Entry]) -> [u8; LEN] {
    let mut lines = [b'\n'; LEN];
    let mut end = 0;
    let mut tool = 0;
    while tool < tools.len() {
        let name = tools[tool].name.as_bytes();
        let (_, rest) = lines.split_at_mut(end);
        let (line, _) = rest.split_at_mut(name.len());
        line.copy_from_slice(name);
        end += name.len() + 1;
        tool += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guidance;

    struct First;
    struct Second;

    macro_rules! tool {
        ($tool:ty, $name:literal) => {
            impl Tool for $tool {
                const NAME: &str = $name;
                const SUMMARY: &str = "Return its name.";
                const GUIDANCE: Guidance =
                    Guidance { when_to_use: "", when_not_to_use: "", disambiguation: "", examples: &[] };
                type Input = ();
                type Output = &'static str;

                fn call((): ()) -> Result<&'static str> {
                    Ok($name)
                }
            }
        };
    }

    tool!(First, "first-tool");
    tool!(Second, "second");

    struct Both;

    impl Plugin for Both {
        const TOOLS: &'static [Entry] = &[Entry::of::<First>(), Entry::of::<Second>()];
    }

    #[test]
    fn names_are_listed_a_line_each() {
        const LINES: [u8; names_len(Both::TOOLS)] = names(Both::TOOLS);
        assert_eq!(str::from_utf8(&LINES), Ok("first-tool\nsecond"));
    }

    #[test]
    fn a_call_reaches_the_tool_of_its_name() {
        assert_eq!(<Both as Guest>::call("second".into(), "{}".into()).unwrap().json, r#""second""#);
        assert_eq!(<Both as Guest>::call("third".into(), "{}".into()).unwrap_err().kind, "internal");
    }
}

//! A component that comes with the program, and what the package of its plugin says of it, in `[package.metadata.toolcrib]`.

/// A component that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// The name of its file, without the extension.
    pub name: &'static str,
    /// Digest of its bytes, in hex.
    pub sha256: &'static str,
    /// The component.
    pub bytes: &'static [u8],
    /// What it says of its tools, as JSON: a list of definitions as `tools`, and as `checked` the limits under which they were found valid.
    /// Empty where it has to be asked.
    pub definitions: &'static str,
    /// The family that its tools are listed with on request; none where they are always listed.
    pub family: Option<&'static str>,
    /// The server that it searches the web by, if it does.
    pub search: Option<SearchServer>,
}

/// The only server that a plugin of this program reaches to search the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchServer {
    /// Its name, for people.
    pub name: &'static str,
    /// Its URL, where the plugin's section names no other.
    pub base: SearchBase,
    /// The header with the key that it asks for.
    pub key_header: Option<&'static str>,
}

/// The URL of a server that searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchBase {
    /// This one.
    Fixed(&'static str),
    /// The one of `tools.search_endpoint`.
    Endpoint,
    /// None: the plugin's section has to name it, in this form.
    Named {
        /// An example.
        example: &'static str,
    },
}

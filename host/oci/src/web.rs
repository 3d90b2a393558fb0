//! What is asked of the web to fetch a plugin: one page at a time. The host answers by its egress (`by_egress.rs`), tests as they like.

use base::envelope::Failure;
use futures_util::future::BoxFuture;
use url::Url;

/// Who can be asked for a page.
pub trait Web: Send + Sync {
    /// Asks for a page with these headers. Redirects are followed, and take none of the headers to another server that are for the first one
    /// alone. Returns the first `most` bytes of the body.
    fn get<'a>(
        &'a self,
        url: &'a Url,
        headers: &'a [(&'static str, &'a str)],
        most: u64,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;
}

/// A page.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case; what is not ASCII is left out.
    pub headers: Vec<(String, String)>,
    /// As much of the body as was asked for.
    pub body: Vec<u8>,
    /// There is more of it.
    pub is_cut: bool,
}

impl Answer {
    /// The values of all headers of a name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

//! How the files of a component are opened: the component, and the words beside it.

use base::disk::{Named, Unreadable, open_anywhere, open_itself};
use policy::host_reads::HostReads;
use std::path::Path;

/// By whose word they are opened.
#[derive(Clone, Copy)]
pub(super) enum Files<'r> {
    /// They lie in a directory of plugins.
    Found(&'r HostReads),
    /// A person names the component, or it is the one that was judged, by its digest. What lies beside it nobody has named.
    Given,
}

impl Files<'_> {
    pub(super) fn component(self, path: &Path) -> Result<Named, Unreadable> {
        match self {
            Self::Found(reads) => reads.open(path),
            Self::Given => open_anywhere(path),
        }
    }

    /// Opens the words, which models are shown.
    pub(super) fn words(self, path: &Path) -> Result<Named, Unreadable> {
        match self {
            Self::Found(reads) => reads.shown(path),
            Self::Given => open_itself(path),
        }
    }
}

//! What one plugin may do: a grant for each capability that needs one, or why there is none.
//!
//! Grants are made in `lib.rs` and beside their own types; nobody else makes one.

use super::browser::BrowserGrant;
use super::embedder::EmbedderGrant;
use super::exec::ExecGrant;
use super::http::HttpGrant;
use super::jobs::JobsGrant;
use super::mail::MailGrant;
use super::programs::ProgramsGrant;
use super::records::RecordsGrant;
use super::schedules::SchedulesGrant;
use super::shell::ShellGrant;
use super::upstream::UpstreamGrant;
use base::capability::Capability;
use base::envelope::Failure;
use config::Template;
use file_access::FilesGrant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A grant is a field, and a function of the same name that gives it or its refusal.
macro_rules! grants {
    ($($name:ident: $grant:ty,)+) => {
        /// What one plugin may do. A capability that is refused knows why.
        pub struct Grants {
            $(pub(super) $name: Result<$grant, Failure>,)+
            pub(super) introspect: Result<(), Failure>,
            pub(super) config: BTreeMap<String, Template>,
        }

        impl Grants {
            /// Nothing, for one and the same reason.
            pub(super) fn refused(why: &Failure) -> Self {
                Self {
                    $($name: Err(why.clone()),)+
                    introspect: Err(why.clone()),
                    config: BTreeMap::new(),
                }
            }

            $(
                #[doc = concat!("The grant for `", stringify!($name), "`.")]
                ///
                /// # Errors
                ///
                /// `denied`, with the line to add.
                pub fn $name(&self) -> Result<&$grant, Failure> {
                    self.$name.as_ref().map_err(Failure::clone)
                }
            )+
        }
    };
}

grants! {
    shell: ShellGrant,
    exec: ExecGrant,
    programs: ProgramsGrant,
    files: FilesGrant,
    http: HttpGrant,
    browser: BrowserGrant,
    mail: MailGrant,
    embedder: EmbedderGrant,
    records: RecordsGrant,
    jobs: JobsGrant,
    schedules: SchedulesGrant,
    upstream: Arc<UpstreamGrant>,
}

impl Grants {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> Self {
        Self::refused(&Failure::denied("no capability can be used here"))
    }

    /// What its section says for it, by `config`.
    pub fn config(&self) -> &BTreeMap<String, Template> {
        &self.config
    }

    /// The grant for `shell`, if it reaches panes.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn panes(&self) -> Result<&ShellGrant, Failure> {
        let grant = self.shell()?;
        grant.pane.as_ref().map(|()| grant).map_err(Failure::clone)
    }

    /// Whether it may look at settings, and at what toolsets declare.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn introspect(&self) -> Result<(), Failure> {
        self.introspect.clone()
    }

    /// Why a capability cannot be used at all. Typing into a pane is running a command, so the grant for `shell` decides on panes too.
    #[must_use]
    pub fn refusal(&self, capability: Capability) -> Option<Failure> {
        match capability {
            Capability::Shell | Capability::Panes | Capability::PaneSessions => self.shell().err(),
            Capability::Exec => self.exec().err(),
            Capability::Programs => self.programs().err(),
            Capability::Files => self.files().err(),
            Capability::Http => self.http().err(),
            Capability::Browser => self.browser().err(),
            Capability::Mail => self.mail().err(),
            Capability::Embedder => self.embedder().err(),
            Capability::Introspect => self.introspect().err(),
            Capability::Records => self.records().err(),
            Capability::Jobs => self.jobs().err(),
            Capability::Schedules => self.schedules().err(),
            Capability::Events => None,
            Capability::Upstream => self.upstream().err(),
        }
    }
}

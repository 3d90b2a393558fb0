//! Why a lock refuses a plugin, as programs read it.

use std::fmt;

/// Why a lock refuses a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It came with the program, and is not among those that may be used.
    BuiltinOff,
    /// Nobody vetted it.
    NotVetted,
    /// Other bytes were vetted under its name.
    OtherBytes,
    /// Its bytes were vetted under another name.
    Renamed,
    /// It says something else of its tools than what was vetted.
    DefinitionsChanged,
    /// It was taken back.
    Revoked,
    /// The list cannot be read.
    ListInvalid,
    /// Too few keys have signed the list, or it is another one.
    ListUnsigned,
    /// The list is older than one before.
    RolledBack,
    /// Two lists have one number.
    Forked,
    /// The clock is before what was signed.
    Clock,
    /// The list has ended.
    ListExpired,
    /// There is no statement, or another than the list names.
    StatementChanged,
    /// The statement cannot be read.
    StatementInvalid,
    /// Too few keys have signed the statement.
    TooFewSignatures,
    /// The statement is about something else.
    StatementMismatch,
    /// The statement has ended.
    Expired,
    /// It was not reviewed for all that the policy asks.
    Criteria,
}

impl Code {
    /// As programs read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltinOff => "builtin_off",
            Self::NotVetted => "not_vetted",
            Self::OtherBytes => "other_bytes",
            Self::Renamed => "renamed",
            Self::DefinitionsChanged => "definitions_changed",
            Self::Revoked => "revoked",
            Self::ListInvalid => "list_invalid",
            Self::ListUnsigned => "list_unsigned",
            Self::RolledBack => "rolled_back",
            Self::Forked => "forked",
            Self::Clock => "clock",
            Self::ListExpired => "list_expired",
            Self::StatementChanged => "statement_changed",
            Self::StatementInvalid => "statement_invalid",
            Self::TooFewSignatures => "too_few_signatures",
            Self::StatementMismatch => "statement_mismatch",
            Self::Expired => "expired",
            Self::Criteria => "criteria",
        }
    }
}

impl Code {
    /// Whether the reason of such a refusal has the plugin as its subject; else it is a whole sentence about a list or a clock.
    pub const fn is_about_plugin(self) -> bool {
        match self {
            Self::ListInvalid | Self::ListUnsigned | Self::RolledBack | Self::Forked | Self::Clock => false,
            Self::BuiltinOff
            | Self::NotVetted
            | Self::OtherBytes
            | Self::Renamed
            | Self::DefinitionsChanged
            | Self::Revoked
            | Self::ListExpired
            | Self::StatementChanged
            | Self::StatementInvalid
            | Self::TooFewSignatures
            | Self::StatementMismatch
            | Self::Expired
            | Self::Criteria => true,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

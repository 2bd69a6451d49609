//! Scopes: the permissions of an API key.

use crate::domain::open_enum::named_enum;

named_enum! {
    /// Permission of an API key.
    Scope {
        /// Read forms and submissions.
        Read = "read",
        /// Create submissions, and read a form's definition for that; nothing else.
        Submit = "submit",
        /// Create and change forms and submissions; includes `read` and `submit`.
        Write = "write",
        /// Manage keys and purge; includes `write`.
        Admin = "admin",
        /// Manage the server's workspaces.
        Operator = "operator",
    }
}

impl Scope {
    /// Whether this scope grants everything that `needed` grants.
    pub fn includes(self, needed: Self) -> bool {
        match self {
            Self::Admin => needed != Self::Operator,
            Self::Write => matches!(needed, Self::Write | Self::Read | Self::Submit),
            Self::Read | Self::Submit | Self::Operator => self == needed,
        }
    }
}

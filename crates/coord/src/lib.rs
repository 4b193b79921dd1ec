//! The global view: who is a member, who is active, at which epoch.

//! The replica-group protocol as a pure machine.

//! The HTTP shell: health, metrics and pages over plain snapshots.

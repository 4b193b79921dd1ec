//! A data server's disks: volumes, replicas, block and meta files.

//! Which replicas exist where: reports in, commands out.

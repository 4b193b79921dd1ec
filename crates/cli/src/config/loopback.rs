//! Servers listen on loopback addresses only, unless the operator says otherwise: clients are not authenticated.

use super::settings::Settings;
use anyhow::bail;
use std::net::SocketAddr;

/// Refuses an address that others can reach.
pub fn check(settings: &Settings, key: &str, address: Option<SocketAddr>) -> anyhow::Result<()> {
    match address {
        Some(address) if !address.ip().is_loopback() && !settings.flag("insecure_simple_auth") => bail!(
            "{key} = {address}: clients are not authenticated yet, anyone who reaches this address could act \
             as any user. Bind a loopback address, or set insecure_simple_auth = true in the file to accept that"
        ),
        _ => Ok(()),
    }
}

/// Says it at every start, where it was accepted.
pub fn warn(settings: &Settings) {
    if settings.flag("insecure_simple_auth") {
        tracing::warn!(
            "insecure_simple_auth = true: clients are not authenticated: \
             anyone who reaches this server can act as any user"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::META;

    #[test]
    fn other_addresses_need_the_flag() {
        let mut settings = Settings::defaults(META);
        let open = Some("0.0.0.0:8020".parse().unwrap());
        let refusal = check(&settings, "rpc_address", open).unwrap_err().to_string();
        assert!(refusal.contains("insecure_simple_auth = true"), "{refusal}");
        assert!(check(&settings, "rpc_address", Some("127.0.0.1:8020".parse().unwrap())).is_ok());
        assert!(check(&settings, "rpc_address", Some("[::1]:8020".parse().unwrap())).is_ok());
        settings.set("insecure_simple_auth=true").unwrap();
        assert!(check(&settings, "rpc_address", open).is_ok());
    }
}

//! Names of fields in Rust, as in k8s-openapi.

/// Returns the name of a field in Rust: `clusterIPs` is `cluster_ips`, `type` is `type_`.
pub(crate) fn field_name(json: &str) -> String {
    let characters: Vec<char> = json.chars().collect();
    let at = |index: usize| characters.get(index).copied().unwrap_or(' ');
    let mut name = String::new();
    for (index, character) in characters.iter().enumerate() {
        let previous = index.checked_sub(1).map_or(' ', at);
        let next = at(index.saturating_add(1));
        // The `s` of `IPs` belongs to the abbreviation before it.
        let is_plural = next == 's' && !at(index.saturating_add(2)).is_lowercase();
        let is_start = previous.is_lowercase()
            || previous.is_ascii_digit()
            || (previous.is_uppercase() && next.is_lowercase() && !is_plural);
        if character.is_uppercase() && is_start {
            name.push('_');
        }
        name.extend(character.to_lowercase());
    }
    // Names that are keywords of Rust.
    const KEYWORDS: [&str; 8] = [
        "type", "as", "continue", "enum", "for", "in", "match", "ref",
    ];
    if KEYWORDS.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_k8s_openapi() {
        for (json, expected) in [
            ("replicas", "replicas"),
            ("minReadySeconds", "min_ready_seconds"),
            ("clusterIP", "cluster_ip"),
            ("clusterIPs", "cluster_ips"),
            ("externalIPs", "external_ips"),
            ("podCIDRs", "pod_cidrs"),
            ("hostPID", "host_pid"),
            ("nonResourceURLs", "non_resource_urls"),
            ("targetWWNs", "target_wwns"),
            ("setHostnameAsFQDN", "set_hostname_as_fqdn"),
            ("volumeID", "volume_id"),
            ("fsType", "fs_type"),
            ("iscsi", "iscsi"),
            ("awsElasticBlockStore", "aws_elastic_block_store"),
            ("httpGet", "http_get"),
            ("seLinuxOptions", "se_linux_options"),
            ("procMount", "proc_mount"),
            ("type", "type_"),
            ("continue", "continue_"),
        ] {
            assert_eq!(field_name(json), expected);
        }
    }
}

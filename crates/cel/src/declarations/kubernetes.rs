//! The libraries that Kubernetes 1.36 turns on: strings (version 2), lists (version 3), sets,
//! two-variable comprehensions, and Kubernetes' own lists, regex, URL, quantity, IP, CIDR, semver,
//! format and authorizer libraries.

/// One overload per line: function, id of the overload, signature.
pub(super) const TABLE: &str = "
charAt string_char_at_int string.(int) -> string
indexOf string_index_of_string string.(string) -> int
indexOf string_index_of_string_int string.(string, int) -> int
lastIndexOf string_last_index_of_string string.(string) -> int
lastIndexOf string_last_index_of_string_int string.(string, int) -> int
lowerAscii string_lower_ascii string.() -> string
upperAscii string_upper_ascii string.() -> string
replace string_replace_string_string string.(string, string) -> string
replace string_replace_string_string_int string.(string, string, int) -> string
split string_split_string string.(string) -> list(string)
split string_split_string_int string.(string, int) -> list(string)
substring string_substring_int string.(int) -> string
substring string_substring_int_int string.(int, int) -> string
trim string_trim string.() -> string
format string_format string.(list(dyn)) -> string
strings.quote strings_quote (string) -> string
join list_join list(string).() -> string
join list_join_string list(string).(string) -> string
slice list_slice list(T).(int, int) -> list(T)
flatten list_flatten list(list(T)).() -> list(T)
flatten list_flatten_int list(dyn).(int) -> list(dyn)
sort list_int_sort list(int).() -> list(int)
sort list_uint_sort list(uint).() -> list(uint)
sort list_double_sort list(double).() -> list(double)
sort list_bool_sort list(bool).() -> list(bool)
sort list_google.protobuf.Duration_sort list(duration).() -> list(duration)
sort list_google.protobuf.Timestamp_sort list(timestamp).() -> list(timestamp)
sort list_string_sort list(string).() -> list(string)
sort list_bytes_sort list(bytes).() -> list(bytes)
@sortByAssociatedKeys list_int_sortByAssociatedKeys list(T).(list(int)) -> list(T)
@sortByAssociatedKeys list_uint_sortByAssociatedKeys list(T).(list(uint)) -> list(T)
@sortByAssociatedKeys list_double_sortByAssociatedKeys list(T).(list(double)) -> list(T)
@sortByAssociatedKeys list_bool_sortByAssociatedKeys list(T).(list(bool)) -> list(T)
@sortByAssociatedKeys list_google.protobuf.Duration_sortByAssociatedKeys list(T).(list(duration)) -> list(T)
@sortByAssociatedKeys list_google.protobuf.Timestamp_sortByAssociatedKeys list(T).(list(timestamp)) -> list(T)
@sortByAssociatedKeys list_string_sortByAssociatedKeys list(T).(list(string)) -> list(T)
@sortByAssociatedKeys list_bytes_sortByAssociatedKeys list(T).(list(bytes)) -> list(T)
lists.range lists_range (int) -> list(int)
reverse list_reverse list(T).() -> list(T)
distinct list_distinct list(T).() -> list(T)
sets.contains list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects list_sets_intersects_list (list(T), list(T)) -> bool
cel.@mapInsert @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
cel.@mapInsert @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
isSorted list_int_is_sorted_bool list(int).() -> bool
isSorted list_uint_is_sorted_bool list(uint).() -> bool
isSorted list_double_is_sorted_bool list(double).() -> bool
isSorted list_bool_is_sorted_bool list(bool).() -> bool
isSorted list_duration_is_sorted_bool list(duration).() -> bool
isSorted list_timestamp_is_sorted_bool list(timestamp).() -> bool
isSorted list_string_is_sorted_bool list(string).() -> bool
isSorted list_bytes_is_sorted_bool list(bytes).() -> bool
sum list_int_sum_int list(int).() -> int
sum list_uint_sum_uint list(uint).() -> uint
sum list_double_sum_double list(double).() -> double
sum list_duration_sum_duration list(duration).() -> duration
max list_int_max_int list(int).() -> int
max list_uint_max_uint list(uint).() -> uint
max list_double_max_double list(double).() -> double
max list_bool_max_bool list(bool).() -> bool
max list_duration_max_duration list(duration).() -> duration
max list_timestamp_max_timestamp list(timestamp).() -> timestamp
max list_string_max_string list(string).() -> string
max list_bytes_max_bytes list(bytes).() -> bytes
min list_int_min_int list(int).() -> int
min list_uint_min_uint list(uint).() -> uint
min list_double_min_double list(double).() -> double
min list_bool_min_bool list(bool).() -> bool
min list_duration_min_duration list(duration).() -> duration
min list_timestamp_min_timestamp list(timestamp).() -> timestamp
min list_string_min_string list(string).() -> string
min list_bytes_min_bytes list(bytes).() -> bytes
indexOf list_a_index_of_int list(A).(A) -> int
lastIndexOf list_a_last_index_of_int list(A).(A) -> int
find string_find_string string.(string) -> string
findAll string_find_all_string string.(string) -> list(string)
findAll string_find_all_string_int string.(string, int) -> list(string)
url string_to_url (string) -> url
isURL is_url_string (string) -> bool
getScheme url_get_scheme url.() -> string
getHost url_get_host url.() -> string
getHostname url_get_hostname url.() -> string
getPort url_get_port url.() -> string
getEscapedPath url_get_escaped_path url.() -> string
getQuery url_get_query url.() -> map(string, list(string))
quantity string_to_quantity (string) -> quantity
isQuantity is_quantity_string (string) -> bool
sign quantity_sign (quantity) -> int
isGreaterThan quantity_is_greater_than quantity.(quantity) -> bool
isGreaterThan semver_is_greater_than semver.(semver) -> bool
isLessThan quantity_is_less_than quantity.(quantity) -> bool
isLessThan semver_is_less_than semver.(semver) -> bool
compareTo quantity_compare_to quantity.(quantity) -> int
compareTo semver_compare_to semver.(semver) -> int
asApproximateFloat quantity_get_float quantity.() -> double
asInteger quantity_get_int quantity.() -> int
isInteger quantity_is_integer quantity.() -> bool
add quantity_add quantity.(quantity) -> quantity
add quantity_add_int quantity.(int) -> quantity
sub quantity_sub quantity.(quantity) -> quantity
sub quantity_sub_int quantity.(int) -> quantity
ip string_to_ip (string) -> ip
ip cidr_ip cidr.() -> ip
family ip_family ip.() -> int
ip.isCanonical ip_is_canonical (string) -> bool
isUnspecified ip_is_unspecified ip.() -> bool
isLoopback ip_is_loopback ip.() -> bool
isLinkLocalMulticast ip_is_link_local_multicast ip.() -> bool
isLinkLocalUnicast ip_is_link_local_unicast ip.() -> bool
isGlobalUnicast ip_is_global_unicast ip.() -> bool
isIP is_ip (string) -> bool
string ip_to_string (ip) -> string
string cidr_to_string (cidr) -> string
cidr string_to_cidr (string) -> cidr
isCIDR is_cidr (string) -> bool
containsIP cidr_contains_ip_string cidr.(string) -> bool
containsIP cidr_contains_ip_ip cidr.(ip) -> bool
containsCIDR cidr_contains_cidr_string cidr.(string) -> bool
containsCIDR cidr_contains_cidr cidr.(cidr) -> bool
prefixLength cidr_prefix_length cidr.() -> int
masked cidr_masked cidr.() -> cidr
semver string_to_semver (string) -> semver
semver string_bool_to_semver (string, bool) -> semver
isSemver is_semver_string (string) -> bool
isSemver is_semver_string_bool (string, bool) -> bool
major semver_major semver.() -> int
minor semver_minor semver.() -> int
patch semver_patch semver.() -> int
validate format-validate format.(string) -> optional(list(string))
format.named format-named (string) -> optional(format)
format.dns1123Label format.dns1123Label () -> format
format.dns1123Subdomain format.dns1123Subdomain () -> format
format.dns1035Label format.dns1035Label () -> format
format.qualifiedName format.qualifiedName () -> format
format.dns1123LabelPrefix format.dns1123LabelPrefix () -> format
format.dns1123SubdomainPrefix format.dns1123SubdomainPrefix () -> format
format.dns1035LabelPrefix format.dns1035LabelPrefix () -> format
format.labelValue format.labelValue () -> format
format.uri format.uri () -> format
format.uuid format.uuid () -> format
format.byte format.byte () -> format
format.date format.date () -> format
format.datetime format.datetime () -> format
path authorizer_path authorizer.(string) -> pathcheck
group authorizer_group authorizer.(string) -> groupcheck
serviceAccount authorizer_serviceaccount authorizer.(string, string) -> authorizer
resource groupcheck_resource groupcheck.(string) -> resourcecheck
subresource resourcecheck_subresource resourcecheck.(string) -> resourcecheck
namespace resourcecheck_namespace resourcecheck.(string) -> resourcecheck
name resourcecheck_name resourcecheck.(string) -> resourcecheck
fieldSelector authorizer_fieldselector resourcecheck.(string) -> resourcecheck
labelSelector authorizer_labelselector resourcecheck.(string) -> resourcecheck
check pathcheck_check pathcheck.(string) -> decision
check resourcecheck_check resourcecheck.(string) -> decision
errored decision_errored decision.() -> bool
error decision_error decision.() -> string
allowed decision_allowed decision.() -> bool
reason decision_reason decision.() -> string
";

/// Library of mutating admission policies.
pub(super) const JSON_PATCH: &str = "
jsonpatch.escapeKey string_jsonpatch_escapeKey_string (string) -> string
";

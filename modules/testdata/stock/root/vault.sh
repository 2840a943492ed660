# Prepares the server of Vault for a case: bash vault.sh PORT TAPE. A real one needs secrets, policies and roles.
[ -z "$BRINE_VAULT" ] || exec python3 "${0%.sh}.py" "$@"
exec bash "${0%vault.sh}ask.sh" POST "$1" "/tape/$2"

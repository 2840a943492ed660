package conf

import (
	"fmt"
	"strings"
)

// honouredLocks is one string, which takes half the space of a list in the program.
const honouredLocks = `
allow_minion_key_revoke
allow_remote_clients
always_verify_signature
auto_accept
autoreject_file
autosign_file
autosign_grains_dir
autosign_timeout
cmd_blacklist_glob
cmd_safe
cmd_whitelist_glob
disable_modules
disable_returners
disable_states
encryption_algorithm
event_access
external_auth
file_ignore_glob
file_ignore_regex
file_recv
file_recv_max_size
fileserver_followsymlinks
fileserver_ignoresymlinks
fips_mode
gitfs_disable_saltenv_mapping
gitfs_insecure_auth
gitfs_saltenv_blacklist
gitfs_saltenv_whitelist
gitfs_ssl_verify
gpg_decrypt_must_succeed
grains_blacklist
http_max_body
isolate_minions
lock_saltenv
master_finger
master_pubkey_signature
master_sign_key_name
master_sign_pubkey
master_use_pubkey_signature
max_minions
mine_get
minimum_auth_version
minion_allow_functions
minion_deny_functions
minion_sign_messages
netapi_enable_clients
open_mode
peer
peer_run
permissive_acl
permissive_pki_access
pillar_safe_render_error
publish_session
publish_signing_algorithm
publisher_acl
publisher_acl_blacklist
renderer_blacklist
renderer_whitelist
request_server_ttl
rotate_aes_key
sign_pub_messages
signing_algorithm
ssl
sudo_acl
sudo_user
token_expire
verify_master_pubkey_sign
whitelist_modules
whitelist_state_modules
`

// HonouredLocks returns the options that restrict, permit, sign or verify, and that a minion or master honours,
// sorted.
func HonouredLocks() []string {
	return strings.Fields(honouredLocks)
}

// RefuseLocks returns an error for a security option of a master that brine does not support. An option that is not
// set or off is not an error.
func (c *Config) RefuseLocks() error {
	for _, o := range refusedOptions {
		if v, set := c.Opts[o.name]; set && Truth(v) {
			return fmt.Errorf("cannot start with the option %s, which restricts something and is not supported: %s", o.name, o.advice)
		}
	}
	return nil
}

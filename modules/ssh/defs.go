//go:build unix

package ssh

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "ssh".
var Module = &modules.Module{Name: "ssh", Doc: "Keys that may log in, and keys of known hosts.", Available: available, Funcs: []modules.Def{
	{Name: "auth_keys", Doc: `Return the keys that may log in as a user, each with its kind, comment, options and fingerprint.

user
    A user, or a list of users; without it all users.
config
    The file of authorized keys, as sshd's setting AuthorizedKeysFile: %u is the user, %h the home.
fingerprint_hash_type
    The hash of the fingerprint, sha256 if not given.`,
		Example: "salt '*' ssh.auth_keys root", Params: []modules.Param{
			{Name: "user", Optional: true}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
			{Name: "fingerprint_hash_type", Optional: true},
		}, Run: authKeys},
	{Name: "check_key", Doc: `Tell what setting a key would do: add, update, or nothing (exists).

user, key, enc, comment, options, config, fingerprint_hash_type
    As with ssh.set_auth_key.
cache_keys
    Not used.`,
		Example: "salt '*' ssh.check_key <user> <key> <enc> <comment> <options>", Params: []modules.Param{
			{Name: "user"}, {Name: "key"}, {Name: "enc"}, {Name: "comment"}, {Name: "options"},
			{Name: "config", Default: ".ssh/authorized_keys", Type: modules.String}, {Name: "cache_keys", Optional: true},
			{Name: "fingerprint_hash_type", Optional: true},
		}, Run: checkKey},
	{Name: "check_key_file", Doc: `Tell for each key of a file what setting it would do.

user, config, fingerprint_hash_type
    As with ssh.set_auth_key.
source, saltenv
    The file of keys, and its environment.`,
		Example: "salt '*' ssh.check_key_file root salt://ssh/keyfile", Params: []modules.Param{
			{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
			{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
		}, Run: checkKeyFile},
	{Name: "check_known_host", Doc: `Tell what setting a known host would do: add, update, or nothing (exists).

user, hostname, key, fingerprint, config, port, fingerprint_hash_type
    As with ssh.set_known_host.`,
		Example: "salt '*' ssh.check_known_host <user> <hostname> key='AAAA...FAaQ=='", Params: []modules.Param{
			{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "key", Optional: true},
			{Name: "fingerprint", Optional: true}, {Name: "config", Optional: true}, {Name: "port", Optional: true},
			{Name: "fingerprint_hash_type", Optional: true},
		}, Run: checkKnownHost},
	{Name: "get_known_host_entries", Doc: `Return the keys that are known of a host.

user, hostname, config, port, fingerprint_hash_type
    As with ssh.set_known_host.`,
		Example: "salt '*' ssh.get_known_host_entries <user> <hostname>", Params: []modules.Param{
			{Name: "user"}, {Name: "hostname"}, {Name: "config", Optional: true}, {Name: "port", Optional: true},
			{Name: "fingerprint_hash_type", Optional: true},
		}, Run: getKnownHostEntries},
	{Name: "hash_known_hosts", Doc: `Make the names in a file of known hosts unreadable.

user, config
    As with ssh.set_known_host.`,
		Example: "salt '*' ssh.hash_known_hosts", Params: []modules.Param{
			{Name: "user", Optional: true}, {Name: "config", Optional: true},
		}, Run: hashKnownHosts},
	{Name: "host_keys", Doc: `Return the keys of the minion's own ssh server.

keydir
    Where they are, /etc/ssh on Linux.
private
    Return private keys, too.
certs
    Return certificates, too.`,
		Example: "salt '*' ssh.host_keys keydir=/etc/ssh private=False", Params: []modules.Param{
			{Name: "keydir", Optional: true}, {Name: "private", Default: true, Type: modules.Bool},
			{Name: "certs", Default: true, Type: modules.Bool},
		}, Run: hostKeys},
	{Name: "key_is_encrypted", Doc: "Tell whether a private key has a passphrase.", Example: "salt '*' ssh.key_is_encrypted /root/id_rsa", Params: []modules.Param{
		{Name: "key"},
	}, Run: keyIsEncrypted},
	{Name: "recv_known_host_entries", Doc: `Ask a host for its keys.

hostname, port
    The host.
enc
    The kind of key.
hash_known_hosts
    Make the names in the result unreadable.
timeout
    How many seconds to wait.
fingerprint_hash_type
    The hash of the fingerprints.`,
		Example: "salt '*' ssh.recv_known_host_entries <hostname> enc=<enc> port=<port>", Params: []modules.Param{
			{Name: "hostname"}, {Name: "enc", Optional: true}, {Name: "port", Optional: true},
			{Name: "hash_known_hosts", Default: true, Type: modules.Bool},
			{Name: "timeout", Default: int64(5), Type: modules.Int}, {Name: "fingerprint_hash_type", Optional: true},
		}, Run: recvKnownHostEntries},
	{Name: "rm_auth_key", Doc: "Remove a key from those that may log in as a user.", Example: "salt '*' ssh.rm_auth_key <user> <key>", Params: []modules.Param{
		{Name: "user"}, {Name: "key"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: rmAuthKey},
	{Name: "rm_auth_key_from_file", Doc: "Remove the keys of a file from those that may log in as a user.", Example: "salt '*' ssh.rm_auth_key_from_file <user> salt://ssh_keys/<user>.id_rsa.pub", Params: []modules.Param{
		{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
	}, Run: rmAuthKeyFromFile},
	{Name: "rm_known_host", Doc: "Remove a host from the known ones.", Example: "salt '*' ssh.rm_known_host <user> <hostname>", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "config", Optional: true},
		{Name: "port", Optional: true},
	}, Run: rmKnownHost},
	{Name: "set_auth_key", Doc: `Let a key log in as a user. The result is new, replace, no change or what is wrong.

user
    The user.
key
    The key, without its kind.
enc
    The kind of key.
comment
    The comment behind it.
options
    A list of options.
config
    The file of authorized keys, as sshd's setting AuthorizedKeysFile: %u is the user, %h the home.
cache_keys
    Not used.
fingerprint_hash_type
    The hash of fingerprints.`,
		Example: "salt '*' ssh.set_auth_key <user> '<key>' enc='dsa'", Params: []modules.Param{
			{Name: "user"}, {Name: "key"}, {Name: "enc", Default: "ssh-rsa", Type: modules.String},
			{Name: "comment", Default: "", Type: modules.String}, {Name: "options", Optional: true},
			{Name: "config", Default: ".ssh/authorized_keys", Type: modules.String}, {Name: "cache_keys", Optional: true},
			{Name: "fingerprint_hash_type", Optional: true},
		}, Run: setAuthKey},
	{Name: "set_auth_key_from_file", Doc: `Let the keys of a file log in as a user.

user, config, fingerprint_hash_type
    As with ssh.set_auth_key; also options, as a keyword.
source, saltenv
    The file of keys, and its environment.`,
		Example: "salt '*' ssh.set_auth_key_from_file <user> salt://ssh_keys/<user>.id_rsa.pub", Params: []modules.Param{
			{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
			{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
		}, Kwargs: "kwargs", Run: setAuthKeyFromFile},
	{Name: "set_known_host", Doc: `Make the key of a host known.

user
    Whose file of known hosts; without it that of the system.
hostname, port
    The host.
fingerprint
    The fingerprint that the host's key must have.
key
    The key; without it the host is asked.
enc
    The kind of key.
config
    The file of known hosts.
hash_known_hosts
    Make the name unreadable.
timeout
    How many seconds to wait for the host.
fingerprint_hash_type
    The hash of the fingerprint.`,
		Example: "salt '*' ssh.set_known_host <user> fingerprint='xx:xx:..:xx' enc='ssh-rsa' hostname=<hostname>", Params: []modules.Param{
			{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "fingerprint", Optional: true},
			{Name: "key", Optional: true}, {Name: "port", Optional: true}, {Name: "enc", Optional: true},
			{Name: "config", Optional: true}, {Name: "hash_known_hosts", Default: true, Type: modules.Bool},
			{Name: "timeout", Default: int64(5), Type: modules.Int}, {Name: "fingerprint_hash_type", Optional: true},
		}, Run: setKnownHost},
	{Name: "user_keys", Doc: `Return the keys of users that are in their homes.

user
    A user, or a list of users; without it all users.
pubfile, prvfile
    Names of the files, False for none.`,
		Example: "salt '*' ssh.user_keys user=<user> prvfile=False", Params: []modules.Param{
			{Name: "user", Optional: true}, {Name: "pubfile", Optional: true}, {Name: "prvfile", Optional: true},
		}, Run: userKeys},
}}

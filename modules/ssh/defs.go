//go:build unix

package ssh

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "ssh".
var Module = &modules.Module{Name: "ssh", Doc: "Keys that may log in, and keys of known hosts.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "auth_keys", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: authKeys},
	{Name: "check_key", Params: []modules.Param{
		{Name: "user"}, {Name: "key"}, {Name: "enc"}, {Name: "comment"}, {Name: "options"},
		{Name: "config", Default: ".ssh/authorized_keys", Type: modules.String}, {Name: "cache_keys", Optional: true},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: checkKey},
	{Name: "check_key_file", Params: []modules.Param{
		{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
	}, Run: checkKeyFile},
	{Name: "check_known_host", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "key", Optional: true},
		{Name: "fingerprint", Optional: true}, {Name: "config", Optional: true}, {Name: "port", Optional: true},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: checkKnownHost},
	{Name: "get_known_host_entries", Params: []modules.Param{
		{Name: "user"}, {Name: "hostname"}, {Name: "config", Optional: true}, {Name: "port", Optional: true},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: getKnownHostEntries},
	{Name: "hash_known_hosts", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "config", Optional: true},
	}, Run: hashKnownHosts},
	{Name: "host_keys", Params: []modules.Param{
		{Name: "keydir", Optional: true}, {Name: "private", Default: true, Type: modules.Bool},
		{Name: "certs", Default: true, Type: modules.Bool},
	}, Run: hostKeys},
	{Name: "key_is_encrypted", Params: []modules.Param{
		{Name: "key"},
	}, Run: keyIsEncrypted},
	{Name: "recv_known_host_entries", Params: []modules.Param{
		{Name: "hostname"}, {Name: "enc", Optional: true}, {Name: "port", Optional: true},
		{Name: "hash_known_hosts", Default: true, Type: modules.Bool},
		{Name: "timeout", Default: int64(5), Type: modules.Int}, {Name: "fingerprint_hash_type", Optional: true},
	}, Run: recvKnownHostEntries},
	{Name: "rm_auth_key", Params: []modules.Param{
		{Name: "user"}, {Name: "key"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: rmAuthKey},
	{Name: "rm_auth_key_from_file", Params: []modules.Param{
		{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
	}, Run: rmAuthKeyFromFile},
	{Name: "rm_known_host", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "config", Optional: true},
		{Name: "port", Optional: true},
	}, Run: rmKnownHost},
	{Name: "set_auth_key", Params: []modules.Param{
		{Name: "user"}, {Name: "key"}, {Name: "enc", Default: "ssh-rsa", Type: modules.String},
		{Name: "comment", Default: "", Type: modules.String}, {Name: "options", Optional: true},
		{Name: "config", Default: ".ssh/authorized_keys", Type: modules.String}, {Name: "cache_keys", Optional: true},
		{Name: "fingerprint_hash_type", Optional: true},
	}, Run: setAuthKey},
	{Name: "set_auth_key_from_file", Params: []modules.Param{
		{Name: "user"}, {Name: "source"}, {Name: "config", Default: ".ssh/authorized_keys", Type: modules.String},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "fingerprint_hash_type", Optional: true},
	}, Kwargs: "kwargs", Run: setAuthKeyFromFile},
	{Name: "set_known_host", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "hostname", Optional: true}, {Name: "fingerprint", Optional: true},
		{Name: "key", Optional: true}, {Name: "port", Optional: true}, {Name: "enc", Optional: true},
		{Name: "config", Optional: true}, {Name: "hash_known_hosts", Default: true, Type: modules.Bool},
		{Name: "timeout", Default: int64(5), Type: modules.Int}, {Name: "fingerprint_hash_type", Optional: true},
	}, Run: setKnownHost},
	{Name: "user_keys", Params: []modules.Param{
		{Name: "user", Optional: true}, {Name: "pubfile", Optional: true}, {Name: "prvfile", Optional: true},
	}, Run: userKeys},
}}

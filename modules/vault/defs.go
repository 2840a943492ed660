package vault

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// vault.clear_cache differs: the minion keeps nothing of Vault on disk, so that there is never anything to be removed there.
// vault.read_secret differs: server and credentials are those of the minion's own configuration (vault:config_location local, or a
// minion without a master); the master is not asked for them. Tokens and secret ids are not unwrapped. An error of the connection
// has another text.
// vault.update_config differs: it returns true, where stock fails for want of a function.

func init() { modules.Register(Module) }

const pathDoc = `path
    The path of the secret, with its mount.
`

var (
	named     = []modules.Param{{Name: "path"}}
	policied  = []modules.Param{{Name: "policy"}}
	unset     = "__unset__" // Salt's default of default, which nobody gives
	ifMissing = modules.Param{Name: "default", Default: unset}
)

// Module is Salt's "vault".
var Module = &modules.Module{Name: "vault", Doc: "Secrets and policies of a server of HashiCorp Vault or OpenBao.", Funcs: []modules.Def{
	{Name: "clear_cache", Doc: `Forget the token of the job.

connection, session
    As Salt has them; here there is one cache.`,
		Example: "salt '*' vault.clear_cache", Params: []modules.Param{{Name: "connection", Default: true}, {Name: "session", Default: false}}, Run: clearCache},
	{Name: "clear_token_cache", Doc: "Forget the token of the job.", Example: "salt '*' vault.clear_token_cache", Run: clearCache},
	{Name: "delete_secret", Args: "args", Doc: `Delete a secret, or the versions of it that follow; false if that fails.

` + pathDoc,
		Example: "salt '*' vault.delete_secret secret/my/secret", Params: named, Run: deleteSecret},
	{Name: "destroy_secret", Args: "args", Doc: `Destroy the versions of a secret that follow; false if that fails.

` + pathDoc,
		Example: "salt '*' vault.destroy_secret secret/my/secret 1 2", Params: named, Run: destroySecret},
	{Name: "get_server_config", Doc: "Return address, namespace and verification of the server.", Example: "salt '*' vault.get_server_config", Run: serverConfig},
	{Name: "list_secrets", Doc: `Return the names below a path.

` + pathDoc + `default
    What to return if there is no such path. Without it that is an error.
keys_only
    Return only the list.`,
		Example: "salt '*' vault.list_secrets secret/my/", Params: []modules.Param{{Name: "path"}, ifMissing, {Name: "keys_only", Default: false}}, Run: listSecrets},
	{Name: "patch_secret", Kwargs: "kwargs", Doc: `Change keys of a secret; false if that fails. None removes a key.

` + pathDoc,
		Example: "salt '*' vault.patch_secret secret/my/secret password=baz", Params: named, Run: patchSecret},
	{Name: "policies_list", Doc: "Return the names of all policies.", Example: "salt '*' vault.policies_list", Run: policiesList},
	{Name: "policy_delete", Doc: "Delete a policy, false if there is none.", Example: "salt '*' vault.policy_delete salt_minion", Params: policied, Run: policyDelete},
	{Name: "policy_fetch", Doc: "Return the rules of a policy, None if there is none.", Example: "salt '*' vault.policy_fetch salt_minion", Params: policied, Run: policyFetch},
	{Name: "policy_write", Doc: `Create or replace a policy.

rules
    The rules, in HCL.`,
		Example: `salt '*' vault.policy_write salt_minion 'path "secret/foo" {...}'`, Params: []modules.Param{{Name: "policy"}, {Name: "rules"}}, Run: policyWrite},
	{Name: "query", Doc: `Send a request to the server and return its answer.

method
    The HTTP method.
endpoint
    The path, without /v1/ before it.
payload
    A dictionary to send.`,
		Example: "salt '*' vault.query GET auth/token/lookup-self", Params: []modules.Param{{Name: "method"}, {Name: "endpoint"}, {Name: "payload", Optional: true}}, Run: query},
	{Name: "read_secret", Doc: `Return a secret, or a key of it.

` + pathDoc + `key
    The key.
metadata
    Return the metadata of version 2, too.
default
    What to return if the secret cannot be read. Without it that is an error.`,
		Example: "salt '*' vault.read_secret secret/my/secret password", Params: []modules.Param{{Name: "path"}, {Name: "key", Optional: true}, {Name: "metadata", Default: false}, ifMissing}, Run: readSecret},
	{Name: "update_config", Doc: `Return true: the configuration is the minion's own.

keep_session
    As Salt has it.`,
		Example: "salt '*' vault.update_config", Params: []modules.Param{{Name: "keep_session", Default: false}}, Run: updateConfig},
	{Name: "write_raw", Doc: `Replace a secret; false if that fails.

` + pathDoc + `raw
    The secret, a dictionary.`,
		Example: `salt '*' vault.write_raw secret/my/secret '{"user": "foo", "password": "bar"}'`, Params: []modules.Param{{Name: "path"}, {Name: "raw", Secret: true}}, Run: writeRaw},
	{Name: "write_secret", Kwargs: "kwargs", Doc: `Replace a secret by keys and values; false if that fails.

` + pathDoc,
		Example: "salt '*' vault.write_secret secret/my/secret user=foo password=bar", Params: named, Run: writeSecret},
}}

package main

import (
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// keyParser returns the command line of `salt-key` (salt/utils/parsers.py: SaltKeyOptionParser).
func keyParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.VersionOptions(), saltcli.ConfigOptions(c.ConfigDir())...)
	options = append(options, saltcli.UserOption("salt-key"), saltcli.HardCrashOption())
	options = append(options, []optparse.Option{
		{Names: []string{"-q", "--quiet"}, Kind: optparse.True, Help: "Suppress output."},
		{Names: []string{"-y", "--yes"}, Kind: optparse.True,
			Help: `Answer "Yes" to all questions presented. Default: %default.`},
		{Names: []string{"--rotate-aes-key"}, Default: true,
			Help: "Setting this to False prevents the master from refreshing the key session " +
				"when keys are deleted or " +
				"rejected, this lowers the security of the key deletion/rejection operation. " +
				"Default: %default."},
		{Names: []string{"--preserve-minions"}, Default: false,
			Help: "Setting this to True prevents the master from deleting the minion cache when " +
				"keys are deleted, this may " +
				"have security implications if compromised minions auth with a previous deleted " +
				"minion ID. Default: %default."},
	}...)
	return &optparse.Parser{
		Prog:        "salt-key",
		Usage:       "%prog [options]",
		Description: "salt-key is used to manage Salt authentication keys",
		Epilog:      saltcli.Epilog,
		Width:       c.Width(),
		Options:     options,
		Groups: []optparse.Group{
			saltcli.EAuthGroup(false),
			saltcli.OutputGroup("salt-key"),
			{Title: "Actions", Options: keyActions()},
			{Title: "Key Generation Options", Options: keyGeneration()},
			saltcli.LoggingGroup(saltcli.Logging{Level: "warning", File: "/var/log/salt/key",
				FileDest: "key_logfile"}),
		},
	}
}

func keyActions() []optparse.Option {
	text := func(short, long, help string) optparse.Option {
		return optparse.Option{Names: []string{short, long}, Default: "", Help: help}
	}
	flag := func(help string, names ...string) optparse.Option {
		return optparse.Option{Names: names, Kind: optparse.True, Help: help}
	}
	list := text("-l", "--list",
		"List the public keys. The args 'pre', 'un', and 'unaccepted' will list "+
			"unaccepted/unsigned "+
			"keys. 'acc' or 'accepted' will list accepted/signed keys. 'rej' or 'rejected' will "+
			"list "+
			"rejected keys. 'den' or "+
			"'denied' will list denied keys. Finally, 'all' will list all keys.")
	list.Metavar = "ARG"
	return []optparse.Option{
		list,
		flag(`List all public keys. Deprecated: use "--list all".`, "-L", "--list-all"),
		text("-a", "--accept",
			"Accept the specified public key (use --include-rejected and --include-denied to "+
				"match rejected "+
				"and denied keys in addition to pending keys). Globs are supported."),
		flag("Accept all pending keys.", "-A", "--accept-all"),
		text("-r", "--reject",
			"Reject the specified public key. Use --include-accepted and --include-denied to "+
				"match accepted "+
				"and denied keys in addition to pending keys. Globs are supported."),
		flag("Reject all pending keys.", "-R", "--reject-all"),
		flag(`Include rejected/accepted keys when accepting/rejecting. Deprecated: use "--include-rejected" and `+
			`"--include-accepted".`, "--include-all"),
		flag("Include accepted keys when rejecting.", "--include-accepted"),
		flag("Include rejected keys when accepting.", "--include-rejected"),
		flag("Include denied keys when accepting/rejecting.", "--include-denied"),
		text("-p", "--print", "Print the specified public key."),
		flag("Print all public keys.", "-P", "--print-all"),
		text("-d", "--delete", "Delete the specified key. Globs are supported."),
		flag("Delete all keys.", "-D", "--delete-all"),
		text("-f", "--finger", "Print the specified key's fingerprint."),
		flag("Print all keys' fingerprints.", "-F", "--finger-all"),
	}
}

func keyGeneration() []optparse.Option {
	return []optparse.Option{
		{Names: []string{"--gen-keys"}, Default: "",
			Help: "Set a name to generate a keypair for use with salt."},
		{Names: []string{"--gen-keys-dir"}, Default: ".",
			Help: `Set the directory to save the generated keypair, only works with "--gen-keys" option. Default: '%default'.`},
		{Names: []string{"--keysize"}, Kind: optparse.Int, Default: int64(2048),
			Help: `Set the keysize for the generated key, only works with the "--gen-keys" option, the key size must be 2048 ` +
				"or higher, otherwise it will be rounded up to 2048. Default: %default."},
		{Names: []string{"--gen-signature"}, Kind: optparse.True,
			Help: "Create a signature file of the masters public-key named " +
				"master_pubkey_signature. The signature can be send " +
				"to a minion in the masters auth-reply and enables the minion to verify the " +
				"masters public-key " +
				"cryptographically. This requires a new signing-key-pair which can be " +
				"auto-created with the --auto-create parameter."},
		{Names: []string{"--priv"}, Default: "",
			Help: "The private-key file to create a signature with."},
		{Names: []string{"--signature-path"}, Default: "",
			Help: "The path where the signature file should be written."},
		{Names: []string{"--pub"}, Default: "",
			Help: "The public-key file to create a signature for."},
		{Names: []string{"--auto-create"}, Kind: optparse.True,
			Help: "Auto-create a signing key-pair if it does not yet exist."},
	}
}

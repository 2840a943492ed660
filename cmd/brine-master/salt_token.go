package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
)

// tokenFile returns the file that stores a token for later commands (option token_file).
func tokenFile(p *saltcli.Program) string {
	if f := p.Conf.String("token_file"); f != "" {
		return f
	}
	home := p.At.Home
	if home == "" {
		return ""
	}
	dir := p.Env("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(home, ".config")
	}
	if info, err := os.Stat(filepath.Join(dir, "salt")); err == nil && info.IsDir() {
		return filepath.Join(dir, "salt", "salt_token")
	}
	return filepath.Join(home, "salt_token")
}

// storedToken returns the token of an earlier command, for a user who cannot read a key file of the master.
func storedToken(p *saltcli.Program) string {
	_, keyUser := localmaster.UserNames(p.Conf, p.Env)
	if f, err := os.Open(p.Conf.String("cachedir") + "/." + keyUser + "_key"); err == nil {
		f.Close()
		return ""
	}
	b, err := os.ReadFile(tokenFile(p))
	if err != nil || len(b) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// makeToken exchanges a name and password for a token from the master, and stores it for later commands (-T).
func makeToken(ctx context.Context, p *saltcli.Program, cl *client.Client,
	creds map[string]any) (string, error) {
	load := maps.Clone(creds)
	load["cmd"] = "mk_token"
	reply, err := cl.Request(ctx, load)
	if err != nil {
		return "", err
	}
	data, _ := reply.(map[string]any)
	token, _ := data["token"].(string)
	if token == "" {
		return "", client.ErrAuthentication
	}
	if file := tokenFile(p); file != "" {
		if err := atomicfile.WriteFile(file, []byte(token), 0o600); err != nil {
			p.Log.Warn("Cannot store the token", "err", err)
		}
	}
	return token, nil
}

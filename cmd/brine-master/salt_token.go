package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/master/client"
)

// tokenFile is where a token is kept for later commands (option token_file).
func (s *saltCmd) tokenFile() string {
	if f := s.Conf.String("token_file"); f != "" {
		return f
	}
	home := s.At.Home
	if home == "" {
		return ""
	}
	dir := s.Env("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(home, ".config")
	}
	if info, err := os.Stat(filepath.Join(dir, "salt")); err == nil && info.IsDir() {
		return filepath.Join(dir, "salt", "salt_token")
	}
	return filepath.Join(home, "salt_token")
}

// storedToken is the token of an earlier command, for users without a key file of their own.
func (s *saltCmd) storedToken() string {
	_, keyUser := localmaster.UserNames(s.Conf, s.Env)
	if f, err := os.Open(s.Conf.String("cachedir") + "/." + keyUser + "_key"); err == nil {
		f.Close()
		return ""
	}
	b, err := os.ReadFile(s.tokenFile())
	if err != nil || len(b) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// makeToken changes name and password for a token, which it keeps and shows from now on (-T).
func (s *saltCmd) makeToken(ctx context.Context) error {
	kw := s.cmd.Kwargs
	reply, err := s.client.Request(ctx, map[string]any{"cmd": "mk_token", "eauth": kw["eauth"], "username": kw["username"], "password": kw["password"]})
	if err != nil {
		return err
	}
	data, _ := reply.(map[string]any)
	token, _ := data["token"].(string)
	if token == "" {
		return client.ErrAuthentication
	}
	if file := s.tokenFile(); file != "" {
		if err := atomicfile.WriteFile(file, []byte(token), 0o600); err != nil {
			s.Log.Warn("cannot keep the token", "err", err)
		}
	}
	for _, key := range []string{"eauth", "username", "password"} {
		delete(kw, key)
	}
	kw["token"] = token
	return nil
}

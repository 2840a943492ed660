package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/saltcli"
)

// TestConfirm answers the question of salt-key. An answer after Ctrl-c changes nothing, neither the empty one, which
// means yes.
func TestConfirm(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		cmd, answer string
		ok          bool
		err         error
	}{
		"empty":              {t.Context(), "accept", "\n", true, nil},
		"empty for delete":   {t.Context(), "delete", "\n", false, nil},
		"yes":                {t.Context(), "delete", "Y\n", true, nil},
		"no":                 {t.Context(), "accept", "n\n", false, nil},
		"interrupted, empty": {interrupted, "accept", "\n", false, context.Canceled},
		"interrupted, yes":   {interrupted, "delete", "y\n", false, context.Canceled},
	} {
		console := &saltcli.Console{In: strings.NewReader(c.answer), Out: io.Discard,
			Env: func(string) string { return "" }}
		v, err := keyParser(console).Parse(nil)
		if err != nil {
			t.Fatal(err)
		}
		k := &saltKey{Program: &saltcli.Program{Console: console, Values: v}}
		if ok, err := k.confirm(c.ctx, c.cmd); ok != c.ok || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v, want %v, %v", name, ok, err, c.ok, c.err)
		}
	}
}

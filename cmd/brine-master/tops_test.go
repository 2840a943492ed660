package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMasterTops: a program prints the states of a minion, and invalid output is an error or no states.
func TestMasterTops(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncat '" + dir + "/'\"$1-$2\"\n"
	if err := os.WriteFile(filepath.Join(dir, "nodes"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, text := range map[string]string{
		"list": "classes: [a, b]\n", "dict": "classes: {z: ~, a: {}}\nenvironment: dev\nparameters: {}\n", "none": "parameters: {}\n",
		"text": "classes: a\n", "empty": "", "bad": "a: [\n", "env": "classes: [a]\nenvironment: 3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "given word-"+id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	f, err := masterTops(load(t, "master_tops:\n  ext_nodes: \""+dir+"/nodes 'given word'\"\n"), log)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]map[string]any{
		"list": {"base": []any{"a", "b"}}, "dict": {"dev": []any{"z", "a"}}, "none": {}, "text": {}, "empty": {}, "env": {}, "bad": nil, "$(touch x)": nil,
	} {
		got, err := f(t.Context(), id, nil)
		if d := cmp.Diff(want, got); d != "" || (err != nil) != (want == nil) {
			t.Errorf("%s: %v %s", id, err, d)
		}
	}
	if f, err := masterTops(load(t, "master_tops: {}"), log); f != nil || err != nil {
		t.Error("there are tops without a program", err)
	}
	if _, err := masterTops(load(t, "master_tops: {ext_nodes: \"a 'b\"}"), log); err == nil {
		t.Error("took half a word")
	}
}

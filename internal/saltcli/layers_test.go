package saltcli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/optparse"
)

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	file := "master: from-file\nlog_level: info\nworker_threads: 7\nretry_dns: 11\nCaseKept: {Inner: 1}\nid: x\n"
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRINE_LOG_LEVEL", "debug")
	t.Setenv("BRINE_MASTER", "from-environment")
	t.Setenv("BRINE_RETRY_DNS", "12")
	t.Setenv("BRINE_GRAINS", "{role: x}")
	parser := &optparse.Parser{Prog: "salt-minion", Options: append(append(VersionOptions(), ConfigOptions(dir)...),
		optparse.Option{Names: []string{"--master"}})}
	console := &Console{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) string { return "" }}
	p, err := Setup(console, parser, Minion, []string{"--master", "from-flag"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, key := range []string{"master", "log_level", "retry_dns", "CaseKept", "grains"} {
		got[key] = p.Conf.Opts[key]
	}
	want := map[string]any{
		"master": "from-flag", "log_level": "debug", "retry_dns": int64(12), "CaseKept": map[string]any{"Inner": int64(1)},
		"grains": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
